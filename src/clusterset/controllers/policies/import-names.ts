// Under which name a service of the clusterset is imported here. A policy may give it another one (`importAs`). An import that
// has a name keeps it; then a service goes before those that are renamed, and these by name. One that cannot have its name
// keeps its own, and the condition of its policy names the other.

import { compareText } from '../../../base/compare-text.ts';
import { isTerminating } from '../../../kube/objects/namespace.ts';
import { keyOf } from '../../../kube/objects/object.ts';
import type { AgentContext } from '../../copies/context.ts';
import { type CountedRecord, countedRecords } from '../../copies/counted-records.ts';
import { importOf } from '../../copies/home-copies.ts';
import type { ServiceImportPolicy } from '../../kinds/service-import-policy.ts';
import { mergeOutcome } from '../../rules/merge/merge.ts';
import type { Merge } from '../../rules/merge/merged.ts';
import { formatServiceKey, parseServiceKey, type ServiceKey } from '../../rules/names.ts';
import { isOurImport } from '../../rules/plan-import.ts';
import { nameHere, sourceOfImport } from '../../rules/routing/import-as.ts';
import { policyProblem } from '../../rules/routing/import-policies.ts';

/** A service as the clusterset exports it to this cluster. */
export interface ExportedService {
  readonly service: ServiceKey;
  readonly records: readonly CountedRecord[];
  readonly merge: Merge;
}

export interface ImportNamesOptions {
  /** The policy that decides for the service; `unknown` while policies have not been read. */
  readonly policyOf: (exported: ExportedService) => ServiceImportPolicy | 'unknown' | undefined;
  /** Has these names looked at again. */
  readonly again: (keys: readonly string[]) => void;
  /** What `refusals` returns for the policy has changed. */
  readonly onRefusal: (policy: string) => void;
}

interface Refusal {
  readonly policy: string;
  readonly message: string;
}

export class ImportNames {
  readonly #context: AgentContext;
  readonly #options: ImportNamesOptions;
  /** Other names that services are to have here, by their own, and the reverse. */
  readonly #wishes = new Map<string, string>();
  readonly #wanting = new Map<string, Set<string>>();
  /** Services that have the names which somebody wants. */
  readonly #claimants = new Map<string, string | undefined>();
  readonly #refusals = new Map<string, Refusal>();

