// `portolan api migrate`: moves the objects of a stopped home from its folder to etcd, or back. Uids, addresses, creation
// times and revisions stay; history does not, so an older resourceVersion is answered with 410. The other side is
// written whole before the one that is left says where the home went.

import { existsSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createRealHost } from '../../base/real/host.ts';
import { makeFolder } from '../../base/real/make-folder.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { CommandError, usageError } from '../../cli/exit-codes.ts';
import type { ApiFlags, MigrateFlags } from '../../cli/roles/api.ts';
import { openSqliteStore } from '../../home/open-store.ts';
import { copyPki, homeIdOf, tokenKeyFile } from '../../home/security/pki-copy.ts';
import { EtcdJournal } from '../../home/store/etcd/journal.ts';
import type { Journal, JournalRow } from '../../home/store/journal.ts';
import { SqliteJournal } from '../../home/store/sqlite/journal.ts';
import type { StoreSnapshot } from '../../home/store/store.ts';
import { processLog } from '../process.ts';
import { etcdOptionsOf } from './etcd-options.ts';
import { type EtcdHomeOptions, lockEtcd, openEtcdHome, sealOf, writeHomeId } from './etcd-store.ts';
import { leaveFolder, movedFrom, returnToFolder } from './moved.ts';

const unfinished = 'etcd, which was not finished; repeat portolan api migrate';
const rowsPerBatch = 1_000;

export async function migrateHome(flags: ApiFlags, { to }: MigrateFlags): Promise<void> {
  const world = createRealWorld();
  const directory = resolve(flags.data);
  const etcd = await etcdOptionsOf(createRealHost(), flags);
  if (etcd === undefined) throw usageError('migrate: give --etcd, the other side of the move');
  const options = { world, log: processLog(world, flags.logLevel), directory, etcd, address: 'portolan api migrate' };
  const count = to === 'etcd' ? await intoEtcd(options) : await intoFolder(options);
  process.stdout.write(`moved ${count} objects of ${directory} to ${to}\n`);
}

function refuseWaiting(holder: string): never {
  throw new CommandError('refused', `migrate: a process at ${holder} has the home open in etcd; stop it first`);
}

async function intoEtcd(options: EtcdHomeOptions): Promise<number> {
  const { world, log, directory, etcd } = options;
  const path = join(directory, 'store', 'facts.db');
  if (!existsSync(path)) throw new CommandError('notFound', `migrate: ${path} does not exist`);
  if (movedFrom(directory) !== undefined) throw new CommandError('refused', `migrate: ${movedFrom(directory)}`);
  const source = await openSqliteStore({ world, log, path });
  try {
    const keys = await copyPki(options);
    const seal = sealOf(options);
    const { formats, ...locked } = await lockEtcd({ ...options, onWaiting: refuseWaiting });
    formats.close();
    const journal = await EtcdJournal.open({ ...locked, world, log, seal });
    try {
      const { id, movedTo } = journal.tip;
      if (id !== '' && movedTo === undefined)
        throw new CommandError(
          'refused',
          `migrate: etcd holds a home under ${etcd.prefix}; give another --etcd-prefix`,
        );
      await journal.moveOut(unfinished);
      const snapshot = source.snapshot();
      const count = await copyRows(snapshot, journal);
      await writeHomeId(journal, homeIdOf(keys[tokenKeyFile]!));
      if (seal !== undefined) await journal.writeAside('pki', Buffer.from(JSON.stringify(keys)));
      await journal.moveIn(snapshot.revision);
      leaveFolder(directory, etcd.prefix);
      return count;
    } finally {
      await journal.close();
    }
  } finally {
    await source.close();
  }
}

async function intoFolder(options: EtcdHomeOptions): Promise<number> {
  const { world, directory } = options;
  const store = join(directory, 'store');
  if (existsSync(join(store, 'facts.db')) && movedFrom(directory) === undefined)
    throw new CommandError('refused', `migrate: ${store} holds a home already`);
  const home = await openEtcdHome({ ...options, onWaiting: refuseWaiting });
  try {
    const folder = join(directory, 'migrating');
    rmSync(folder, { recursive: true, force: true });
    makeFolder(folder, 0o700);
    const limits = { logBytesMax: 64 * 1024 * 1024, freeBytesMax: 64 * 1024 * 1024 };
    const { journal } = await SqliteJournal.open({ path: join(folder, 'facts.db'), ...limits });
    const snapshot = home.store.snapshot();
    let count: number;
    try {
      count = await copyRows(snapshot, journal);
    } finally {
      await journal.close();
    }
    if (existsSync(store))
      renameSync(store, join(directory, `before-migrate-${Math.floor(world.clock.wallMs() / 1000)}`));
    renameSync(folder, store);
    await home.journal.moveOut(directory);
    returnToFolder(directory);
    return count;
  } finally {
    await home.close();
  }
}

/** Every entry at or below the floor, which is the revision itself. */
async function copyRows({ revision, entries }: StoreSnapshot, journal: Journal): Promise<number> {
  let rows: JournalRow[] = [];
  let count = 0;
  const flush = async (floor: number) => {
    await journal.append({ moves: [], rows, forget: [], floor });
    rows = [];
  };
  for (const { key, value, createRevision, revision: at } of entries) {
    rows.push({ row: ++count, key, value, createRevision, revision: at });
    if (rows.length >= rowsPerBatch) await flush(0);
  }
  await flush(revision);
  return count;
}
