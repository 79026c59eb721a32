// An agent without a home: the ten watches of a whole agent, the real copies, lease and judging, and nothing merged.

import { silentLog } from '../../src/base/log.ts';
import type { World } from '../../src/base/world.ts';
import { LeaseController } from '../../src/clusterset/controllers/lease.ts';
import { PolicyCopy } from '../../src/clusterset/copies/policy-copy.ts';
import { federatedServiceType } from '../../src/clusterset/kinds/federated-service.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { MemberFollower } from '../../src/clusterset/members/follower.ts';
import { timesFor } from '../../src/clusterset/rules/leases/heartbeat-rate.ts';
import { judgingRules } from '../../src/clusterset/rules/leases/observing.ts';
import { hostnameGeneratorType } from '../../src/external/kinds/hostname-generator.ts';
import { meshExternalServiceType } from '../../src/external/kinds/mesh-external-service.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { createInformer } from '../../src/kube/controller/informer.ts';
import { ApiError } from '../../src/kube/objects/api-error.ts';

export interface LightAgentOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly broker: Client;
  readonly clusterset: string;
  readonly clusterId: string;
  readonly namespace: string;
}

/** A home that keeps nothing: verdicts are not remembered. */
const noHome = {
  get: async () => {
    throw new ApiError('not kept', { code: 404, reason: 'NotFound' });
  },
  create: async (_type: unknown, object: unknown) => object,
  update: async (_type: unknown, object: unknown) => object,
} as unknown as Client;

const setKinds = [
  ...[serviceImportType, federatedServiceType, federationType],
  ...[meshExternalServiceType, hostnameGeneratorType],
];

export function startLightAgent(options: LightAgentOptions): { readonly members: MemberFollower } {
  const { world, broker, clusterset } = options;
  const shared = { ...options, log: silentLog };
  const members = new MemberFollower({ ...shared, hasEndpoints: true });
  const policy = new PolicyCopy({ ...shared, members });
  const at = { client: broker, world, log: silentLog, namespace: clusterset };
  const others = setKinds.map((type) => createInformer({ ...at, type }));
  const lease = new LeaseController({
    ...{ ...shared, members, home: noHome, systemNamespace: 'portolan-system', rules: judgingRules },
    times: () => timesFor(policy.current.lease, members.all().length),
    annotations: () => ({}),
    onVerdict: () => {},
    homeAwaySinceMs: () => undefined,
    onOtherHistory: () => {},
  });
  for (const part of [members, policy, ...others]) part.start();
  void begin();
  return { members };

  async function begin(): Promise<void> {
    await policy.whenSynced(new AbortController().signal);
    await members.whenSynced(new AbortController().signal);
    await lease.start();
  }
}
