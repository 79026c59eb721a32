// What ServiceAccessPolicies say about the callers of exported services. The agent copies them into the ConfigMap that data planes
// read. Pure. What cannot be read admits nobody.

import { compareText } from '../../../base/compare-text.ts';
import { isObject, type JsonObject } from '../../../base/json.ts';
import type { ConfigMap } from '../../../kube/objects/config-map.ts';
import type { ServiceAccessPolicy } from '../../kinds/service-access-policy.ts';
import { mayUse } from '../../kinds/service-shard.ts';
import type { ExportAccess } from './export-access.ts';

/** One policy, as data planes have it. */
export interface CallerRule {
  readonly namespace: string;
  /** All of the namespace if absent. */
  readonly services?: readonly string[];
  /** By id of a cluster: the namespaces that may call, or all of them. Empty admits nobody. */
  readonly from: ReadonlyMap<string, 'all' | readonly string[]>;
}

/** Data planes hold them all, and a ConfigMap has room for a megabyte. */
const textLengthMax = 600_000;

export function ruleOf({ metadata, spec }: ServiceAccessPolicy): CallerRule {
  return readRule({ namespace: metadata.namespace, services: spec?.services, from: listed(spec?.from) });
}

/** Several entries of one cluster add up. */
function listed(from: unknown): Record<string, 'all' | string[]> {
  const found: Record<string, 'all' | string[]> = Object.create(null);
  for (const entry of Array.isArray(from) ? from : []) {
    if (!isObject(entry) || typeof entry['cluster'] !== 'string') continue;
    const { cluster, namespaces } = entry as { cluster: string; namespaces?: unknown };
    const before = found[cluster] ?? [];
    // Present and no list of names: a mistake, which admits nobody.
    const more = namespaces === undefined ? 'all' : textsIn(namespaces);
    found[cluster] = before === 'all' || more === 'all' ? 'all' : [...new Set([...before, ...more])].sort();
  }
  return found;
}

function readRule({ namespace, services, from }: JsonObject): CallerRule {
  const entries = isObject(from) ? Object.entries(from) : [];
  return {
    namespace: typeof namespace === 'string' ? namespace : '',
    ...(services === undefined || services === null ? {} : { services: textsIn(services) }),
    from: new Map(entries.map(([cluster, names]) => [cluster, names === 'all' ? 'all' : textsIn(names)])),
  };
}

/** Those that have room; the namespaces of the others are closed. */
export function callersData(rules: readonly CallerRule[]): { readonly callers?: string; readonly closed: string[] } {
  const texts: string[] = [];
  const closed = new Set<string>();
  let length = 0;
  for (const rule of rules) {
    const text = JSON.stringify({ ...rule, from: Object.fromEntries(rule.from) });
    length += text.length + 1;
    if (length <= textLengthMax) texts.push(text);
    else closed.add(rule.namespace);
  }
  for (const namespace of closed) texts.push(JSON.stringify({ namespace, from: {}, isClosed: true }));
  return { ...(texts.length > 0 && { callers: `[${texts.join()}]` }), closed: [...closed] };
}

export class Callers {
  readonly text: string;
  /** By namespace; undefined admits nobody anywhere, because they cannot be read. */
  readonly #rules: ReadonlyMap<string, readonly (CallerRule & { isClosed?: true })[]> | undefined;

  constructor(text: string) {
    this.text = text;
    this.#rules = readRules(text);
  }

  /** Undefined for a service that no policy selects. */
  of(service: string): ReadonlyMap<string, 'all' | ReadonlySet<string>> | undefined {
    if (this.#rules === undefined) return new Map();
    const [namespace, name] = service.split('/') as [string, string];
    const rules = this.#rules.get(namespace)?.filter(({ services }) => services?.includes(name) ?? true) ?? [];
    if (rules.length === 0) return undefined;
    const found = new Map<string, 'all' | Set<string>>();
    if (rules.some(({ isClosed }) => isClosed)) return found;
    for (const { from } of rules)
      for (const [cluster, names] of from) {
        const before = found.get(cluster) ?? new Set<string>();
        if (names === 'all' || before === 'all') found.set(cluster, 'all');
        else found.set(cluster, new Set([...before, ...names]));
      }
    return found;
  }

  /** Namespaces in which the two differ; undefined is any. */
  differs(other: Callers): ReadonlySet<string> | undefined {
    const [mine, theirs] = [this.#rules, other.#rules];
    if (mine === undefined || theirs === undefined) return undefined;
    const text = (rules: readonly CallerRule[] | undefined) =>
      JSON.stringify(rules?.map((rule) => ({ ...rule, from: [...rule.from] })));
    const all = new Set([...mine.keys(), ...theirs.keys()]);
    return new Set([...all].filter((namespace) => text(mine.get(namespace)) !== text(theirs.get(namespace))));
  }
}

function readRules(text: string): Map<string, (CallerRule & { isClosed?: true })[]> | undefined {
  if (text === '') return new Map();
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value) || !value.every(isObject)) return undefined;
    const rules = value.map((one) => ({
      ...readRule(one),
      ...(one['isClosed'] === true && { isClosed: true as const }),
    }));
    return Map.groupBy(rules, ({ namespace }) => namespace);
  } catch {
    return undefined;
  }
}

export const noCallers: Callers = new Callers('');

export function readCallers(written: Pick<ConfigMap, 'data'> | undefined): Callers {
  const text = written?.data?.['callers'] ?? '';
  return text === '' ? noCallers : new Callers(text);
}

export interface CallerAccess extends ExportAccess {
  /** Namespaces that may call, of clusters that are not in `exportTo`. Only an identity shows them. */
  readonly namespaces: ReadonlyMap<string, readonly string[]>;
}

const none: ReadonlyMap<string, readonly string[]> = new Map();

/** What the export allows and a policy admits. A packet shows its cluster alone, so namespaces are apart. */
export function callersOf(access: ExportAccess, service: string, callers: Callers): CallerAccess {
  const admitted = callers.of(service);
  if (admitted === undefined) return { ...access, namespaces: none };
  const { exportTo } = access;
  const allowed = [...admitted].filter(([id]) => mayUse(exportTo && [...exportTo], { exporter: '', reader: id }));
  allowed.sort(([one], [other]) => compareText(one, other));
  return {
    exportTo: allowed.filter(([, names]) => names === 'all').map(([id]) => id),
    namespaces: new Map(
      allowed.flatMap(([id, names]) => (names === 'all' || names.size === 0 ? [] : [[id, [...names].sort()] as const])),
    ),
  };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
