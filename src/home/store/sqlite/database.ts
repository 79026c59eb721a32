// The database of one store: schema, batches and its own tidiness. Runs in a thread of its own, where waiting for the
// disk delays nothing else. Throws what SQLite throws; worker.ts turns that into troubles.

import { closeSync, existsSync, fsyncSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { makeFolder } from '../../../base/real/make-folder.ts';
import type { DiskUse, RowMove } from '../journal.ts';
import { brokenRecord, canParse } from '../json-record.ts';
import type { DatabaseOptions, PackedBatch } from './protocol.ts';
import { type PackedRows, packRawRows, type RawRow, unpackRawRows } from './rows.ts';

const applicationId = 0x706f7274;
const formatVersion = 1;
const pageBytes = 4096;
/** The log is copied into the database about this often, between two batches rather than inside one. */
const checkpointBytes = 4 * 1024 * 1024;
const vacuumPages = 256;
const readBytes = 1024 * 1024;
const probeBytes = 256 * 1024;

/** SQLite looks at the bytes in its own code: a hundred thousand values take some fifty milliseconds. */
const isJson = ', value IS NULL OR json_valid(CAST(value AS TEXT)) AS isJson';
const schema = `
  CREATE TABLE log (row INTEGER PRIMARY KEY, revision INTEGER NOT NULL, created INTEGER NOT NULL,
    key BLOB NOT NULL, value BLOB) STRICT;
  CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), floor INTEGER NOT NULL, probe BLOB) STRICT;
  INSERT INTO meta (id, floor) VALUES (1, 0);
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${formatVersion};
`;

export class Database {
  readonly #options: DatabaseOptions;
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #move: StatementSync;
  readonly #delete: StatementSync;
  readonly #setFloor: StatementSync;
  readonly #read: StatementSync;
  readonly #pageCount: StatementSync;
  readonly #freePages: StatementSync;
  #floor: number;
  /** About how much the log has grown since it was last copied into the database. */
  #loggedBytes = 0;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    createFile(options.path);
    this.#db = new DatabaseSync(options.path, { timeout: 0 });
    this.#prepareFile();
    this.#insert = this.#db.prepare('INSERT INTO log (row, revision, created, key, value) VALUES (?, ?, ?, ?, ?)');
    this.#move = this.#db.prepare('UPDATE log SET row = ? WHERE row = ?');
    this.#delete = this.#db.prepare('DELETE FROM log WHERE row = ?');
    this.#setFloor = this.#db.prepare('UPDATE meta SET floor = ?');
    this.#read = this.#db.prepare(
      `SELECT row, revision, created, key, value${this.#options.jsonBelow === undefined ? '' : isJson} FROM log WHERE row > ? ORDER BY row`,
    );
    this.#pageCount = this.#db.prepare('PRAGMA page_count');
    this.#freePages = this.#db.prepare('PRAGMA freelist_count');
    this.#floor = numberIn(this.#db.prepare('SELECT floor FROM meta'));
  }

  get floor(): number {
    return this.#floor;
  }

  read(afterRow: number): { readonly rows: PackedRows; readonly lastRow: number | undefined } {
    const found: RawRow[] = [];
    let sizeBytes = 0;
    for (const record of this.#read.iterate(afterRow)) {
      const raw = rawRowOf(record);
      if (record['isJson'] === 0) this.#refuseUnlessOther(raw);
      found.push(raw);
      sizeBytes += raw.key.length + (raw.value?.length ?? 0);
      if (sizeBytes >= readBytes) break;
    }
    return { rows: packRawRows(found), lastRow: found.at(-1)?.row };
  }

  /** SQLite refuses some JSON too, such as what is nested very deeply. */
  #refuseUnlessOther({ row, key, value }: RawRow): void {
    const name = Buffer.from(key).toString('utf8');
    if (value === undefined || !name.startsWith(this.#options.jsonBelow!) || canParse(value)) return;
    throw brokenRecord(name, { place: `row ${row}`, remedy: 'delete that row from the table log' });
  }

  append(batch: PackedBatch): DiskUse {
    this.#transaction(() => {
      this.#moveRows(batch.moves);
      for (const { row, revision, createRevision, key, value } of unpackRawRows(batch.rows)) {
        this.#insert.run(row, revision, createRevision, key, value ?? null);
      }
      for (const row of batch.forget) this.#delete.run(row);
      if (batch.floor !== this.#floor) this.#setFloor.run(batch.floor);
    });
    this.#floor = batch.floor;
    this.#loggedBytes += batch.rows.bytes.length + pageBytes * (2 + batch.forget.length + batch.moves.length);
    return this.#use();
  }

  /** Writes something of size and takes it away again. */
  probe(): void {
    this.#checkpoint('TRUNCATE');
    this.#transaction(() => this.#db.exec(`UPDATE meta SET probe = zeroblob(${probeBytes})`));
    this.#transaction(() => this.#db.exec('UPDATE meta SET probe = NULL'));
  }

  /** Does a little of what keeps the files small; says whether there is more to do. */
  tidy(): boolean {
    if (this.#logFileBytes() > this.#options.logBytesMax) this.#checkpoint('TRUNCATE');
    else if (this.#loggedBytes > checkpointBytes) this.#checkpoint('PASSIVE');
    if (numberIn(this.#freePages) * pageBytes <= this.#options.freeBytesMax) return false;
    this.#db.exec(`PRAGMA incremental_vacuum(${vacuumPages})`);
    this.#loggedBytes += 2 * vacuumPages * pageBytes;
    return true;
  }

  close(): void {
    this.#db.close();
  }

  #prepareFile(): void {
    const db = this.#db;
    // Exclusive: a second process is refused as long as this one lives, and not a moment longer.
    db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = ${pageBytes}; PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
      PRAGMA journal_size_limit = ${this.#options.logBytesMax}; PRAGMA wal_autocheckpoint = 2048;`);
    this.#transaction(() => {
      const version = numberIn(db.prepare('PRAGMA user_version'));
      const id = numberIn(db.prepare('PRAGMA application_id'));
      const isNew = version === 0 && id === 0 && numberIn(db.prepare('SELECT count(*) FROM sqlite_schema')) === 0;
      if (isNew) db.exec(schema);
      else if (id !== applicationId) throw new Error('it is a database, but not a portolan store');
      else if (version !== formatVersion) {
        throw new Error(`its format is ${version}, this portolan knows ${formatVersion}; use the one that wrote it`);
      }
    });
    if (this.#options.pagesMax !== undefined) db.exec(`PRAGMA max_page_count = ${this.#options.pagesMax}`);
  }

  #moveRows(moves: readonly RowMove[]): void {
    for (const { from, to } of moves) this.#move.run(to, from);
  }

  #transaction(run: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      run();
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    this.#db.exec(`PRAGMA wal_checkpoint(${mode})`);
    this.#loggedBytes = 0;
  }

  #use(): DiskUse {
    const pages = numberIn(this.#pageCount);
    return {
      fileBytes: statSync(this.#options.path).size + this.#logFileBytes(),
      usedBytes: (pages - numberIn(this.#freePages)) * pageBytes,
    };
  }

  #logFileBytes(): number {
    return statSync(`${this.#options.path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}

/** An empty file that only its owner can read, known to its directory for good. An existing one is left alone: closing
 *  it here would drop the locks that this process may hold on it. */
function createFile(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path), 0o700);
  closeSync(openSync(path, 'ax', 0o600));
  const directory = openSync(dirname(path), 'r');
  fsyncSync(directory);
  closeSync(directory);
}

function rawRowOf(record: Record<string, unknown>): RawRow {
  return {
    row: record['row'] as number,
    revision: record['revision'] as number,
    createRevision: record['created'] as number,
    key: record['key'] as Uint8Array,
    value: (record['value'] as Uint8Array | null) ?? undefined,
  };
}

function numberIn(statement: StatementSync): number {
  return Object.values(statement.get() ?? {})[0] as number;
}
