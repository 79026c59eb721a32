// All sockets of one thread: UDP and TCP on each address, TLS beside them. On a wildcard address every local address has its
// own UDP socket (wildcard-udp.ts).

import type { Log } from '../../base/log.ts';
import { LogBudget, packetFaults } from '../../base/log-budget.ts';
import { sleep, type World } from '../../base/world.ts';
import type { ChainConfig } from '../chain/chain.ts';
import { Responder } from '../chain/responder.ts';
import type { ZoneChange } from '../chain/service.ts';
import type { ListenOptions, StubZone, TlsMaterial, TrustConfig } from '../config/config.ts';
import { createCounters, type Tally, tallyIn } from '../metrics/observe.ts';
import { listenStream } from './server-stream.ts';
import { type Listening, listenUdp } from './server-udp.ts';
import { isWildcard, type LocalAddresses, listenWildcardUdp } from './wildcard-udp.ts';

export interface Sockets {
  /** Where it listens, in the order of the addresses given. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  readonly udpPort: number;
  readonly tcpPort: number;
  readonly tlsPort: number | undefined;
  readonly httpsPort: number | undefined;
  /** The certificate for connections from now on. */
  setTls(material: TlsMaterial): void;
  close(options?: CloseOptions): Promise<void>;
}

/** Everything that serves; explaining is added around it. */
export interface Serving extends Sockets {
  /** Opens the sockets of a server that takes over. */
  takeOver(): Promise<void>;
  /** For `readCounters` and `registerDnsMetrics`; one per thread. */
  counters(): readonly SharedArrayBuffer[];
  /** How many threads had to be replaced. */
  workerRestarts(): number;
  /** A line per query in the log, from now on or no longer. */
  setQueryLog(isOn: boolean): void;
  setStubZones(zones: readonly StubZone[]): void;
  /** Replaces the trusted servers and authorities. */
  setTrust(trust: TrustConfig): void;
  /** Names of zones, their TTLs, and how servers name the client's cluster, from now on. */
  changeZones(change: ZoneChange): void;
}

/** Sockets that are not open yet. */
export interface HeldSockets extends Pick<Sockets, 'setTls' | 'close'> {
  open(): Promise<Sockets>;
}

export interface CloseOptions {
  /** How long queries that wait for other servers may still be answered. */
  readonly drainMs?: number;
}

interface SocketParts {
  readonly world: Pick<World, 'timers' | 'clock'>;
  readonly log: Log;
  readonly listen: ListenOptions;
  readonly responder: Responder;
  readonly config: Pick<ChainConfig, 'serverId'>;
  readonly tally: Tally;
  readonly reusePort: boolean;
  readonly localAddresses?: LocalAddresses;
}

const portTries = 20;

/** Sockets that share their ports would share them with strangers too: one exclusive try tells beforehand. */
export async function checkPortsFree({
  world,
  log,
  listen,
  config,
}: Pick<SocketParts, 'world' | 'log' | 'listen' | 'config'>): Promise<void> {
  if (listen.port === 0 && (listen.tls?.port ?? 0) === 0 && (listen.tls?.httpsPort ?? 0) === 0) return;
  const tally = tallyIn(createCounters());
  const responder = new Responder({ chain: [], onFault: () => {} });
  const sockets = await openSockets({ world, log, listen, config, responder, tally, reusePort: false });
  await sockets.close();
}

/** Where a server that takes over will listen: it is given all ports. */
export function placesOf({
  hosts,
  port,
  others = [],
  tls,
}: ListenOptions): Pick<Sockets, 'addresses' | 'udpPort' | 'tlsPort' | 'httpsPort'> {
  const addresses = [...hosts.map((host) => ({ host, port })), ...others];
  return { addresses, udpPort: port, tlsPort: tls?.port, httpsPort: tls?.httpsPort };
}

export function holdSockets(parts: SocketParts): HeldSockets {
  let { listen } = parts;
  let opened: Promise<Sockets> | undefined;
  return {
    setTls: (material) => {
      if (listen.tls) listen = { ...listen, tls: { ...listen.tls, material } };
      void opened?.then(
        (sockets) => sockets.setTls(material),
        () => {},
      );
    },
    open: () => (opened ??= openSockets({ ...parts, listen })),
    close: async (options) => (await opened?.catch(() => undefined))?.close(options),
  };
}

/** UDP and TCP on the same port: with port 0 the kernel chooses for UDP, and a taken TCP port means another try. */
async function openSockets(parts: SocketParts): Promise<Sockets> {
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
  const { listen, log, world } = parts;
  const budget = new LogBudget(world.clock, packetFaults);
  const onError = (error: unknown) => {
    const fields = budget.take();
    if (fields) log.warn('dns socket', { error, ...fields });
  };
  const common = { ...commonOptions(parts), onError };
  const addresses: { host: string; port: number }[] = [];
  let { port } = listen;
  for (const host of listen.hosts) {
    ({ port } = await openPair({ ...common, host, port }, parts, opened));
    addresses.push({ host, port });
  }
  for (const other of listen.others ?? []) {
    addresses.push({ ...other, port: (await openPair({ ...common, ...other }, parts, opened)).port });
  }
  let tlsPort = listen.tls?.port;
  let httpsPort = listen.tls?.httpsPort;
  if (listen.tls) {
    for (const host of listen.hosts) {
      const tls = listen.tls.material;
      const socket = await listenStream({ ...common, host, port: tlsPort!, tls });
      opened.push(socket);
      tlsPort = socket.port;
      if (httpsPort === undefined) continue;
      const { listenHttps } = await import('./server-https.ts');
      const https = await listenHttps({ ...common, host, port: httpsPort, tls });
      opened.push(https);
      httpsPort = https.port;
    }
  }
  return {
    ...{ addresses, udpPort: port, tcpPort: port, tlsPort, httpsPort },
    setTls: (material) => {
      for (const socket of opened) socket.setTls?.(material);
    },
    close: (options) => closeAll(opened, world, options),
  };
}

function commonOptions({ responder, world, listen, reusePort, tally, config }: SocketParts) {
  return {
    responder,
    nsid: Buffer.from(config.serverId),
    timers: world.timers,
    reusePort,
    tally,
    idleMs: listen.tcpIdleMs,
    connectionsMax: listen.tcpConnectionsMax,
    handshakeMs: listen.tlsHandshakeMs,
  };
}

type PairOptions = Parameters<typeof listenStream>[0];

async function openPair(
  options: PairOptions,
  { localAddresses }: SocketParts,
  opened: Listening[],
): Promise<{ port: number }> {
  const udp = isWildcard(options.host)
    ? await listenWildcardUdp({ ...options, localAddresses })
    : await listenUdp(options);
  opened.push(udp);
  opened.push(await listenStream({ ...options, port: udp.port }));
  return udp;
}

async function closeAll(
  opened: readonly Listening[],
  world: Pick<World, 'timers'>,
  { drainMs = 0 }: CloseOptions = {},
): Promise<void> {
  if (drainMs > 0) {
    const tooLong = new AbortController();
    const drained = Promise.all(opened.map((socket) => socket.drain())).then(() => tooLong.abort());
    await Promise.race([drained, sleep(world.timers, drainMs, tooLong.signal).catch(() => {})]);
  }
  await Promise.all(opened.map((socket) => socket.close()));
}