  constructor(context: AgentContext, options: ImportNamesOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** The service whose import is to lie at this name. */
  serviceAt(key: string): ExportedService | undefined {
    const look = this.#lookOnce();
    const own = look(key);
    this.#noteWish(key, own && this.#wishOf(key, own));
    const found = this.#find(key, look);
    const claimant = found && formatServiceKey(found.service);
    const wanting = this.#wanting.get(key);
    if (wanting !== undefined && this.#claimants.get(key) !== claimant) this.#options.again([...wanting]);
    if (wanting === undefined) this.#claimants.delete(key);
    else this.#claimants.set(key, claimant);
    this.#noteRefusal(key, own && this.#refusalOf(key, own, claimant, look));
    return found;
  }

  /** Why names that this policy gives were refused. */
  refusals(policy: string): string[] {
    if (this.#refusals.size === 0) return [];
    return [...this.#refusals.values()].filter((one) => one.policy === policy).map(({ message }) => message);
  }

  /** The names here that a change of the service may concern. */
  namesOf(key: string): string[] {
    const wish = this.#wishes.get(key);
    return wish === undefined ? [key] : [key, wish];
  }

  /** Services that are to have a name in this namespace, and those names. */
  wantingIn(namespace: string): string[] {
    return [...this.#wishes].flatMap(([key, wish]) => (wish.startsWith(`${namespace}/`) ? [key, wish] : []));
  }

  #find(key: string, look: Look): ExportedService | undefined {
    const claimant = this.#claimantOf(key, look);
    if (claimant !== undefined) return look(claimant);
    const holder = this.#holderOf(key);
    for (const source of new Set([holder ?? key, key])) {
      const exported = look(source);
      if (exported === undefined) continue;
      const place = this.#placeOf(source, exported, look);
      // Until it is at its other place, clients find it here.
      if (place === key || (source === holder && !this.#isAt(place, source))) return exported;
    }
    return undefined;
  }

  /** The service that wants this name and may have it. */
  #claimantOf(key: string, look: Look, more: readonly string[] = []): string | undefined {
    const isOthers = this.#isForeign(key) || !this.#hasNamespace(key);
    const renamed = [...(this.#wanting.get(key) ?? []), ...more].sort(compareText);
    const candidates = isOthers ? [key] : [this.#holderOf(key) ?? key, key, ...renamed];
    return candidates.find((candidate) => {
      const exported = look(candidate);
      return exported !== undefined && this.#wishOf(candidate, exported) === key;
    });
  }

  #placeOf(source: string, exported: ExportedService, look: Look): string {
    const wish = this.#wishOf(source, exported);
    return wish === source || this.#claimantOf(wish, look, [source]) === source ? wish : source;
  }

  #wishOf(key: string, exported: ExportedService): string {
    const policy = this.#options.policyOf(exported);
    // A wish that makes no sense, or cannot be read, changes nothing.
    if (policy === 'unknown' || (policy !== undefined && policyProblem(policy.spec ?? {}) !== undefined)) {
      const present = importOf(this.#context.copies, key);
      return present === undefined ? key : keyOf(present);
    }
    return formatServiceKey(nameHere(policy?.spec?.importAs, exported.service));
  }

  #noteWish(key: string, wanted: string | undefined): void {
    const wish = wanted === key ? undefined : wanted;
    const before = this.#wishes.get(key);
    if (before !== undefined && before !== wish) {
      const others = this.#wanting.get(before);
      others?.delete(key);
      if (others?.size === 0) this.#wanting.delete(before);
      this.#wishes.delete(key);
      this.#options.again([before]);
    }
    if (wish === undefined || wish === before) return;
    this.#wishes.set(key, wish);
    this.#wanting.set(wish, (this.#wanting.get(wish) ?? new Set()).add(key));
    this.#options.again([wish]);
  }

  #refusalOf(key: string, own: ExportedService, here: string | undefined, look: Look): Refusal | undefined {
    const wish = this.#wishOf(key, own);
    if (wish !== key) {
      const claimant = this.#claimantOf(wish, look, [key]);
      const policy = this.#policyName(own);
      if (claimant === key || policy === undefined) return undefined;
      const why = !this.#hasNamespace(wish)
        ? 'there is no such namespace'
        : this.#isForeign(wish)
          ? 'an import that Portolan did not write has that name'
          : `that is the name of the import of ${claimant ?? 'another service'}`;
      return { policy, message: `${key} keeps its name and is not imported as ${wish}: ${why}` };
    }
    const other = here === undefined || here === key ? undefined : look(here);
    const policy = other && this.#policyName(other);
    return policy === undefined
      ? undefined
      : { policy, message: `${key} of the clusterset is not imported: its name here belongs to ${here}` };
  }

  #policyName(exported: ExportedService): string | undefined {
    const policy = this.#options.policyOf(exported);
    return typeof policy === 'object' ? policy.metadata.name : undefined;
  }

  #noteRefusal(key: string, refusal: Refusal | undefined): void {
    const before = this.#refusals.get(key);
    if (before?.message === refusal?.message && before?.policy === refusal?.policy) return;
    if (refusal === undefined) this.#refusals.delete(key);
    else this.#refusals.set(key, refusal);
    for (const one of [before, refusal]) if (one !== undefined) this.#options.onRefusal(one.policy);
  }

  #holderOf(key: string): string | undefined {
    const present = this.#context.copies.imports.get(key);
    return present !== undefined && isOurImport(present) ? sourceOfImport(present) : undefined;
  }

  #isAt(place: string, source: string): boolean {
    return this.#holderOf(place) === source;
  }

  #isForeign(key: string): boolean {
    const present = this.#context.copies.imports.get(key);
    return present !== undefined && !isOurImport(present);
  }

  #hasNamespace(key: string): boolean {
    const found = this.#context.copies.namespaces.get(parseServiceKey(key).namespace);
    return found !== undefined && !isTerminating(found);
  }

  /** Undefined if nobody exports it to this cluster, or a policy does not accept it. */
  #lookOnce(): Look {
    const seen = new Map<string, ExportedService | undefined>();
    return (key) => {
      if (!seen.has(key)) seen.set(key, this.#exported(key));
      return seen.get(key);
    };
  }

  #exported(key: string): ExportedService | undefined {
    const { membership } = this.#context;
    const service = parseServiceKey(key);
    const records = countedRecords(this.#context, service, { onlyFor: membership.clusterId, withLegacy: true });
    const merge = mergeOutcome({ shards: records.map(({ shard }) => shard), ports: this.#context.policy().ports });
    if (merge === undefined) return undefined;
    const exported = { service, records, merge };
    const policy = this.#options.policyOf(exported);
    const isRefused = typeof policy === 'object' && policy.spec?.accept === false;
    return isRefused && policyProblem(policy.spec ?? {}) === undefined ? undefined : exported;
  }
}

type Look = (key: string) => ExportedService | undefined;
