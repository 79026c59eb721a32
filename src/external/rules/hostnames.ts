// Which hostnames external services have: those written in InternalVIP matches and those that HostnameGenerators make, and
// who has a name that several claim. Pure. Resources come and go one by one; the order in which they come never matters.

import { compareRights, type NameRight } from '../../base/name-right.ts';
import { selectsLabels } from '../../kube/objects/label-selector.ts';
import { allowManyAnnotation, type HostnameGenerator, selectedMax } from '../kinds/hostname-generator.ts';
import { type ExternalAddress, type MeshExternalService, ownName } from '../kinds/mesh-external-service.ts';
import { compareText, ownerOf } from './rule.ts';
import { parseTemplate, resolveTemplate } from './validation/template.ts';

/** Somebody of another kind that has names. */
export interface NameOwner {
  readonly kind: string;
  /** `namespace/name` */
  readonly key: string;
  readonly createdMs: number;
  readonly hostnames: readonly string[];
}

export interface HostnameContext {
  /** Valid copies of the broker's. */
  readonly generators: readonly HostnameGenerator[];
  /** Zones in which an external service has no name. */
  readonly zones: readonly string[];
  /** Those of other kinds that claim a name. */
  readonly othersAt: (hostname: string) => readonly NameOwner[];
}

interface Claim extends NameRight {
  /** Those of one owner share a name. */
  readonly owner: string;
  /** Kind and key, for people. */
  readonly key: string;
}

interface Entry {
  readonly object: MeshExternalService;
  readonly wishes: readonly ExternalAddress[];
  /** Names of generators. */
  readonly selectedBy: readonly string[];
}

export class HostnameIndex {
  readonly #context: HostnameContext;
  readonly #generators: readonly HostnameGenerator[];
  /** By id of the resource. */
  readonly #entries = new Map<string, Entry>();
  /** By hostname: ids of the resources that claim it. */
  readonly #claims = new Map<string, Set<string>>();
  readonly #selected = new Map<string, number>();

  constructor(context: HostnameContext) {
    this.#context = context;
    this.#generators = context.generators.toSorted((a, b) => compareText(ownName(a), ownName(b)));
  }

  /** A valid and visible resource came or changed, or is gone. Returns the hostnames that this is about. */
  set(id: string, object: MeshExternalService | undefined): Set<string> {
    const before = this.#entries.get(id);
    const selecting = object === undefined ? [] : this.#generators.filter((one) => isSelected(one, object));
    const wasOver = this.#generators.map((one) => this.#isOver(one));
    for (const name of before?.selectedBy ?? []) this.#selected.set(name, this.#selected.get(name)! - 1);
    const selectedBy = selecting.map(ownName);
    for (const name of selectedBy) this.#selected.set(name, (this.#selected.get(name) ?? 0) + 1);
    if (object === undefined) this.#entries.delete(id);
    else this.#entries.set(id, { object, wishes: [], selectedBy });
    // A generator that selects too many, or no longer does, concerns all that it selects.
    const isTurned = this.#generators.some((one, at) => this.#isOver(one) !== wasOver[at]);
    const touched = this.#wish(id, before?.wishes ?? []);
    if (isTurned)
      for (const [other, { wishes }] of this.#entries) for (const name of this.#wish(other, wishes)) touched.add(name);
    return touched;
  }

  /** Ordered by hostname. */
  addressesOf(id: string): ExternalAddress[] {
    const addresses = (this.#entries.get(id)?.wishes ?? []).map((wish) => this.#settle(wish, id));
    return addresses.sort((a, b) => compareText(a.hostname, b.hostname) || compareText(a.origin.name, b.origin.name));
  }

  /** How many resources a generator selects. */
  selected(generator: HostnameGenerator): number {
    return this.#selected.get(ownName(generator)) ?? 0;
  }

  /** Ids of the resources that claim a name. */
  claimants(hostname: string): Iterable<string> {
    return this.#claims.get(hostname) ?? [];
  }

  /** The external service that has a name, for people; undefined if none has it. */
  holder(hostname: string): string | undefined {
    const [winner] = this.#claims.has(hostname) ? this.#claimsAt(hostname) : [];
    return winner !== undefined && isOurs(winner) ? winner.key : undefined;
  }

  /** Makes the wishes of a resource anew. Returns the hostnames that it wished or wishes. */
  #wish(id: string, before: readonly ExternalAddress[]): Set<string> {
    const touched = new Set<string>();
    for (const { hostname } of before) {
      touched.add(hostname);
      const ids = this.#claims.get(hostname);
      ids?.delete(id);
      if (ids?.size === 0) this.#claims.delete(hostname);
    }
    const entry = this.#entries.get(id);
    if (entry === undefined) return touched;
    const makers = this.#generators.filter((one) => entry.selectedBy.includes(ownName(one)) && !this.#isOver(one));
    const wishes = withoutTwins([
      ...writtenNames(entry.object),
      ...makers.map((one) => generatedName(one, entry.object)),
    ]);
    this.#entries.set(id, { ...entry, wishes });
    for (const { hostname, status } of wishes) {
      touched.add(hostname);
      if (status === 'NotAvailable' || this.#zoneOf(hostname) !== undefined) continue;
      const ids = this.#claims.get(hostname);
      if (ids === undefined) this.#claims.set(hostname, new Set([id]));
      else ids.add(id);
    }
    return touched;
  }

  #isOver(generator: HostnameGenerator): boolean {
    return this.selected(generator) > selectedMax && generator.metadata.annotations?.[allowManyAnnotation] !== 'true';
  }

  #zoneOf(hostname: string): string | undefined {
    return this.#context.zones.find((one) => hostname === one || hostname.endsWith(`.${one}`));
  }

