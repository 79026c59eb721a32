// Which tuples each source cluster may call, service by service, and the difference that a round of changes makes. Pure: it
// never reads the kernel.

import { type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import type { AccessMode } from '../../clusterset/kinds/cluster-set.ts';
import type { SetAccess } from '../../clusterset/rules/access/set-access.ts';
import {
  formatSpan,
  type JudgedSources,
  judgeSources,
  type SourceSpan,
} from '../../clusterset/rules/access/sources.ts';
import { type Callers, callersOf, noCallers } from '../../clusterset/rules/exports/callers.ts';
import type { ExportAccess } from '../../clusterset/rules/exports/export-access.ts';
import type { Element } from '../nft/port-plan.ts';
import { chainOf, probeElements, setOf } from './names.ts';

export interface AccessConfig {
  readonly mode: AccessMode;
  readonly judged: JudgedSources;
  /** Ids of clusters that packets can be told to come from. */
  readonly clusters: readonly string[];
  readonly pods: readonly IpRange[];
  readonly closed: readonly string[];
}

/** Packets of the node to itself are nobody's. */
const loopback = ['127.0.0.0/8', '::1/128'];

export function configOf(access: SetAccess, nodeRanges: readonly string[]): AccessConfig {
  const pods = [...new Set([...access.podRanges, ...nodeRanges])];
  const judged = judgeSources({ sources: access.sources, own: [...pods, ...loopback] });
  return {
    mode: access.mode,
    judged,
    clusters: [...new Set(judged.spans.map(({ cluster }) => cluster).filter((id) => id !== ''))].sort(),
    pods: pods.map(parseRange).filter((range) => range !== undefined),
    closed: access.closedRanges,
  };
}

interface KnownSlice {
  readonly service: string;
  readonly tuples: readonly string[];
}

export interface PlanDifference {
  readonly added: readonly Element[];
  readonly deleted: readonly Element[];
}

const none: ReadonlySet<string> = new Set();

export class AccessPlan {
  #config: AccessConfig;
  #callers: Callers;
  readonly #exports = new Map<string, ExportAccess>();
  readonly #slices = new Map<string, KnownSlice>();
  /** Keys of slices by service. */
  readonly #slicesOf = new Map<string, Set<string>>();
  /** `SET KEY` by service. */
  readonly #elementsOf = new Map<string, ReadonlySet<string>>();
  /** How many services want an element. */
  readonly #uses = new Map<string, number>();
  /** Service behind a tuple; of several the last one that came. */
  readonly #serviceAt = new Map<string, string>();
  readonly #dirty = new Set<string>();
  #onDirty: () => void = () => {};

  constructor(config: AccessConfig, callers: Callers = noCallers) {
    this.#config = config;
    this.#callers = callers;
  }

  /** Only exports in namespaces whose policies differ are worked out anew. */
  setCallers(callers: Callers): void {
    if (callers.text === this.#callers.text) return;
    const namespaces = this.#callers.differs(callers);
    this.#callers = callers;
    for (const key of this.#exports.keys())
      if (namespaces?.has(key.slice(0, key.indexOf('/'))) ?? true) this.#mark(key);
  }

  onDirty(handler: () => void): void {
    this.#onDirty = handler;
  }

  get config(): AccessConfig {
    return this.#config;
  }

  /** Everything is worked out anew, and has to be written anew. */
  configure(config: AccessConfig): void {
    this.#config = config;
    this.#elementsOf.clear();
    this.#uses.clear();
    for (const key of this.#exports.keys()) this.#dirty.add(key);
  }

  setExport(service: string, access: ExportAccess | undefined): void {
    if (access === undefined) this.#exports.delete(service);
    else this.#exports.set(service, access);
    this.#mark(service);
  }

  exportKeys(): IterableIterator<string> {
    return this.#exports.keys();
  }

  setSlice(key: string, slice: KnownSlice | undefined): void {
    const before = this.#slices.get(key);
    if (before !== undefined) {
      this.#slicesOf.get(before.service)?.delete(key);
      for (const tuple of before.tuples)
        if (this.#serviceAt.get(tuple) === before.service) this.#serviceAt.delete(tuple);
      if (this.#exports.has(before.service)) this.#mark(before.service);
    }
    if (slice === undefined) {
      this.#slices.delete(key);
      return;
    }
    this.#slices.set(key, slice);
    const keys = this.#slicesOf.get(slice.service) ?? new Set();
    this.#slicesOf.set(slice.service, keys.add(key));
    for (const tuple of slice.tuples) this.#serviceAt.set(tuple, slice.service);
    if (this.#exports.has(slice.service)) this.#mark(slice.service);
  }

  sliceKeys(): IterableIterator<string> {
    return this.#slices.keys();
  }

  get tuples(): number {
    return this.#uses.size;
  }

  /** `namespace/name` of a Service with this tuple; undefined if none is known. */
  serviceAt(tuple: string): string | undefined {
    return this.#serviceAt.get(tuple);
  }

  /** Endpoints with addresses outside the ranges of our Pods that no export names: nodes' own addresses, which stay open. */
  get uncovered(): number {
    let count = 0;
    for (const [tuple, service] of this.#serviceAt)
      if (!this.#exports.has(service) && !this.#isPod(tuple.split(' ')[1]!)) count += 1;
    return count;
  }

  takeChange(): PlanDifference {
    const [added, deleted]: [Element[], Element[]] = [[], []];
    const before = new Map<string, boolean>();
    const count = (text: string, step: 1 | -1) => {
      const known = this.#uses.get(text) ?? 0;
      if (!before.has(text)) before.set(text, known > 0);
      if (known + step === 0) this.#uses.delete(text);
      else this.#uses.set(text, known + step);
    };
    for (const service of this.#dirty) {
      const old = this.#elementsOf.get(service) ?? none;
      const next = this.#plan(service);
      for (const text of next) if (!old.has(text)) count(text, 1);
      for (const text of old) if (!next.has(text)) count(text, -1);
      if (next.size === 0) this.#elementsOf.delete(service);
      else this.#elementsOf.set(service, next);
    }
    this.#dirty.clear();
    for (const [text, wasThere] of before) {
      const is = this.#uses.has(text);
      if (is && !wasThere) added.push(elementOf(text));
      if (!is && wasThere) deleted.push(elementOf(text));
    }
    return { added, deleted };
  }

  *elements(): Generator<Element> {
    const { judged, closed, pods } = this.#config;
    for (const span of judged.spans)
      yield { map: `from${version(span)}`, key: formatSpan(span), value: `goto ${chainOf(span.cluster)}` };
    for (const span of merged(pods.map(({ family, first, size }) => ({ family, first, last: first + size - 1n }))))
      yield { map: `mine${version(span)}`, key: formatSpan(span), value: '' };
    for (const span of judgeSources({ sources: new Map([['closed', closed]]), own: loopback }).spans)
      yield { map: `closed${version(span)}`, key: formatSpan(span), value: '' };
    yield* probeElements;
    for (const text of this.#uses.keys()) yield elementOf(text);
  }

  /** Whether a packet of this cluster may open a connection to this tuple; a cluster without a name is one of several. */
  mayCall(cluster: string, tuple: string): boolean {
    const [digit, key] = [tuple[0], tuple.slice(2)];
    if (this.#uses.has(`every${digit} ${key}`)) return true;
    return cluster !== '' && this.#uses.has(`${setOf(cluster)}${digit} ${key}`);
  }

  /** Whether the export of a service names this cluster, and a policy keeps its packets out. */
  isLeftOut(cluster: string, service: string): boolean {
    const exported = this.#exports.get(service);
    if (exported === undefined || cluster === '') return false;
    const { exportTo } = callersOf(exported, service, this.#callers);
    const isIn = (ids: readonly string[] | undefined) => ids?.includes(cluster) ?? true;
    return isIn(exported.exportTo) && !isIn(exportTo);
  }

  /** Whether packets to this tuple are looked at. */
  isGuarded(tuple: string): boolean {
    return this.#isPod(tuple.split(' ')[1]!) || this.#uses.has(`host${tuple[0]} ${tuple.slice(2)}`);
  }

  #plan(service: string): ReadonlySet<string> {
    const exported = this.#exports.get(service);
    const keys = this.#slicesOf.get(service);
    if (exported === undefined || keys === undefined) return none;
    // A packet shows no namespace: clusters of which some may call are refused here.
    const access = callersOf(exported, service, this.#callers);
    const { clusters } = this.#config;
    const sets =
      access.exportTo === undefined ? ['every'] : clusters.filter((id) => access.exportTo!.includes(id)).map(setOf);
    const elements = new Set<string>();
    for (const key of keys)
      for (const tuple of this.#slices.get(key)!.tuples) {
        const [digit, rest] = [tuple[0], tuple.slice(2)];
        for (const set of sets) elements.add(`${set}${digit} ${rest}`);
        if (!this.#isPod(rest.slice(0, rest.indexOf(' ')))) elements.add(`host${digit} ${rest}`);
      }
    return elements;
  }

  #isPod(address: string): boolean {
    const ip = parseIp(address);
    return ip !== undefined && this.#config.pods.some((range) => isInRange(ip, range));
  }

  #mark(service: string): void {
    this.#dirty.add(service);
    this.#onDirty();
  }
}

type Span = Pick<SourceSpan, 'family' | 'first' | 'last'>;

function version({ family }: Pick<Span, 'family'>): 4 | 6 {
  return family === 'IPv4' ? 4 : 6;
}

/** nft refuses intervals that overlap. */
function merged(spans: readonly Span[]): Span[] {
  const found: Span[] = [];
  for (const span of [...spans].sort((a, b) =>
    a.family !== b.family ? (a.family < b.family ? -1 : 1) : a.first < b.first ? -1 : 1,
  )) {
    const before = found.at(-1);
    if (before === undefined || before.family !== span.family || before.last + 1n < span.first) found.push(span);
    else if (before.last < span.last) found[found.length - 1] = { ...before, last: span.last };
  }
  return found;
}

function elementOf(text: string): Element {
  const space = text.indexOf(' ');
  return { map: text.slice(0, space), key: text.slice(space + 1), value: '' };
}
