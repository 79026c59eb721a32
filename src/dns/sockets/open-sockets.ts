// All sockets of one thread: UDP and TCP on the same port of every address, and DNS over TLS if there is a certificate.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { ChainConfig } from '../chain.ts';
import type { ListenOptions, StubZone, TrustConfig } from '../config/config.ts';
import { createFaultLog } from '../metrics/fault-log.ts';
import type { Tally } from '../metrics/observe.ts';
import type { Responder } from '../responder.ts';
import type { ZoneChange } from '../service.ts';
import { listenStream } from './server-stream.ts';
import { type Listening, listenUdp } from './server-udp.ts';

interface Sockets {
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number | undefined;
  close(): Promise<void>;
}

/** Everything that serves; explaining is added around it. */
export interface Serving extends Sockets {
  /** For `readCounters` and `registerDnsMetrics`; one per thread. */
  counters(): readonly SharedArrayBuffer[];
  /** How many threads had to be replaced. */
  workerRestarts(): number;
  /** A line per query in the log, from now on or no longer. */
  setQueryLog(isOn: boolean): void;
  setStubZones(zones: readonly StubZone[]): void;
  /** Whom to believe from now on. */
  setTrust(trust: TrustConfig): void;
  /** Names of zones, their TTLs, and how peers say who asks, from now on. */
  changeZones(change: ZoneChange): void;
}

interface SocketParts {
  readonly world: Pick<World, 'timers' | 'clock'>;
  readonly log: Log;
  readonly listen: ListenOptions;
  readonly responder: Responder;
  readonly config: ChainConfig;
  readonly tally: Tally;
  readonly reusePort: boolean;
}

const portTries = 20;

/** UDP and TCP on the same port: with port 0 the kernel chooses for UDP, and a taken TCP port means another try. */
export async function openSockets(parts: SocketParts): Promise<Sockets> {
  for (let tries = 1; ; tries++) {
    const opened: Listening[] = [];
    try {
      return await openOnce(parts, opened);
    } catch (error) {
      await Promise.all(opened.map((socket) => socket.close()));
      const isTaken = (error as { code?: string }).code === 'EADDRINUSE';
      if (parts.listen.port !== 0 || !isTaken || tries === portTries) throw error;
    }
  }
}

async function openOnce(parts: SocketParts, opened: Listening[]): Promise<Sockets> {
  const { listen, responder, reusePort, log, tally } = parts;
  const nsid = Buffer.from(parts.config.serverId);
  const { clock } = parts.world;
  const onError = createFaultLog({ clock, write: (error, unsaid) => log.warn('dns socket', { error, unsaid }) });
  let { port } = listen;
  for (const host of listen.hosts) {
    const udp = await listenUdp({ responder, nsid, host, port, reusePort, tally, onError });
    opened.push(udp);
    port = udp.port;
    opened.push(await listenStream({ ...streamOptions(parts, nsid), host, port, onError }));
  }
  let tlsPort = listen.tls?.port;
  if (listen.tls) {
    for (const host of listen.hosts) {
      const tls = listen.tls.material;
      const socket = await listenStream({ ...streamOptions(parts, nsid), host, port: tlsPort!, tls, onError });
      opened.push(socket);
      tlsPort = socket.port;
    }
  }
  return {
    udpPort: port,
    tcpPort: port,
    tlsPort,
    close: async () => {
      await Promise.all(opened.map((socket) => socket.close()));
    },
  };
}

function streamOptions({ responder, world, listen, reusePort, tally }: SocketParts, nsid: Uint8Array) {
  return {
    responder,
    nsid,
    timers: world.timers,
    reusePort,
    tally,
    idleMs: listen.tcpIdleMs,
    connectionsMax: listen.tcpConnectionsMax,
    handshakeMs: listen.tlsHandshakeMs,
  };
}
