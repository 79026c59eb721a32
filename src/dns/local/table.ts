// The table of static records: a table of names of its own, shared with the threads that answer. A file that is read again
// writes only what differs.

import { decodeName } from '../../base/dns/name.ts';
import type { Pieces } from '../../base/turns.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { makeZone, type Zone } from '../../catalog/names/zones.ts';
import { type LocalRecords, setsOf } from './records.ts';

const namesPerPiece = 500;

/** What the names have instead of a zone: each is one of its own. */
export function localZone(ttlSeconds: number): Zone {
  return makeZone(0, { name: 'invalid', source: 'peers', ttlSeconds });
}

export class LocalTable {
  readonly table = new NameTable({ serial: 1 });

  *replace(all: LocalRecords): Pieces<void> {
    const { table } = this;
    const gone: string[] = [];
    let count = 0;
    for (const key of table.nameKeys()) {
      const name = decodeName(key);
      if (!all.has(name)) gone.push(name);
      if (++count % namesPerPiece === 0) yield;
    }
    for (const name of gone) {
      table.remove(name);
      if (++count % namesPerPiece === 0) yield;
    }
    let isOther = gone.length > 0;
    for (const [name, records] of all) {
      if (table.putIfOther(name, 0, setsOf(records, name))) isOther = true;
      if (++count % namesPerPiece === 0) yield;
    }
    if (!isOther) return;
    table.compact();
    table.bumpSerial();
  }
}
