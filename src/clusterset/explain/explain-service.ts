// Explains one service of a clusterset: every field, what each cluster exports, who takes part in the merge and why. Pure.

import type { StalenessPolicy } from '../kinds/cluster-set.ts';
import type { ServiceShard } from '../kinds/service-shard.ts';
import { homeAwayOf } from '../rules/leases/home-away.ts';
import { type LeaseMemory, whyNotTrusted } from '../rules/leases/lease-memory.ts';
import { offeredEndpoints } from '../rules/leases/staleness.ts';
import { explainMerge, type MergeExplanation } from '../rules/merge/explain-merge.ts';
import { readShard, recordProblem } from '../rules/shard-record.ts';
import { type ClusterFacts, predict } from './predict.ts';
import { brokerFacts, type MemberState, type SetState } from './set-state.ts';

/** Nothing of it is imported: no cluster exports it, or all that do are withdrawn. */
export class NotExported extends Error {
  readonly kind: 'unknown' | 'withdrawn';

  constructor(kind: NotExported['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface ServiceExplanation extends MergeExplanation {
  readonly service: string;
  readonly type: string;
  /** Why the decider decides what cannot be combined. */
  readonly why: string;
  readonly ports: string;
  /** Limits of a name that leads to endpoints, for the reader. */
  readonly nameNote: string | undefined;
  readonly standings: readonly ClusterExplanation[];
  /** The way from the asking cluster to each of them; absent where all are in one network. */
  readonly reached?: string;
  /** Clusters that are ready at home and do not answer from here. */
  readonly unanswered?: string;
  /** Which clusters new connections from the reader go to, if they are not all alike. */
  readonly routed?: string;
  /** Its name in the reader's cluster, if that is another one. */
  readonly importedAs?: string;
  /** Who has a say over that, in the order of precedence. */
  readonly precedence?: readonly string[];
  /** Whether calls into the reader's cluster are limited, and who is refused at this service there. */
  readonly access?: readonly string[];
}

interface ClusterExplanation {
  readonly cluster: string;
  readonly lease: 'alive' | 'stale';
  /** Since when it is stale, until when it is held down; absent if it lives and has not been away lately. */
  readonly memory: LeaseMemory | undefined;
  /** RFC 3339: its agent has had no answer from its home since then. */
  readonly homeAwaySince: string | undefined;
  /** Whether its export takes part in the merge. */
  readonly isCounted: boolean;
  /** Set if its record cannot be counted, whatever its lease: why. */
  readonly problem: string | undefined;
  /** Those that are offered to others: none while the cluster is not trusted. */
  readonly readyEndpoints: number | undefined;
  readonly exportTo: readonly string[] | undefined;
  /** Whether new connections go elsewhere. */
  readonly isDraining: boolean;
}

export function explainService(state: SetState, key: string): ServiceExplanation {
  const facts = brokerFacts(state);
  const prediction = predict(facts, state.policy);
  const counted = prediction.counted(key);
  const members = new Map(state.members.map((member) => [member.id, member]));
  const shards = counted.map(({ cluster, record }) => readShard(record, cluster));
  const explanation = explainMerge({ shards, ports: state.policy.ports });
  if (explanation === undefined) throw notExported(state, key);
  return {
    service: key,
    type: prediction.merge(key)?.type ?? '',
    why: whyDecides(explanation),
    ports: state.policy.ports,
    nameNote: nameNote(state, explanation),
    ...explanation,
    standings: facts.flatMap((one) =>
      explainCluster(one, key, {
        policy: state.policy.staleness,
        counted: new Set(counted.map(({ cluster }) => cluster)),
        member: members.get(one.id),
      }),
    ),
  };
}

function notExported({ members }: SetState, key: string): Error {
  const withdrawn = members.filter(({ shards, verdict }) => shards.has(key) && verdict === 'stale');
  const why = withdrawn.map(({ id, memory }) => `cluster ${id} exports it, and ${whyNotTrusted(memory)}`);
  for (const { id, shards } of members) {
    const record = shards.get(key);
    const problem = record && recordProblem(record);
    if (problem !== undefined) why.push(`cluster ${id} exports it, and its record ${problem}`);
  }
  const unread = members.filter(({ problem }) => problem !== undefined).map(({ id }) => `cluster ${id} cannot be read`);
  if (why.length > 0) {
    return new NotExported('withdrawn', `service ${key} is withdrawn: ${[...why, ...unread].join('; ')}`);
  }
  const but = unread.length === 0 ? '' : ` (but ${unread.join(', ')})`;
  return new NotExported('unknown', `service ${key}: no cluster of the clusterset exports it${but}`);
}

interface ExplanationFacts {
  readonly policy: StalenessPolicy;
  readonly counted: ReadonlySet<string>;
  readonly member: MemberState | undefined;
}

function explainCluster(
  facts: ClusterFacts,
  key: string,
  { policy, counted, member }: ExplanationFacts,
): ClusterExplanation[] {
  const record: ServiceShard | undefined = facts.left?.get(key);
  if (record === undefined) return [];
  const { exportTo } = record.spec;
  const readyEndpoints = offeredEndpoints(record, { verdict: facts.verdict, policy });
  const isCounted = counted.has(facts.id);
  const problem = recordProblem(record);
  const isDraining = facts.isDraining === true || record.spec.draining === true;
  const known = { memory: member?.memory, homeAwaySince: homeAwayOf(member?.lease)?.since };
  return [
    { cluster: facts.id, lease: facts.verdict, ...known, isCounted, problem, readyEndpoints, exportTo, isDraining },
  ];
}

// Without a clusterset IP the name leads to endpoints, and each listens on the port that its own cluster has.
function nameNote({ policy }: SetState, { clusters }: MergeExplanation): string | undefined {
  if (policy.clusterSetIps !== 'none') return undefined;
  const serving = clusters.filter(({ isPartOfImport }) => isPartOfImport);
  const isUneven = new Set(serving.map(({ serves }) => serves.join())).size > 1;
  const but = isUneven ? ' Clusters serve different ports: an address may be of one that lacks the port you want.' : '';
  return `A and AAAA of this name are endpoints and do not say their ports: ask for SRV of the port you want.${but}`;
}

function whyDecides({ clusters, decider }: MergeExplanation): string {
  const [first, second] = clusters;
  if (second === undefined) return 'nobody else exports it';
  const isTie = Date.parse(first?.exportedAt ?? '') === Date.parse(second.exportedAt);
  return isTie
    ? `exported at ${first?.exportedAt} like that of ${second.cluster}, and ${decider} is first by cluster id`
    : `the oldest export, of ${first?.exportedAt}`;
}
