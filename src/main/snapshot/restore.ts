// `portolan snapshot restore`: everything is read, verified and written beside the present state before anything of that
// is touched. A snapshot that is refused leaves the folder as it was.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorText } from '../../base/log.ts';
import { CommandError } from '../../cli/exit-codes.ts';
import type { RestoreFlags } from '../../cli/snapshot/command.ts';
import { formatTable } from '../../cli/table.ts';
import type { CliDeps } from '../../cli/with-home.ts';
import { openSqliteStore } from '../../home/open-store.ts';
import { homeIdOf, pkiProblem, tokenKeyFile } from '../../home/security/pki-copy.ts';
import type { SnapshotEntry, SnapshotHead } from '../../home/snapshot/content.ts';
import {
  abandonRestore,
  beginRestore,
  commitRestore,
  finishRestore,
  writeRestored,
} from '../../home/snapshot/edge/restored-folder.ts';
import { readSnapshot } from '../../home/snapshot/read.ts';
import { type Restored, restoreSnapshot } from '../../home/snapshot/restore.ts';
import { snapshotFileName } from '../../home/snapshot/retention.ts';
import { SnapshotError } from '../../home/snapshot/snapshot-error.ts';
import { JournalLockedError } from '../../home/store/journal.ts';
import type { LogStore } from '../../home/store/log-store.ts';
import { SqliteJournal } from '../../home/store/sqlite/journal.ts';
import { describeFacts } from './commands.ts';
import { snapshotChunks, withFileNamed } from './file.ts';
import { readSnapshotKey } from './key-file.ts';
import { type Returned, returnedIn, returnedPrefixes } from './returned.ts';
import { isJoinToken } from './void-tokens.ts';

/** For a store that is written once and then closed. */
const databaseLimits = { logBytesMax: 64 * 1024 * 1024, freeBytesMax: 64 * 1024 * 1024 };

export async function restoreFromSnapshot(deps: CliDeps, file: string, flags: RestoreFlags): Promise<void> {
  const directory = resolve(flags.data);
  const secret = await readSnapshotKey(deps.host, flags.keyFile);
  if (existsSync(directory)) finishRestore(directory);
  const present = await openPresent(deps, directory);
  try {
    const job: Job = { deps, file, directory, secret, present: present.uids, store: present.store, returned: [] };
    await withFileNamed(file, () => (flags.yes === true ? restore(job) : preview(job)));
  } finally {
    await present.store?.close();
  }
}

interface Job {
  readonly deps: CliDeps;
  readonly file: string;
  readonly directory: string;
  readonly secret: string | undefined;
  /** Objects of the present store by their uids; undefined if there is none to compare with. */
  readonly present: ReadonlySet<string> | undefined;
  readonly store: LogStore | undefined;
  readonly returned: Returned[];
}

/** Held open, so that no home starts on it meanwhile. */
async function openPresent(
  { world, print }: CliDeps,
  directory: string,
): Promise<{ readonly store?: LogStore; readonly uids?: ReadonlySet<string> }> {
  const path = join(directory, 'store', 'facts.db');
  if (!existsSync(path)) return {};
  try {
    const store = await openSqliteStore({ world, path });
    const uids = new Set<string>();
    for (const prefix of returnedPrefixes)
      for (const entry of (await store.range({ prefix })).entries) uids.add(returnedIn(entry)?.uid ?? '');
    return { store, uids };
  } catch (error) {
    if (error instanceof JournalLockedError) throw new CommandError('refused', errorText(error));
    print(`the present store cannot be read, so nothing is compared with it: ${errorText(error)}`);
    return {};
  }
}

async function preview(job: Job): Promise<never> {
  const { file, directory, secret } = job;
  const read = await readSnapshot(snapshotChunks(file), {
    secret,
    onHead: (head) => refuseOther(directory, head),
    onEntry: (entry) => collect(job, entry),
  });
  if (read.kind === 'sealed') throw new SnapshotError('it is encrypted; give the key with --key-file');
  job.deps.print(describeFacts(read.facts));
  report(job, 'would come back');
  throw new CommandError('notReady', `restore into ${directory}: nothing was changed; repeat it with --yes to restore`);
}

async function restore(job: Job): Promise<void> {
  const { deps, file, directory, secret } = job;
  const nowMs = deps.world.clock.wallMs();
  const folder = beginRestore(directory);
  const former = `before-restore-${snapshotFileName(nowMs, 0).slice(0, 16)}`;
  let restored: Restored;
  try {
    const path = join(folder, 'store', 'facts.db');
    const { journal } = await SqliteJournal.open({ path, ...databaseLimits });
    try {
      restored = await restoreSnapshot({
        ...{ chunks: snapshotChunks(file), secret, nowMs, journal },
        onHead: (head) => {
          refuseOther(directory, head);
          for (const [name, content] of Object.entries(head.files)) writeRestored(folder, name, content);
        },
        isLeftOut: (entry) => {
          collect(job, entry);
          return isJoinToken(entry.key);
        },
      });
    } finally {
      await journal.close();
    }
    // Closing it later would remove files by their names, which are those of the new store by then.
    await job.store?.close();
    commitRestore(directory, former);
  } catch (error) {
    abandonUnlessWhole(directory);
    throw error;
  }
  deps.print(describeFacts(restored.facts));
  report(job, 'came back');
  if (restored.leftOut > 0)
    deps.print(`${restored.leftOut} open join tokens are void; make new ones where they are wanted`);
  deps.print(`restored ${restored.entries} objects into ${directory}; its revision is ${restored.revision} now`);
  if (existsSync(join(directory, former))) deps.print(`the former state is in ${join(directory, former)}`);
}

/** Once it is whole, the next start goes on with the exchange. */
function abandonUnlessWhole(directory: string): void {
  if (!finishRestore(directory)) abandonRestore(directory);
}

function collect({ returned }: Job, entry: SnapshotEntry): void {
  const one = returnedIn(entry);
  if (one !== undefined) returned.push(one);
}

/** Where the present state can be read, those that are in it as well need no look. */
function report({ deps, returned, present }: Job, verb: string): void {
  const news = present === undefined ? returned : returned.filter(({ uid }) => !present.has(uid));
  if (news.length === 0) return;
  const since = present === undefined ? '' : ', and are not in the present state';
  deps.print(`these ${verb} with their rights${since}; remove those that are not wanted any more:`);
  for (const line of formatTable(
    ['WHAT', 'NAME', 'RIGHTS'],
    news.map(({ what, name, detail }) => [what, name, detail]),
  ))
    deps.print(line);
}

/** A folder without keys and store takes any snapshot. */
function refuseOther(directory: string, head: SnapshotHead): void {
  const problem = pkiProblem(head.files);
  if (problem !== undefined) throw new SnapshotError(`it is damaged: ${problem}`);
  if (homeIdOf(head.files[tokenKeyFile]!) !== head.homeId)
    throw new SnapshotError('it is damaged: its keys are of another home');
  const isHome = existsSync(join(directory, 'store')) || existsSync(join(directory, 'pki'));
  if (!isHome) return;
  const id = presentId(directory);
  if (id === head.homeId) return;
  const whose = id === undefined ? 'a home that cannot be told' : `home ${id}`;
  throw new SnapshotError(
    `it is of home ${head.homeName} (${head.homeId}), and ${directory} has the state of ${whose}; give an empty folder`,
  );
}

function presentId(directory: string): string | undefined {
  try {
    return homeIdOf(readFileSync(join(directory, 'pki', tokenKeyFile), 'utf8'));
  } catch {
    return undefined;
  }
}
