// External services in a cluster of the demo: the parts that every agent runs for them, those made at the broker included.

import type { Log } from '../../base/log.ts';
import type { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { runBrokerCopies } from '../../external/controllers/broker-copies.ts';
import type { Client } from '../../kube/client/client.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { startExternal } from '../agent/external.ts';

interface DemoExternalDeps {
  readonly world: World;
  readonly log: Log;
  readonly parts: Parts;
}

interface DemoMemberClients {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: Pick<MembershipRecord, 'clusterset' | 'clusterId'>;
}

export function startDemoExternal(
  { world, log, parts }: DemoExternalDeps,
  { home, broker, membership }: DemoMemberClients,
): void {
  const { clusterset, clusterId: cluster } = membership;
  const external = startExternal({
    ...{ world, log, home, membership: () => membership },
    whenMembershipKnown: async () => {},
  });
  parts.add(`${cluster}: external services`, () => external.stop());
  const place = { clusterset, cluster };
  const copies = runBrokerCopies({ world, log, home, broker, namespace: systemNamespace, place });
  parts.add(`${cluster}: copies of the broker's external services`, () => copies.stop());
}
