// The store of a home on etcd: waits until no other process writes it, makes sure that it is this home that lies there,
// and keeps the home's keys with it if it is encrypted. Refuses an etcd that is older than what this folder has seen.

import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Timer, World } from '../../base/world.ts';
import { registryRoot } from '../../home/model/kind.ts';
import { openEtcdStore } from '../../home/open-store.ts';
import { copyPki, homeIdOf, pkiProblem, tokenKeyFile } from '../../home/security/pki-copy.ts';
import { PkiFiles } from '../../home/security/pki-files.ts';
import { restoredRevision } from '../../home/snapshot/restore.ts';
import { EtcdClient } from '../../home/store/etcd/client.ts';
import { Formats } from '../../home/store/etcd/formats.ts';
import type { EtcdJournal } from '../../home/store/etcd/journal.ts';
import { EtcdLock } from '../../home/store/etcd/lock.ts';
import { Layout } from '../../home/store/etcd/rows.ts';
import { Seal } from '../../home/store/etcd/seal.ts';
import { type EndpointOptions, etcdEndpoint } from '../../home/store/etcd/transport-grpc.ts';
import type { LogStore } from '../../home/store/log-store.ts';

export interface EtcdOptions {
  readonly endpoints: readonly EndpointOptions[];
  readonly credentials?: { readonly name: string; readonly password: string } | undefined;
  /** Ends with a slash. */
  readonly prefix: string;
  /** Content of the file with the keys that everything is encrypted with. */
  readonly sealKeys?: string | undefined;
  /** Whether older states of etcd are given up by us. */
  readonly compacts: boolean;
  /** Go on although etcd is older than what this folder has seen. */
  readonly acceptsRestored?: boolean;
}

export interface EtcdHomeOptions {
  readonly world: World;
  readonly log: Log;
  readonly directory: string;
  readonly etcd: EtcdOptions;
  /** How other processes reach this one. */
  readonly address: string;
  readonly historyMs?: number | undefined;
  readonly metrics?: Metrics;
  readonly onWaiting?: (holder: string) => void;
  readonly isGone?: (holder: string) => Promise<boolean>;
  readonly signal?: AbortSignal | undefined;
}

export interface EtcdHome {
  readonly store: LogStore;
  readonly journal: EtcdJournal;
  /** Keeps a copy of the home's keys in etcd, where that is encrypted. */
  keepKeys(): Promise<void>;
  close(): Promise<void>;
}

const compactEveryMs = 5 * 60_000;
const noteEveryMs = 30_000;

export async function openEtcdHome(options: EtcdHomeOptions): Promise<EtcdHome> {
  const { world, log, metrics, historyMs, etcd } = options;
  const seal = sealOf(options);
  const { client, lock, layout, formats } = await lockEtcd(options);
  const { store, journal } = await openEtcdStore({
    ...{ world, log, client, lock, layout, seal, jsonBelow: registryRoot },
    ...(metrics === undefined ? {} : { metrics }),
    limits: historyMs === undefined ? {} : { historyMs },
    compactEveryMs: etcd.compacts ? compactEveryMs : undefined,
    check: async (opened) => {
      formats.check(opened.tip.format);
      await checkHome(options, opened);
    },
  }).catch((error) => {
    formats.close();
    throw error;
  });
  await formats.follow(journal);
  const note = new SeenNote(options, store);
  let kept = '';
  return {
    store,
    journal,
    keepKeys: async () => {
      const keys = JSON.stringify(await copyPki(options));
      if (seal !== undefined && keys !== kept) await journal.writeAside(keysName, Buffer.from(keys));
      kept = keys;
    },
    close: async () => {
      formats.close();
      await note.close();
      await store.close();
    },
  };
}

export function sealOf({ etcd, world }: Pick<EtcdHomeOptions, 'etcd' | 'world'>): Seal | undefined {
  return etcd.sealKeys === undefined ? undefined : Seal.parse(etcd.sealKeys, world.random);
}

