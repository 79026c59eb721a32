// The conditions of a ServiceAccessPolicy: whether it names anybody, and whether each of its rules can be enforced here. Pure.

import { conditionOf, type WantedCondition } from '../../../kube/objects/conditions.ts';
import type { Condition } from '../../../kube/objects/object.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { enforcedCondition } from '../access/enforcement.ts';
import type { SetNetworks } from '../networks/networks.ts';
import type { CallerRule } from './callers.ts';

export interface PolicyFacts {
  readonly rule: CallerRule;
  /** Data planes have no room for it: nobody may call anything in its namespace. */
  readonly isClosed: boolean;
  /** Ids of all members. */
  readonly members: ReadonlySet<string>;
  /** This cluster. */
  readonly self: string;
  readonly networks: SetNetworks;
  /** How packets are limited; undefined while that is not known. */
  readonly mode: AccessMode | undefined;
  /** Conditions of this cluster's own Cluster. */
  readonly conditions: readonly Condition[] | undefined;
  /** Names of discovery servers that do not apply policies. */
  readonly olderServers: readonly string[];
  /** Names of node proxies that do not. */
  readonly olderProxies: readonly string[];
}

const namedMax = 5;

export function policyConditions(facts: PolicyFacts): WantedCondition[] {
  return [acceptedCondition(facts), enforcedHere(facts)];
}

function acceptedCondition({ rule, isClosed, members }: PolicyFacts): WantedCondition {
  const type = 'Accepted';
  const named = [...rule.from].filter(([, names]) => names === 'all' || names.length > 0);
  if (isClosed) {
    const message = `policies take more room than data planes have: nobody of other clusters may call services in namespace ${rule.namespace}; remove some`;
    return { type, status: 'False', reason: 'NoRoom', message };
  }
  if (named.length === 0) {
    const message = 'it names nobody: nobody of other clusters may call the services that it selects';
    return { type, status: 'False', reason: 'NamesNobody', message };
  }
  const strangers = [...rule.from.keys()].filter((id) => !members.has(id));
  if (strangers.length > 0)
    return {
      type,
      status: 'True',
      reason: 'NoSuchCluster',
      message: `no members of the clusterset: ${some(strangers)}`,
    };
  return { type, status: 'True', reason: 'Accepted', message: '' };
}

interface Problem {
  readonly isUnknown?: boolean;
  readonly reason: string;
  readonly message: string;
}

function enforcedHere(facts: PolicyFacts): WantedCondition {
  const type = 'Enforced';
  const problems = [...ofPackets(facts), ...ofGateways(facts)];
  const worst = problems.find(({ isUnknown }) => !isUnknown) ?? problems[0];
  const message = problems.map((problem) => problem.message).join('; ');
  if (worst === undefined) return { type, status: 'True', reason: 'Enforced', message: 'every rule is enforced' };
  return { type, status: worst.isUnknown ? 'Unknown' : 'False', reason: worst.reason, message };
}

/** Clusters of this network are known by their packets alone. */
function* ofPackets({
  rule,
  members,
  self,
  networks,
  mode,
  conditions,
  olderProxies,
}: PolicyFacts): Generator<Problem> {
  const direct = [...members].filter((id) => id !== self && !networks.clusters.has(id));
  if (direct.length === 0) return;
  if (mode === undefined) {
    yield { isUnknown: true, reason: 'Pending', message: 'it is not known yet whether packets are limited' };
    return;
  }
  if (mode !== 'Exported') {
    const message = `packets of ${some(direct)} pass whatever it says: access is ${mode}; set it to Exported`;
    yield { reason: 'PacketsPass', message };
    return;
  }
  const nodes = conditionOf(conditions, enforcedCondition);
  if (nodes?.status !== 'True') {
    const message = `packets of ${some(direct)}: ${nodes?.message ?? 'no node has reported yet that it refuses any'}`;
    yield { isUnknown: nodes?.status !== 'False', reason: 'NodesDoNotEnforce', message };
  }
  if (olderProxies.length > 0) {
    const message = `packets of ${some(direct)} pass where the export allows: portolan proxy is older than policies (${some(olderProxies)})`;
    yield { reason: 'OlderProxy', message };
  }
  const hidden = direct.filter((id) => isOfNamespaces(rule, id));
  if (hidden.length > 0) {
    const message = `${some(hidden)}: in this network, packets show no namespace, so all calls are refused`;
    yield { reason: 'NamespaceNotShown', message };
  }
}

function* ofGateways({ rule, networks, olderServers }: PolicyFacts): Generator<Problem> {
  if (networks.clusters.size === 0) return;
  if (olderServers.length > 0) {
    const message = `gateways let through what the export allows: portolan xds is older than policies (${some(olderServers)})`;
    yield { reason: 'OlderServer', message };
  }
  const hidden = [...networks.clusters.keys()].filter((id) => isOfNamespaces(rule, id)).sort();
  if (hidden.length === 0) return;
  const message = `${some(hidden)}: its proxies show no namespace to gateways, so all calls are refused`;
  yield { reason: 'NamespaceNotShown', message };
}

function isOfNamespaces({ from }: CallerRule, id: string): boolean {
  const names = from.get(id);
  return names !== undefined && names !== 'all';
}

function some(names: readonly string[]): string {
  const more = names.length - namedMax;
  return `${names.slice(0, namedMax).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
