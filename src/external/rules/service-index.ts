// All external services of a cluster: which count, their names, their overlaps. Pure. A service that comes, changes or goes
// costs what it touches: the services that share a name or a range with it, which `set` returns.

import { isSameJson } from '../../base/json.ts';
import type { DataPlane } from '../../kube/objects/reports/data-plane.ts';
import type { ExternalAddress, ExternalVip, MeshExternalService } from '../kinds/mesh-external-service.ts';
import { type HostnameContext, HostnameIndex } from './hostnames.ts';
import { NameOverlaps } from './name-overlaps.ts';
import { OverlapIndex, type Pool } from './overlaps.ts';
import { ownerId, ownerOf, type Rule, rulesOf } from './rule.ts';
import { doesCount, statusOf, type WantedStatus } from './service-status.ts';
import { secretsOf, type TargetContext, type Targeting, targetsOf } from './target.ts';
import { expiredCertificates, readTls, secretReferences } from './tls-plan.ts';

export interface IndexContext extends TargetContext, HostnameContext {
  /** Ranges of virtual IPs. */
  readonly pools: readonly Pool[];
}

/** Addresses of hostnames, and why some got none. */
export interface HeldAddresses {
  readonly ips: ReadonlyMap<string, readonly string[]>;
  readonly exhausted: ReadonlyMap<string, string>;
}

/** What a status depends on besides the services. */
export interface StatusContext {
  readonly nowMs: number;
  readonly plane: DataPlane;
}

export interface Touched {
  /** Keys of other services whose status may be another one now. */
  readonly services: ReadonlySet<string>;
  /** Hostnames that may have another holder now, or none. */
  readonly hostnames: ReadonlySet<string>;
}

interface Entry {
  readonly id: string;
  readonly object: MeshExternalService;
  readonly targeting: Targeting;
  /** In the index of overlaps. */
  readonly rules: readonly Rule[];
}

export class ServiceIndex {
  readonly #context: IndexContext;
  readonly #names: HostnameIndex;
  readonly #overlaps = new OverlapIndex();
  readonly #sameNames = new NameOverlaps();
  /** By the key of the object; and that key by the id of the resource. */
  readonly #entries = new Map<string, Entry>();
  readonly #keys = new Map<string, string>();
  /** By name of a Secret: keys of those that name it. */
  readonly #bySecret = new Map<string, Set<string>>();

  constructor(context: IndexContext) {
    this.#context = context;
    this.#names = new HostnameIndex(context);
  }

  get names(): Pick<HostnameIndex, 'holder' | 'selected'> {
    return this.#names;
  }

  object(key: string): MeshExternalService | undefined {
    return this.#entries.get(key)?.object;
  }