export async function lockEtcd(
  options: Pick<EtcdHomeOptions, 'world' | 'log' | 'etcd' | 'address' | 'onWaiting' | 'isGone' | 'signal'>,
) {
  const { etcd, ...waiting } = options;
  const client = new EtcdClient({ endpoints: etcd.endpoints.map(etcdEndpoint), credentials: etcd.credentials });
  const layout = new Layout(etcd.prefix);
  let formats: Formats | undefined;
  try {
    formats = await Formats.join({ ...waiting, client, layout });
    const lock = await EtcdLock.acquire({ ...waiting, client, key: layout.lock, claimKey: layout.claim });
    return { client, lock, layout, formats };
  } catch (error) {
    formats?.close();
    client.close();
    throw error;
  }
}

const homeName = 'home';
const keysName = 'pki';

/** Whose rows these are. */
export async function writeHomeId(journal: EtcdJournal, id: string): Promise<void> {
  await journal.writeAside(homeName, Buffer.from(JSON.stringify({ id })));
}

async function checkHome(options: EtcdHomeOptions, journal: EtcdJournal): Promise<void> {
  await checkSeen(options, journal);
  const files = new PkiFiles(options);
  const stored = await journal.readAside(homeName);
  if (stored === undefined) return writeHomeId(journal, homeIdOf(await files.openKey(tokenKeyFile)));
  const { id } = JSON.parse(Buffer.from(stored).toString()) as { id: string };
  const own = await files.read(tokenKeyFile);
  const where = `etcd under ${options.etcd.prefix}`;
  if (own !== undefined && homeIdOf(own) !== id)
    throw new Error(
      `${where}: home ${id} is stored there, and ${options.directory} has the keys of home ${homeIdOf(own)}; give the right folder, or another prefix`,
    );
  const keys = await journal.readAside(keysName);
  if (keys !== undefined) return takeKeys(files, JSON.parse(Buffer.from(keys).toString()));
  if (own === undefined)
    throw new Error(
      `${where}: home ${id} is stored there, and ${options.directory} has no keys; copy pki/ of that home into it`,
    );
}

/** The keys in etcd are the newest: another process may have replaced the authority. */
async function takeKeys(files: PkiFiles, keys: Record<string, string>): Promise<void> {
  const problem = pkiProblem(keys);
  if (problem !== undefined) throw new Error(`the keys of the home in etcd: ${problem}`);
  for (const [name, content] of Object.entries(keys))
    if ((await files.read(name)) !== content) await files.write(name, content);
}

function seenFile(directory: string): string {
  return `${directory}/etcd-seen.json`;
}

async function checkSeen(options: EtcdHomeOptions, journal: EtcdJournal): Promise<void> {
  const { world, log, directory, etcd } = options;
  const path = seenFile(directory);
  const bytes = await world.disk.read(path);
  if (bytes === undefined) return;
  const seen = JSON.parse(Buffer.from(bytes).toString()) as { prefix: string; revision: number };
  const { revision } = journal.tip;
  if (seen.prefix !== etcd.prefix || revision >= seen.revision) return;
  if (etcd.acceptsRestored !== true)
    throw new Error(
      `etcd has revision ${revision} of this home, which has been at ${seen.revision}: it was restored from an older backup, or is another etcd; give --etcd-accept-restored if it is to count`,
    );
  log.warn('etcd is older than this home was; everything is listed again', { revision, seen: seen.revision });
  await journal.moveIn(restoredRevision(seen.revision, world.clock.wallMs()));
}

/** Notes now and then how far the store is. */
class SeenNote {
  readonly #options: EtcdHomeOptions;
  readonly #store: LogStore;
  #timer: Timer | undefined;
  #noted = 0;

  constructor(options: EtcdHomeOptions, store: LogStore) {
    this.#options = options;
    this.#store = store;
    this.#later();
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#write();
  }

  #later(): void {
    this.#timer = this.#options.world.timers.after(noteEveryMs, () => {
      void this.#write();
      this.#later();
    });
  }

  async #write(): Promise<void> {
    const revision = this.#store.revision();
    const { world, directory, etcd, log } = this.#options;
    if (revision === this.#noted) return;
    this.#noted = revision;
    const bytes = Buffer.from(JSON.stringify({ prefix: etcd.prefix, revision }));
    await world.disk
      .write(seenFile(directory), bytes, { mode: 0o600 })
      .catch((error) => log.warn('could not note how far etcd is', { error: String(error) }));
  }
}
