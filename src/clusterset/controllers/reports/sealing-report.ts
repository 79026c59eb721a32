// Reports the public key of this cluster at the broker, and in the condition SealedExports whether sealing works: the status
// of the own Cluster.

import { conditionOf, formatTime, withConditions } from '../../../kube/objects/conditions.ts';
import type { SealingKeys } from '../../copies/sealing-keys.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import type { MemberFollower } from '../../members/follower.ts';
import { type SealingFacts, sealingCondition, sealingWanted } from '../../rules/sealing/sealing-condition.ts';
import { createReporter, patchOwnStatus, type Reporter, type ReportOptions } from './reporter.ts';

export interface SealingReportOptions extends ReportOptions {
  readonly members: () => MemberFollower;
  readonly keys: SealingKeys;
  readonly isAllowed: () => boolean;
}

export function createSealingReporter(options: SealingReportOptions): Reporter {
  const { world, log, members, keys, isAllowed } = options;
  const ownKey = `${options.clusterset}/${options.clusterId}`;

  async function report(): Promise<void> {
    const own = members().clusters.get(ownKey);
    if (own === undefined) return;
    const present = own.status?.conditions ?? [];
    if (!isAllowed()) {
      if (conditionOf(present, sealingCondition) === undefined) return;
      const conditions = present.filter(({ type }) => type !== sealingCondition);
      return patchOwnStatus(options, { conditions, sealingKey: null }, own.metadata.resourceVersion);
    }
    const sealingKey = keys.own && Buffer.from(keys.own.publicKey).toString('base64');
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: own.metadata.generation };
    const conditions = withConditions(present, [sealingWanted(factsOf(own))], stamp);
    if (conditions === present && sealingKey === own.status?.sealingKey) return;
    await patchOwnStatus(options, { conditions: [...conditions], sealingKey }, own.metadata.resourceVersion);
    log.info('reported the key of this cluster for sealed exports', { fingerprint: keys.own?.fingerprint });
  }

  function factsOf(own: Cluster): SealingFacts {
    const others = members()
      .all()
      .filter(({ id }) => id !== options.clusterId);
    const untrusted = others.flatMap(({ id, cluster }) => {
      const key = keys.keyOf(cluster);
      return key.kind === 'trusted' ? [] : [{ cluster: id, isChanged: key.reason === 'KeyChanged', why: key.why }];
    });
    const refused = others.flatMap(({ id, cluster }) => {
      const found = members().sealed?.refusedIn(cluster.spec.namespace);
      const [why] = found?.values() ?? [];
      return why === undefined ? [] : [{ cluster: id, count: found!.size, why }];
    });
    const { problem, own: pair } = keys;
    const confirmed = own.spec.sealingKey;
    return { cluster: own.metadata.name, problem, fingerprint: pair?.fingerprint, confirmed, untrusted, refused };
  }

  return createReporter(options, { what: 'the key of this cluster', report });
}
