// The demo's Envoys, where one is on PATH: the second company's ingress, and a sidecar in west that takes connections to
// the peer's service and to the external service. They listen on their loopback addresses; the kernel is left alone.

import { request } from '../../base/real/node-http.ts';
import { sleep } from '../../base/world.ts';
import { findOnPath, startUpEnvoy } from '../up/envoy.ts';
import type { DemoDeps, RunningCluster } from './clusterset.ts';
import { type DemoNeighbour, neighbourName } from './neighbour.ts';
import type { DemoOutside } from './outside.ts';

export interface DemoEnvoys {
  readonly program: string;
}

export interface EnvoysOptions {
  readonly west: RunningCluster;
  readonly neighbour: DemoNeighbour;
  readonly outside: DemoOutside;
}

/** Port of the listener that does not look at first bytes: nothing in the demo needs it. */
const plainPort = 15_002;
const lookMs = 50;

export async function startDemoEnvoys(deps: DemoDeps, options: EnvoysOptions): Promise<DemoEnvoys | undefined> {
  const program = await findOnPath('envoy');
  if (program === undefined) return undefined;
  const { world, log, directory, parts } = deps;
  const { west, neighbour, outside } = options;
  const [ingress, sidecar] = await Promise.all([
    startUpEnvoy({
      ...{ world, log, program, home: neighbour.client, directory: `${directory}/${neighbourName}` },
      ...{ role: 'ingress', boundTo: neighbour.ingress },
    }),
    startUpEnvoy({
      ...{ world, log, program, home: west.client, directory: `${directory}/${west.cluster.id}` },
      ...{ role: 'sidecar', boundTo: outside.ip, outbound: { inspected: outside.port, plain: plainPort } },
      // A filter for AWS would look for credentials on the network and complain that there are none.
      plugins: new Map(),
    }),
  ]);
  parts.add(`${neighbourName}: ingress`, () => ingress.stop());
  parts.add(`${west.cluster.id}: sidecar`, () => sidecar.stop());
  deps.admins.set(`xds-${neighbourName}`, ingress.admin).set(`xds-${west.cluster.id}`, sidecar.admin);
  await Promise.all([ingress.whenConnected(), sidecar.whenConnected()]);
  for (const { ip, port } of [neighbour, outside]) await untilReached(deps, `http://${ip}:${port}/`);
  return { program };
}

async function untilReached({ world }: DemoDeps, url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await isReached(url)) return;
    await sleep(world.timers, lookMs);
  }
  throw new Error(`demo: ${url} is not reached through Envoy; start the demo without envoy on PATH`);
}

function isReached(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const outgoing = request(url, { agent: false, timeout: 1000 }, (incoming) => {
      incoming.resume();
      resolve(incoming.statusCode === 200);
    });
    outgoing.once('timeout', () => outgoing.destroy());
    outgoing.once('error', () => resolve(false));
    outgoing.end();
  });
}