  #settle(address: ExternalAddress, id: string): ExternalAddress {
    if (address.status === 'NotAvailable') return address;
    const { hostname } = address;
    const refuse = (reason: string): ExternalAddress => ({ ...address, status: 'NotAvailable', reason });
    const zone = this.#zoneOf(hostname);
    if (zone !== undefined) return refuse(`not available because it lies in the zone ${zone}`);
    const [winner] = this.#claimsAt(hostname);
    if (winner === undefined || winner.owner === ownerOfId(id)) return address;
    return refuse(`not available because of the clash with ${winner.key}, which is older`);
  }

  /** The one that has the name first. */
  #claimsAt(hostname: string): Claim[] {
    const own = Array.from(this.#claims.get(hostname) ?? [], (id): Claim => {
      const { createdMs: sinceMs } = ownerOf(this.#entries.get(id)!.object);
      return { owner: ownerOfId(id), key: `${ourKind} ${id}`, name: id.split('/').at(-1)!, sinceMs };
    });
    const others = this.#context.othersAt(hostname).map(({ kind, key, createdMs: sinceMs }): Claim => {
      return { owner: `${kind} ${key}`, key: `${kind} ${key}`, name: key.split('/').at(-1)!, sinceMs };
    });
    return [...own, ...others].sort(compareRights);
  }
}

/** As much of a name that cannot be as a status takes. */
const attemptLengthMax = 512;
const ourKind = 'MeshExternalService';

/** Resources of one origin have one owner: the operator of the mesh, or of the cluster. */
function ownerOfId(id: string): string {
  return id.includes('/') ? 'broker' : 'home';
}

function isOurs({ key }: Claim): boolean {
  return key.startsWith(`${ourKind} `);
}

function writtenNames(object: MeshExternalService): ExternalAddress[] {
  const names = object.spec.match.flatMap(({ type, value }) =>
    type === 'InternalVIP' && value !== undefined ? [value.toLowerCase()] : [],
  );
  const origin = { kind: ourKind, name: ownerOf(object).name };
  return names.map((hostname) => ({ hostname, status: 'Available', origin }));
}

function isSelected({ spec }: HostnameGenerator, object: MeshExternalService): boolean {
  const labels = object.metadata.labels ?? {};
  const selector = { matchLabels: { ...spec.targetRef?.tags, ...spec.selector?.matchLabels } };
  return selectsLabels(selector, labels);
}

function generatedName(generator: HostnameGenerator, object: MeshExternalService): ExternalAddress {
  const origin = { kind: 'HostnameGenerator', name: ownName(generator) };
  const parsed = parseTemplate(generator.spec.template);
  const refuse = (hostname: string, reason: string): ExternalAddress => {
    return { hostname: hostname.slice(0, attemptLengthMax), status: 'NotAvailable', origin, reason };
  };
  if (parsed.kind === 'refused') return refuse(generator.spec.template, parsed.reason);
  const subject = { name: ownerOf(object).name, labels: object.metadata.labels ?? {} };
  const resolved = resolveTemplate(parsed.parts, subject);
  if (resolved.kind === 'unresolved') return refuse(resolved.attempt, resolved.reason);
  const hasPlace = object.spec.match.some(({ type, value }) => type === 'InternalVIP' && value === undefined);
  if (!hasPlace) return refuse(resolved.hostname, 'the resource has no InternalVIP match without a value');
  return { hostname: resolved.hostname, status: 'Available', origin };
}

/** The first to give a resource a name is its origin. */
function withoutTwins(wishes: readonly ExternalAddress[]): ExternalAddress[] {
  return [...new Map(wishes.toReversed().map((wish) => [wish.hostname, wish])).values()].reverse();
}
