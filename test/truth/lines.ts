// Makes comparable lines of what status, doctor, the dashboard and conditions say. Pure. A finding is its code, its subject and the
// places that see it in brackets; addresses of this machine become the names of parts.

import { hostname } from 'node:os';
import type { JudgedStatus } from '../../src/cli/health/status-report.ts';
import type { Changes, CollectionName, Collections } from '../../src/dashboard/wire/rows.ts';
import type { Diagnosis } from '../../src/doctor/diagnosis.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import type { Condition } from '../../src/kube/objects/object.ts';

export type Names = ReadonlyMap<string, string>;

/** `home east [east]`, `dns on [west]`, `ServiceExport shop/cart [west]`. */
function lineOf(
  names: Names,
  { code, subject, places }: { code: string; subject: string; places: readonly string[] },
): string {
  let text = subject;
  for (const [address, name] of names) text = text.replaceAll(address, name);
  return `${code} ${text.replaceAll(` ${hostname()}`, '')} [${places.join(' ')}]`;
}

const found = /^(PTL\d{4}) (.+?): /;

export function statusLines(names: Names, place: string, status: JudgedStatus): string[] {
  const findings = [...status.problems, ...status.warnings].map((text) => {
    const [, code = 'PTL????', subject = text] =
      found.exec(text.replace(/https:\/\/[^ ]+?(?=: |$)/, (url) => names.get(url) ?? url)) ?? [];
    return lineOf(names, { code, subject, places: [place] });
  });
  return unique([
    ...findings,
    ...status.stale.map(({ cluster }) => `stale ${cluster}`),
    ...(status.isIncomplete ? status.unchecked.map((why) => `incomplete ${why}`) : []),
    ...status.clusters.flatMap(({ id, problem }) => (problem === undefined ? [] : [`unread ${id}`])),
  ]);
}

export function doctorLines(names: Names, place: string, { findings, clusters }: Diagnosis): string[] {
  const away = clusters.every(({ reached }) => !reached);
  return unique([
    ...(away ? ['away'] : []),
    ...findings.map(({ code, subject }) => lineOf(names, { code, subject, places: [place] })),
  ]);
}

/** Rows as the stream of the dashboard has sent them. */
export class DashboardRows {
  readonly #rows = new Map<CollectionName, Map<string, unknown>>();

  apply(changes: Changes): void {
    for (const [name, rows] of Object.entries(changes) as [CollectionName, Record<string, unknown>][]) {
      const held = this.#rows.get(name) ?? new Map<string, unknown>();
      this.#rows.set(name, held);
      for (const [id, row] of Object.entries(rows)) {
        if (row === null) held.delete(id);
        else held.set(id, row);
      }
    }
  }

  lines(names: Names): string[] {
    const of = <Name extends CollectionName>(name: Name) =>
      [...(this.#rows.get(name)?.values() ?? [])] as Collections[Name][];
    const problems = of('problems').filter(({ severity }) => severity !== 'info');
    return unique([
      ...problems.map(({ code, subject, clusters }) => lineOf(names, { code, subject, places: clusters })),
      ...problems.flatMap(({ follows, clusters }) =>
        follows.map((text) => {
          const [, code = '', subject = ''] = found.exec(text) ?? [];
          return lineOf(names, { code, subject, places: clusters });
        }),
      ),
      ...of('homes').flatMap(({ name, state }) => (state === 'live' ? [] : [`home ${name} is ${state}`])),
      ...of('clusters').flatMap(({ id, health }) => (health === 'ok' ? [] : [`cluster ${id} is ${health}`])),
      ...of('services').flatMap(({ key, health }) => (health === 'ok' ? [] : [`service ${key} is ${health}`])),
    ]);
  }
}

interface Judged {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string; readonly name: string };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** Objects whose Ready is not True. */
export function conditionLines(kind: string, objects: readonly Omit<Judged, 'kind'>[]): string[] {
  return objects.flatMap(({ metadata, status }) => {
    const ready = conditionOf(status?.conditions, 'Ready');
    if (ready?.status === 'True') return [];
    return [`${kind} ${metadata.namespace}/${metadata.name} Ready=${ready?.status ?? 'none'} ${ready?.reason ?? ''}`];
  });
}

function unique(lines: readonly string[]): string[] {
  return [...new Set(lines)].sort();
}
