// Parts that fall silent, killed or frozen with their connections kept, and how soon a person at west is told. The time counts
// from the fault to the start of the first command that tells, and to the first condition that does.

import { silentLog } from '../../src/base/log.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { watchAllAuthorities } from '../../src/federation/authority-watch.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import { keepPartLease } from '../../src/kube/controller/part-lease.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import type { Condition, KubernetesObject } from '../../src/kube/objects/object.ts';
import { type PartName, partRenewMs } from '../../src/kube/objects/part-lease.ts';
import { setName } from '../clusterset.ts';
import type { Watched } from './fault.ts';
import { ref, type Scene } from './scene.ts';

export interface Silence {
  readonly what: string;
  /** A line of status that tells it. */
  readonly says: RegExp;
  /** Ready of this object becomes Unknown. */
  readonly condition?: Watched;
  readonly make: (scene: Scene) => Promise<void> | void;
}

const exported: Watched = { at: 'home', type: serviceExportType, ref };

const nameOf = { dns: 'resolver', proxy: 'proxy', peering: 'peering process' } as const;

/** It has run for a while, and renewed at this moment. */
async function partFrozen({ set }: Scene, part: PartName): Promise<void> {
  const world = set.simulation.world(`${part}-west`);
  keepPartLease({ client: set.home('west').clientOf(world), world, log: silentLog, part, id: 'n1', node: 'n1' });
  await set.time.advance(10 * partRenewMs + 100);
  world.revoke();
}

const cut = ({ set }: Scene, from: string, to: string) =>
  set.simulation.network.setLink(from, set.home(to).url, 'silent');

export const silences: readonly Silence[] = [
  {
    what: 'the home of another cluster is killed',
    says: /PTL0207 home of cluster east/,
    make: ({ set }) => set.home('east').kill(),
  },
  {
    what: 'the home of another cluster is frozen',
    says: /PTL0207 home of cluster east/,
    make: (scene) => cut(scene, 'agent-east', 'east'),
  },
  {
    what: 'the home of this cluster is frozen',
    says: /no answer within|does not answer/,
    make: (scene) => cut(scene, 'agent-west', 'west'),
  },
  { what: 'the broker is killed', says: /PTL0201/, condition: exported, make: ({ set }) => set.broker.kill() },
  {
    what: 'the broker is frozen',
    says: /PTL0201/,
    condition: exported,
    make: (scene) => {
      for (const from of ['agent-east', 'agent-west']) cut(scene, from, 'broker');
    },
  },
  {
    what: 'the agent of another cluster is frozen',
    says: /PTL0202 agent of cluster east/,
    make: ({ set }) => set.killAgent('east'),
  },
  {
    what: 'the link of another cluster to the broker is cut',
    says: /PTL0202 agent of cluster east/,
    make: (scene) => cut(scene, 'agent-east', 'broker'),
  },
  ...(['dns', 'proxy', 'peering'] as const).map((part) => ({
    what: `the ${nameOf[part]} of this cluster is frozen`,
    says: new RegExp(`PTL0(501|902|601) ${part} on n1`),
    make: (scene: Scene) => partFrozen(scene, part),
  })),
  {
    what: 'the authority of a federation is frozen',
    says: /PTL0505 Federation prod\/world/,
    condition: { at: 'broker', type: federationType, ref: { namespace: setName, name: 'world' } },
    // Its last report is of this moment.
    make: async ({ set, desk }) => {
      watchAllAuthorities({ client: set.broker.admin, world: set.simulation.world('home-broker'), log: silentLog });
      const metadata = { name: 'world', namespace: setName };
      await set.broker.admin.create(federationType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Federation',
        metadata,
        spec: {},
      });
      const time = new Date(desk.deps.world.clock.wallMs()).toISOString();
      const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: time };
      const body = { status: { authority: { renewTime: time }, conditions: [ready] } };
      await set.broker.admin.patch(federationType, metadata, { kind: 'merge', body }, { subresource: 'status' });
    },
  },
];

export async function isConditionOld({ desk, set }: Scene, { at, type, ref }: Watched): Promise<boolean> {
  const client = at === 'home' ? desk.home : set.broker.admin;
  const { status } = await client.get<KubernetesObject & { status?: { conditions?: Condition[] } }>(type, ref);
  return conditionOf(status?.conditions, 'Ready')?.status === 'Unknown';
}
