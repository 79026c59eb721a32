// Whether a whole cluster refuses calls that no export allows, from the reports of its node proxies. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { WantedCondition } from '../../../kube/objects/conditions.ts';
import type { Lease } from '../../../kube/objects/lease.ts';
import { isForgotten, partLabel, partState } from '../../../kube/objects/part-lease.ts';
import { type Refusal, readAccessReport } from '../../../kube/objects/reports/access-report.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';

/** Condition of a Cluster: whether it limits calls into it as the set or its own home asks. */
export const enforcedCondition = 'AccessEnforced';

export interface NodeProblem {
  readonly node: string;
  /** Unknown: it did enforce, and has not reported lately. */
  readonly isUnknown: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface Enforcement {
  readonly mode: Exclude<AccessMode, 'Open'>;
  /** Nodes that enforce. */
  readonly nodes: number;
  /** Nodes that do not, or of which it is not known, by name. */
  readonly problems: readonly NodeProblem[];
  /** Refused callers on all nodes, the most frequent first. */
  readonly refused: readonly Refusal[];
  /** Ports of Pods with a node's own address that no export names, which stay open. */
  readonly uncovered: number;
}

export interface EnforcementInput {
  readonly mode: AccessMode;
  /** Leases of node proxies and others. */
  readonly leases: Iterable<Lease>;
  /** Names of all nodes; undefined if they could not be read. */
  readonly nodes: readonly string[] | undefined;
  readonly nowMs: number;
}

const refusedMax = 50;

/** Undefined while access is open. */
export function enforcementOf({ mode, leases, nodes, nowMs }: EnforcementInput): Enforcement | undefined {
  if (mode === 'Open') return undefined;
  const known = new Set<string>();
  const problems: NodeProblem[] = [];
  const refusals = new Map<string, Refusal>();
  let enforcing = 0;
  let uncovered = 0;
  for (const lease of leases) {
    if (lease.metadata.labels?.[partLabel] !== 'proxy' || isForgotten(lease, nowMs)) continue;
    const { kind, node: name } = partState(lease, nowMs);
    const node = name || lease.metadata.name;
    known.add(node);
    const problem = problemOf(lease, { mode, isSilent: kind === 'silent' });
    if (problem === undefined) enforcing += 1;
    else problems.push({ node, ...problem });
    const report = readAccessReport(lease);
    uncovered = Math.max(uncovered, report?.uncovered ?? 0);
    for (const refusal of report?.refused ?? []) addRefusal(refusals, refusal);
  }
  for (const node of nodes ?? [])
    if (!known.has(node))
      problems.push({ node, isUnknown: false, reason: 'NoProxy', message: 'no portolan proxy runs there' });
  if (known.size === 0 && problems.length === 0)
    problems.push({ node: '', isUnknown: false, reason: 'NoProxy', message: 'no portolan proxy reports here' });
  const refused = [...refusals.values()].sort((a, b) => b.packets - a.packets).slice(0, refusedMax);
  problems.sort((a, b) => compareText(a.node, b.node));
  return { mode, nodes: enforcing, problems, refused, uncovered };
}

function problemOf(
  lease: Lease,
  { mode, isSilent }: { readonly mode: AccessMode; readonly isSilent: boolean },
): Omit<NodeProblem, 'node'> | undefined {
  const report = readAccessReport(lease);
  if (report === undefined)
    return { isUnknown: false, reason: 'NotReported', message: 'its proxy reports nothing about access' };
  if (!report.isEnforced) return { isUnknown: false, reason: report.reason, message: report.message };
  if (report.mode !== mode)
    return { isUnknown: false, reason: 'OtherMode', message: `its proxy still goes by ${report.mode}` };
  if (!isSilent) return undefined;
  const message = 'its proxy is silent: the rules that it wrote last stay, later changes are not applied there';
  return { isUnknown: true, reason: 'Silent', message };
}

function addRefusal(refusals: Map<string, Refusal>, refusal: Refusal): void {
  const key = JSON.stringify([refusal.from, refusal.service, refusal.port]);
  const before = refusals.get(key);
  const lastAt = before !== undefined && before.lastAt > refusal.lastAt ? before.lastAt : refusal.lastAt;
  refusals.set(key, { ...refusal, lastAt, packets: refusal.packets + (before?.packets ?? 0) });
}

const namedMax = 5;

export function enforcedWanted(enforcement: Enforcement | undefined): WantedCondition {
  const type = enforcedCondition;
  if (enforcement === undefined)
    return { type, status: 'False', reason: 'Open', message: 'access is Open: an export limits imports alone' };
  const { mode, nodes, problems } = enforcement;
  const [first] = problems.filter(({ isUnknown }) => !isUnknown);
  const message = problems.length === 0 ? '' : describeProblems(problems);
  if (first !== undefined) return { type, status: 'False', reason: reasonOf(first), message };
  if (problems.length > 0) return { type, status: 'Unknown', reason: reasonOf(problems[0]!), message };
  if (mode === 'Audit')
    return { type, status: 'False', reason: 'Audit', message: 'calls that no export allows are counted and pass' };
  const on = nodes === 1 ? 'the one node that reports' : `all ${nodes} nodes`;
  return { type, status: 'True', reason: 'Enforced', message: `calls that no export allows are refused on ${on}` };
}

/** A Lease may name anything; the API server takes no other reasons. */
function reasonOf({ reason }: NodeProblem): string {
  return /^[A-Za-z][A-Za-z0-9]{0,63}$/.test(reason) ? reason : 'NotEnforced';
}

/** Nodes with the same problem together. */
export function describeProblems(problems: readonly NodeProblem[]): string {
  const groups = Map.groupBy(problems, ({ message }) => message);
  return [...groups]
    .map(([message, group]) => {
      const names = group.map(({ node }) => node).filter(Boolean);
      const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
      return names.length === 0 ? message : `${names.slice(0, namedMax).join(', ')}${more}: ${message}`;
    })
    .join('; ');
}

/** Why a call was refused, in a sentence such as `west is refused at shop/db, port 8080/tcp: not exported to it`. */
export function describeRefusal(
  { from, service, port, byPolicy }: Refusal,
  { mode, isExported }: { readonly mode: AccessMode; readonly isExported: (service: string) => boolean },
): string {
  const verb = mode === 'Audit' ? 'would be refused' : 'is refused';
  const why = !service.includes('/')
    ? 'no Service has this port there'
    : byPolicy
      ? 'no ServiceAccessPolicy lets its packets in'
      : isExported(service)
        ? 'not exported to it'
        : 'not exported';
  return `${from} ${verb} at ${service}, port ${port}: ${why}`;
}
