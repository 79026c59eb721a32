// The owner of each name: the first to claim it, for as long as it claims it. Pure; the cost of a change is that of
// the names it touches.

import { compareRights } from '../../base/name-right.ts';

export interface Claimant {
  /** Peer and id, in one text. */
  readonly key: string;
  readonly names: readonly string[];
  readonly sinceMs: number;
}

export interface NameVerdict {
  /** The names it answers at. */
  readonly hostnames: readonly string[];
  /** Names it wanted and who has them. */
  readonly lost: readonly { readonly name: string; readonly holder: string }[];
  /** Names it has and who else wanted them. */
  readonly contested: readonly { readonly name: string; readonly others: readonly string[] }[];
}

export class NameClaims {
  readonly #claimants = new Map<string, Claimant>();
  /** Oldest first. A name with one claimant is the rule, and needs no list. */
  readonly #names = new Map<string, Claimant | readonly Claimant[]>();

  /** Returns the others whose verdict may have changed. */
  set(claimant: Claimant): string[] {
    const before = this.#claimants.get(claimant.key);
    const touched = before === undefined ? new Set<string>() : this.#drop(before);
    this.#claimants.set(claimant.key, claimant);
    for (const name of claimant.names) {
      const claims = [...this.#claimsOf(name), claimant].sort(compareRights);
      this.#keep(name, claims);
      for (const { key } of claims) touched.add(key);
    }
    touched.delete(claimant.key);
    return [...touched];
  }

  remove(key: string): string[] {
    const claimant = this.#claimants.get(key);
    if (claimant === undefined) return [];
    this.#claimants.delete(key);
    return [...this.#drop(claimant)];
  }

  verdict(key: string): NameVerdict {
    const { names = [] } = this.#claimants.get(key) ?? {};
    const hostnames: string[] = [];
    const lost: { name: string; holder: string }[] = [];
    const contested: { name: string; others: string[] }[] = [];
    for (const name of names) {
      const [holder, ...others] = this.#claimsOf(name).map((claim) => claim.key);
      if (holder !== key) lost.push({ name, holder: holder ?? '' });
      else hostnames.push(name);
      if (holder === key && others.length > 0) contested.push({ name, others });
    }
    return { hostnames, lost, contested };
  }

  #claimsOf(name: string): readonly Claimant[] {
    const claims = this.#names.get(name) ?? [];
    return 'key' in claims ? [claims] : claims;
  }

  #keep(name: string, claims: readonly Claimant[]): void {
    if (claims.length === 0) this.#names.delete(name);
    else this.#names.set(name, claims.length === 1 ? (claims[0] as Claimant) : claims);
  }

  #drop(claimant: Claimant): Set<string> {
    const touched = new Set<string>();
    for (const name of claimant.names) {
      const left = this.#claimsOf(name).filter(({ key }) => key !== claimant.key);
      this.#keep(name, left);
      for (const { key } of left) touched.add(key);
    }
    return touched;
  }
}
