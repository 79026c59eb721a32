// Several kinds have names outside our zones, in one place of the table. It is ready when all of them have been read;
// unknown names may be forwarded when none of them is waited for any longer.

import type { NameTable } from './name-table.ts';

/** Not a zone: ready when unknown names may be forwarded. */
export const namesOutside = 9;

export type OutsideParty = 'peers' | 'external';

export class OutsideGate {
  readonly #table: NameTable;
  readonly #zone: number;
  readonly #unread: Set<OutsideParty>;
  readonly #awaited: Set<OutsideParty>;
  readonly #stale = new Set<OutsideParty>();

  constructor(table: NameTable, zone: number, parties: readonly OutsideParty[]) {
    this.#table = table;
    this.#zone = zone;
    this.#unread = new Set(parties);
    this.#awaited = new Set(parties);
  }

  setSynced(party: OutsideParty): void {
    this.#unread.delete(party);
    if (this.#unread.size === 0) this.#table.setReady(this.#zone, true);
    this.pass(party);
  }

  pass(party: OutsideParty): void {
    this.#awaited.delete(party);
    if (this.#awaited.size === 0) this.#table.setReady(namesOutside, true);
  }

  setStale(party: OutsideParty, isStale: boolean): void {
    if (isStale) this.#stale.add(party);
    else this.#stale.delete(party);
    this.#table.setStale(this.#zone, this.#stale.size > 0);
  }
}