  /** It came, changed, or is gone; or a Secret that it names did. */
  set(key: string, object: MeshExternalService | undefined): Touched {
    const before = this.#entries.get(key);
    if (before !== undefined && object !== undefined && before.id !== ownerId(ownerOf(object))) {
      const [left, come] = [this.set(key, undefined), this.set(key, object)];
      return { services: left.services.union(come.services), hostnames: left.hostnames.union(come.hostnames) };
    }
    const targeting = object && targetsOf(object, this.#context);
    if (before !== undefined && object !== undefined && isSameButStatus(before.object, object)) {
      this.#entries.set(key, { ...before, object, targeting: targeting! });
      return nothing;
    }
    this.#indexSecrets(before, key, false);
    if (object === undefined) {
      this.#entries.delete(key);
      if (before !== undefined) this.#keys.delete(before.id);
    } else {
      const id = ownerId(ownerOf(object));
      const entry = { id, object, targeting: targeting!, rules: before?.rules ?? [] };
      this.#entries.set(key, entry);
      this.#keys.set(id, key);
      this.#indexSecrets(entry, key, true);
    }
    const id = before?.id ?? this.#entries.get(key)?.id;
    if (id === undefined) return nothing;
    const isCounting = targeting !== undefined && doesCount(targeting);
    const hostnames = this.#names.set(id, isCounting ? object : undefined);
    const ids = new Set([...hostnames].flatMap((name) => [...this.#names.claimants(name)]));
    for (const other of this.#reindex(key, before?.rules ?? [], isCounting ? object : undefined)) ids.add(other);
    return { services: this.#keysOf(ids, key), hostnames };
  }

  /** Ends up with the addresses that it holds. Returns keys of other services whose overlaps may be others now. */
  hold(key: string, held: HeldAddresses): ReadonlySet<string> {
    const entry = this.#entries.get(key);
    if (entry === undefined || !doesCount(entry.targeting)) return nothing.services;
    const object = { ...entry.object, status: { ...entry.object.status, vips: this.#vipsOf(entry, held) } };
    return this.#keysOf(this.#reindex(key, entry.rules, object), key);
  }

  addressesOf(key: string): ExternalAddress[] {
    const entry = this.#entries.get(key);
    return entry === undefined ? [] : this.#names.addressesOf(entry.id);
  }

  /** Undefined for a service that is gone. */
  statusOf(key: string, held: HeldAddresses, { nowMs, plane }: StatusContext): WantedStatus | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { object, targeting, rules } = entry;
    const addresses = this.addressesOf(key);
    const isCounting = doesCount(targeting);
    const exhausted = new Map(
      addresses.flatMap(({ hostname }) => {
        const why = held.exhausted.get(hostname);
        return why === undefined ? [] : [[hostname, why] as const];
      }),
    );
    return statusOf(object, {
      plane,
      ...{ targeting, addresses, exhausted, expired: isCounting ? this.#expiredIn(object, nowMs) : [] },
      vips: isCounting ? this.#vipsOf(entry, held) : [],
      overlaps: isCounting
        ? [...this.#overlaps.textsOf(rules, this.#context.pools), ...this.#sameNames.textsOf(rules)]
        : [],
    });
  }

  /** Keys of the services that claim a name. */
  claimants(hostname: string): ReadonlySet<string> {
    return this.#keysOf(new Set(this.#names.claimants(hostname)));
  }

  /** Keys of the services that name a Secret. */
  naming(secret: string): Iterable<string> {
    return this.#bySecret.get(secret) ?? [];
  }

  /** Whether certificates of it can run out. */
  hasCertificates(key: string): boolean {
    return this.#entries.get(key)?.object.spec?.destination?.tls !== undefined;
  }

  /** Ids of resources whose overlaps may be others now. */
  #reindex(key: string, before: readonly Rule[], object: MeshExternalService | undefined): Set<string> {
    const after = object === undefined ? [] : rulesOf(object);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#entries.set(key, { ...entry, rules: after });
    if (isSameRules(before, after)) return new Set();
    const neighbours = (rules: readonly Rule[]) =>
      this.#overlaps.neighbours(rules).union(this.#sameNames.neighbours(rules));
    const ids = neighbours(before);
    for (const index of [this.#overlaps, this.#sameNames]) {
      index.remove(before);
      index.add(after);
    }
    return ids.union(neighbours(after));
  }

  #vipsOf({ id }: Entry, { ips }: HeldAddresses): ExternalVip[] {
    return this.#names
      .addressesOf(id)
      .filter(({ status }) => status === 'Available')
      .flatMap(({ hostname }) => (ips.get(hostname) ?? []).map((ip) => ({ ip, type: 'Portolan', hostname })));
  }

  #expiredIn(object: MeshExternalService, nowMs: number): string[] {
    const reading = readTls(object.spec.destination?.tls, secretsOf(object, this.#context.secrets));
    return reading.kind === 'tls' ? expiredCertificates(reading.plan, nowMs) : [];
  }

  #keysOf(ids: Iterable<string>, except?: string): Set<string> {
    const keys = new Set<string>();
    for (const id of ids) {
      const key = this.#keys.get(id);
      if (key !== undefined && key !== except) keys.add(key);
    }
    return keys;
  }

  #indexSecrets(entry: Entry | undefined, key: string, isNamed: boolean): void {
    if (entry === undefined || !doesCount(entry.targeting)) return;
    const { object } = entry;
    const named = new Set<string>();
    const read = secretsOf(object, (name) => void named.add(name) as undefined);
    for (const { name, key: field } of secretReferences(object.spec?.destination?.tls)) read(name, field);
    for (const name of named) {
      const keys = this.#bySecret.get(name) ?? new Set();
      if (isNamed) keys.add(key);
      else keys.delete(key);
      if (keys.size === 0) this.#bySecret.delete(name);
      else this.#bySecret.set(name, keys);
    }
  }
}

const nothing: Touched = { services: new Set(), hostnames: new Set() };

/** Nothing that rules and names depend on. */
function isSameButStatus(one: MeshExternalService, other: MeshExternalService): boolean {
  const [a, b] = [one.metadata, other.metadata];
  return (
    isSameJson(one.spec, other.spec) &&
    isSameJson(a.labels ?? {}, b.labels ?? {}) &&
    isSameJson(a.annotations ?? {}, b.annotations ?? {}) &&
    a.creationTimestamp === b.creationTimestamp
  );
}

function isSameRules(one: readonly Rule[], other: readonly Rule[]): boolean {
  const text = (rules: readonly Rule[]) =>
    JSON.stringify(rules, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
  return text(one) === text(other);
}
