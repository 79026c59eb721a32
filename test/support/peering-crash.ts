// A consumer killed with -9 at random moments of a sync: its peering process, its home, or both. The owner is the foreign
// one, which waits for each answer and so knows exactly what was acknowledged: none of that may be missing or older
// afterwards.

import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { type PeerService, peerServiceType } from '../../src/peering/kinds/peer-service.ts';
import { meshCardName } from '../../src/peering/rules/peer-introduction.ts';
import { meshOf } from '../../src/peering/testing/edge/mesh.ts';
import { startForeignOwner } from '../foreign-peer/owner.ts';
import { startApi } from './api-process.ts';
import { startPeeringProcess } from './peering-process.ts';

export type Victim = 'peering' | 'home' | 'both';

export interface CrashOptions {
  /** The processes to kill, in turn. */
  readonly victims: readonly Victim[];
  readonly folder: string;
  readonly kills: number;
  readonly services: number;
  readonly random: () => number;
  readonly onKill?: (kill: number, acknowledged: number) => void;
}

const namespace = 'portolan-system';
/** Before each kill. */
const acknowledgedMin = 20;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Throws at the first thing that was acknowledged and is not there. Returns how many acknowledgements were checked. */
export async function crashRun(options: CrashOptions): Promise<{ checked: number; killed: Record<Victim, number> }> {
  const foreign = meshOf('foreign.example');
  let api = await startApi({ data: options.folder });
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  const start = () => startPeeringProcess({ kubeconfig: api.kubeconfig, trustDomain: 'ours.example' });
  let peering = await start();
  const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', isNamespaced: true };
  const card = await client.get(configMaps, { namespace, name: meshCardName });
  const { certificate: cert, key } = foreign.issue();
  const owner = await startForeignOwner({
    cert,
    key,
    ca: (card['data'] as Record<string, string>)['bundle'] as string,
  });
  const held = async () => {
    const { items } = await client.list<PeerService>(peerServiceType, { namespace });
    return new Map(items.map(({ spec }) => [spec.id, Number(spec.description ?? 0)]));
  };
  const idOf = (n: number) => `s${n}.foreign.example`;
  let version = 0;
  const put = (n: number) =>
    owner.put({
      id: idOf(n),
      fqdn: idOf(n),
      san: 'spiffe://foreign.example/w',
      protocols: ['http'],
      endpoints: [{ address: '192.0.2.1', port: 1 }],
      description: String((version += 1)),
    });
  for (let n = 0; n < options.services; n += 1) put(n);
  await client.create(peerType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: { name: 'foreign', namespace },
    spec: {
      address: `127.0.0.1:${owner.port}`,
      trust: { domain: 'foreign.example', bundle: foreign.certificate },
      allowedDomains: ['foreign.example'],
      foreign: { quietSeconds: 3600 },
    },
  });
  let checked = 0;
  const killed = { peering: 0, home: 0, both: 0 };
  try {
    for (let kill = 0; kill < options.kills; kill += 1) {
      const until = performance.now() + options.random() * 800;
      // On a busy machine nothing may have been acknowledged by then, and the kill would show nothing.
      while (performance.now() < until || owner.acknowledged.size < acknowledgedMin) {
        put(Math.floor(options.random() * options.services));
        await sleep(1);
      }
      const victim = options.victims[kill % options.victims.length] as Victim;
      killed[victim] += 1;
      if (victim !== 'home') peering.child.kill('SIGKILL');
      if (victim !== 'peering') api.child.kill('SIGKILL');
      const acknowledged = new Map(owner.acknowledged);
      if (victim !== 'peering') {
        await api.stop();
        api = await startApi({ data: options.folder, port: api.port });
      }
      const after = await held();
      for (const [id, description] of acknowledged) {
        checked += 1;
        const found = after.get(id);
        if (found === undefined || found < Number(description))
          throw new Error(
            `kill ${kill} of ${victim}: ${id} was acknowledged at ${description}, and is ${found} on disk`,
          );
      }
      options.onKill?.(kill, acknowledged.size);
      if (victim !== 'home') {
        peering = await start();
        await waitFor(() => owner.heard.lastIndexOf('register') > owner.heard.lastIndexOf('killed'), 20_000);
        owner.heard.push('killed');
      }
    }
    await waitFor(async () => {
      const now = await held();
      return now.size === options.services && [...owner.acknowledged].every(([id, d]) => now.get(id) === Number(d));
    }, 60_000);
    return { checked, killed };
  } finally {
    await peering.stop('SIGKILL');
    client.close();
    await owner.close();
    await api.stop();
  }
}

async function waitFor(condition: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`did not happen within ${withinMs} ms: ${condition}`);
    await sleep(20);
  }
}
