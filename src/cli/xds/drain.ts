// `portolan xds drain`: takes a gateway out of use before it is stopped, so that no request fails. A gateway with an address of
// its own first fails its health checks; one that shares its address with others must not, because the address would fail.

import type { Command } from 'commander';
import { readBody } from '../../base/http.ts';
import { formatHostPort, type HostPort } from '../../base/net/host-port.ts';
import { sleep, type World } from '../../base/world.ts';
import { gatewayDrainSeconds } from '../../install/envoy-containers.ts';
import { drainSecondsMax } from '../../install/values.ts';
import { usageError } from '../exit-codes.ts';
import { parseListen } from '../roles/options.ts';
import type { CliDeps } from '../with-home.ts';

export interface DrainRequest {
  /** Envoy's own admin endpoint. */
  readonly admin: HostPort;
  /** The most that it waits for open connections, from the beginning. */
  readonly forMs: number;
  /** Others answer at its address: a load balancer stops sending new connections to it. */
  readonly isAddressShared: boolean;
}

interface DrainFlags {
  readonly admin: string;
  readonly for: string;
  readonly sharedAddress?: boolean;
}

/** Callers check every 0.4 s with a timeout of 1 s, and leave a gateway after two failures. A load balancer takes as long. */
const leaveMs = 3000;
/** After this time every answer of a gateway tells the caller to make another connection. */
const toldMs = (gatewayDrainSeconds + 1) * 1000;
const lookMs = 250;
/** Between short requests nothing is open for a moment. */
const quietLooks = 6;
const openStat = 'http.gateway.downstream_rq_active';

export function addDrainGatewayCommand(xds: Command, deps: CliDeps): void {
  xds
    .command('drain')
    .description('take a gateway out of use before it is stopped, and wait until its connections have ended')
    .option('--admin <host:port>', "the gateway's own admin endpoint", '127.0.0.1:15000')
    .option('--for <seconds>', `how long to wait at most, up to ${drainSecondsMax}`, '30')
    .option('--shared-address', 'other gateways answer at the same address, behind a load balancer')
    .action(async (flags: DrainFlags) => {
      const admin = parseListen(flags.admin, '--admin');
      const request = { admin, forMs: drainMs(flags.for, '--for'), isAddressShared: flags.sharedAddress === true };
      deps.print(drainedText(await drainGateway(deps.world, request)));
    });
}

export function drainMs(text: string, flag: string): number {
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= drainSecondsMax) return seconds * 1000;
  throw usageError(`${flag} ${JSON.stringify(text)}: expected seconds from 0 to ${drainSecondsMax}`);
}

export function drainedText(open: number): string {
  if (open === 0) return 'drained: no connection is open';
  return `${open} ${open === 1 ? 'connection is' : 'connections are'} still open and will end with the gateway`;
}

/** The number of connections that are still open when the time is over. */
export async function drainGateway(
  world: Pick<World, 'network' | 'timers' | 'clock'>,
  request: DrainRequest,
): Promise<number> {
  const { admin, forMs, isAddressShared } = request;
  const server = `http://${formatHostPort(admin.host, admin.port)}`;
  const transport = world.network.http({ server });
  const ask = async (method: 'GET' | 'POST', path: string): Promise<string> => {
    const response = await transport.send({ method, path, headers: {} });
    const text = Buffer.from(await readBody(response.body)).toString('utf8');
    if (response.status !== 200) throw new Error(`${server}${path} answers ${response.status}: ${text.trim()}`);
    return text;
  };
  try {
    const endMs = world.clock.monotonicMs() + forMs;
    if (!isAddressShared) await ask('POST', '/healthcheck/fail');
    await sleep(world.timers, Math.min(leaveMs, forMs));
    // Callers hear on each connection, with one of the next streams, that they should make another. Listeners inside Envoy go
    // on: streams still come.
    await ask('POST', '/drain_listeners?graceful&inboundonly');
    await sleep(world.timers, Math.max(0, Math.min(toldMs, endMs - world.clock.monotonicMs())));
    for (let quiet = 0; ; ) {
      const open = openIn(await ask('GET', `/stats?filter=^${openStat}$`));
      quiet = open === 0 ? quiet + 1 : 0;
      if (quiet === quietLooks || world.clock.monotonicMs() >= endMs) return open;
      await sleep(world.timers, lookMs);
    }
  } finally {
    transport.close();
  }
}

/** A gateway that nobody has called has no such figure. */
function openIn(stats: string): number {
  return Number(/: (\d+)\s*$/m.exec(stats)?.[1] ?? 0);
}
