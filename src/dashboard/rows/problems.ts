// Present problems by cause: findings of all clusters with doctor's codes, grouped by subject, with their
// consequences below them. Pure.

import type { Code } from '../../doctor/codes.ts';
import { severities } from '../../doctor/codes.ts';
import type { Finding, Skipped } from '../../doctor/diagnosis.ts';
import type { ProblemRow, SkipRow } from '../wire/rows.ts';

const servicesShownMax = 50;
const rowsMax = 500;

export interface ProblemInput {
  readonly findings: readonly Finding[];
  /** Services that a cluster exports. */
  readonly exportedBy: (cluster: string) => readonly string[];
}

export function problemRows({ findings, exportedBy }: ProblemInput): ProblemRow[] {
  const groups = Map.groupBy(findings, causeOf);
  const rows = [...groups].map(([id, group]) => rowOf(id, group, exportedBy));
  const roots: ProblemRow[] = [];
  const follows = new Map<string, string[]>();
  for (const row of rows) {
    const root = rootOf(row, rows);
    if (root === undefined) roots.push(row);
    else follows.set(root.id, [...(follows.get(root.id) ?? []), `${row.code} ${row.subject}: ${row.message}`]);
  }
  return roots
    .map((row) => ({ ...row, follows: (follows.get(row.id) ?? []).slice(0, servicesShownMax) }))
    .sort(worstFirst)
    .slice(0, rowsMax);
}

/** Many clusters see one cause; a conflict has an export in each of them. */
function causeOf({ code, subject, cluster }: Finding): string {
  const isOfSet = subject.includes('cluster ') || perService.has(code);
  return isOfSet ? `${code} ${subject}` : `${code} ${cluster} ${subject}`;
}

const perService: ReadonlySet<Code> = new Set<Code>(['PTL0302', 'PTL0504', 'PTL0505']);

/** The cause that this one follows from, if it was found. */
function rootOf({ code, subject, clusters }: ProblemRow, rows: readonly ProblemRow[]): ProblemRow | undefined {
  const silent = /^agent of cluster (.+)$/.exec(subject)?.[1];
  if (code === 'PTL0202' && silent !== undefined)
    return rows.find((row) => row.code === 'PTL0101' && row.clusters.includes(silent));
  const agentOf = (cluster: string) =>
    rows.find((row) => row.code === 'PTL0202' && row.subject === `agent of cluster ${cluster}`);
  const held = /^cluster (.+)$/.exec(subject)?.[1];
  if (code === 'PTL0203' && held !== undefined) return agentOf(held);
  if (code === 'PTL0304') return clusters.map(agentOf).find((row) => row !== undefined);
  return undefined;
}

function rowOf(id: string, group: readonly Finding[], exportedBy: ProblemInput['exportedBy']): ProblemRow {
  const [first] = group as readonly [Finding];
  const times = group.flatMap(({ since }) => (since === undefined ? [] : [Date.parse(since)]));
  const messages = [...new Set(group.map(({ message }) => message))];
  const hurt = hurtBy(first, exportedBy);
  return {
    id,
    code: first.code,
    severity: first.severity,
    title: first.title,
    subject: first.subject,
    message: perService.has(first.code) ? first.message : messages.slice(0, 3).join('; '),
    means: first.means,
    fix: first.fix,
    sinceMs: times.length === 0 ? undefined : Math.min(...times),
    clusters: [...new Set(group.map(({ cluster }) => cluster))].sort(),
    follows: [],
    services: hurt.slice(0, servicesShownMax),
    serviceCount: hurt.length,
  };
}

function hurtBy({ code, subject, cluster }: Finding, exportedBy: ProblemInput['exportedBy']): readonly string[] {
  const key = /^(?:ServiceExport|Service) (\S+\/\S+)$/.exec(subject)?.[1];
  if (key !== undefined) return [key];
  const named = /^(?:agent of |home of )?cluster (\S+)$/.exec(subject)?.[1];
  if (named !== undefined) return exportedBy(named);
  return code === 'PTL0101' || code === 'PTL0102' ? exportedBy(cluster) : [];
}

function worstFirst(a: ProblemRow, b: ProblemRow): number {
  const rank = ({ severity }: ProblemRow) => severities.indexOf(severity);
  return rank(b) - rank(a) || b.serviceCount - a.serviceCount || (a.id < b.id ? -1 : 1);
}

/** Reasons, each once, with the checks it kept from running. */
export function skipRows(skipped: readonly Skipped[]): SkipRow[] {
  const groups = Map.groupBy(skipped, ({ cluster, why }) => `${cluster}: ${why}`);
  return [...groups.values()].map((group) => ({
    cluster: group[0]!.cluster,
    why: group[0]!.why,
    codes: group.map(({ code }) => code),
  }));
}
