// Keeps a copy of a server's names on disk, so that the next one can answer before it has read its home, or while its home is
// away. Writes some time after a change and at the end, never a copy that is not whole; what names the next server may take
// from it is decided by `loadCopy`.

import { errorText, type Log } from '../../base/log.ts';
import type { Parts } from '../../base/parts.ts';
import type { Timer, World } from '../../base/world.ts';
import type { NameTable } from '../names/name-table.ts';
import type { Zone } from '../names/zones.ts';
import { type CopiedZone, type CopyFacts, copyPieces, type ReadCopy, readCopy } from './name-copy.ts';

export interface CopyKeeperOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'disk'>;
  readonly log: Log;
  readonly path: string;
  readonly table: NameTable;
  /** The owner of these names. */
  readonly owner: string;
  readonly zones: () => readonly Zone[];
  /** Whether everything has been read. Until then the copy that is there is better than any we could write. */
  readonly isWhole: () => boolean;
  /** Least time between two copies. */
  readonly everyMs?: number;
}

const lookMs = 2000;
const defaultEveryMs = 30_000;
/** After a copy that could not be written. */
const retryMs = 10_000;
/** While the home is reachable, unchanged names are as good as new; the copy's time is refreshed at this interval. */
const refreshMs = 3_600_000;

export class CopyKeeper {
  readonly #options: CopyKeeperOptions;
  readonly #everyMs: number;
  #timer: Timer | undefined;
  #isStopped = false;
  #writing: Promise<void> | undefined;
  /** Wall time at which all names were last known to be right. */
  #asOfMs: number | undefined;
  #written: { readonly serial: number; readonly asOfMs: number } | undefined;
  /** Monotonic. */
  #triedMs = Number.NEGATIVE_INFINITY;
  #problem = '';

  constructor(options: CopyKeeperOptions) {
    this.#options = options;
    this.#everyMs = options.everyMs ?? defaultEveryMs;
  }

  /** Why the last copy was not written; empty if it was. */
  problem(): string {
    return this.#problem === '' ? '' : `${this.#options.path}: ${this.#problem}`;
  }

  start(): void {
    this.#timer = this.#options.world.timers.after(Math.min(lookMs, this.#everyMs), () => {
      // Right after the first list its memory is given back: what is written at that moment would keep some of it.
      const isFirst = this.#asOfMs === undefined;
      this.#look();
      const pauseMs = this.#problem === '' ? this.#everyMs : Math.min(retryMs, this.#everyMs);
      const isDue = this.#options.world.clock.monotonicMs() - this.#triedMs >= pauseMs;
      if (!isFirst && isDue && this.#isNews(refreshMs)) void this.#write();
      if (!this.#isStopped) this.start();
    });
  }

  /** Leaves the newest names behind. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#writing;
    this.#look();
    if (this.#isNews(this.#everyMs)) await this.#write();
  }

  #look(): void {
    const { table, zones, world, isWhole } = this.#options;
    if (isWhole() && !zones().some(({ id }) => table.isStale(id))) this.#asOfMs = world.clock.wallMs();
  }

  #isNews(olderMs: number): boolean {
    const { table, isWhole } = this.#options;
    if (this.#asOfMs === undefined || !isWhole()) return false;
    return this.#written?.serial !== table.serial || this.#asOfMs - this.#written.asOfMs >= olderMs;
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeNow().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  async #writeNow(): Promise<void> {
    const { table, world, owner, path, log } = this.#options;
    const facts: CopyFacts = { owner, zones: this.#zones(), asOfMs: this.#asOfMs! };
    const snapshot = table.snapshot();
    try {
      await world.disk.write(path, copyPieces(snapshot, facts), { mode: 0o600, isOnlyWriter: true });
      this.#written = { serial: snapshot.serial, asOfMs: facts.asOfMs };
      if (this.#problem !== '') log.info('names are copied to disk again', { path });
      this.#problem = '';
    } catch (error) {
      // Said once, however often it is tried.
      const problem = errorText(error);
      if (problem !== this.#problem) log.warn('names cannot be copied to disk', { path, error: problem });
      this.#problem = problem;
    }
    this.#triedMs = world.clock.monotonicMs();
  }

  #zones(): CopiedZone[] {
    const { table, zones } = this.#options;
    return zones().map(({ id, name, source }) => ({ id, name, source, isRead: table.isReady(id) }));
  }
}

export interface LoadCopyOptions {
  readonly world: Pick<World, 'clock' | 'disk'>;
  readonly log: Log;
  readonly path: string;
  /** Somebody else's names are of no use. */
  readonly owner: string;
  /** An older copy is not used. */
  readonly maxAgeMs: number;
}

/** A copy that was found good. */
export interface LoadedCopy {
  readonly facts: CopyFacts;
  /** Has zones of the table answered from the copy until it is dropped, as far as they are in it. Once only. */
  serve(table: NameTable, zones: readonly Zone[]): void;
}

/** Undefined if there is none that is of use; the log says why. */
export async function loadCopy(options: LoadCopyOptions): Promise<LoadedCopy | undefined> {
  const { world, log, path } = options;
  const file = await world.disk.read(path).catch((error) => errorText(error));
  if (file === undefined) return undefined;
  let read: ReadCopy | undefined = typeof file === 'string' ? { kind: 'unusable', why: file } : readCopy(file);
  const why = read.kind === 'unusable' ? read.why : whyNot(read.facts, options);
  if (read.kind === 'unusable' || why !== '') {
    log.warn('the copy of names on disk is not used', { path, why });
    return undefined;
  }
  const { facts } = read;
  return {
    facts,
    serve: (table, zones) => {
      const other = differentDomain(facts, zones);
      if (other !== '') log.warn('the copy of names on disk is not used', { path, why: other });
      const served = other === '' ? zones.filter((zone) => facts.zones.some((old) => isSame(old, zone))) : [];
      const asOf = new Date(facts.asOfMs).toISOString();
      const fields = { path, asOf, zones: served.map(({ name }) => name) };
      if (served.length > 0) log.info('names are answered from the copy on disk until the home has been read', fields);
      if (read?.kind === 'copy' && served.length > 0) table.setOld(read.memoryFor(served.map(({ id }) => id)));
      // It is large, and was needed for this only.
      read = undefined;
    },
  };
}

function whyNot(facts: CopyFacts, { world, owner, maxAgeMs }: LoadCopyOptions): string {
  if (facts.owner !== owner) return `its names are those of ${facts.owner}, and this is ${owner}`;
  // A clock that was set back makes no copy any younger.
  const ageMs = Math.abs(world.clock.wallMs() - facts.asOfMs);
  return ageMs > maxAgeMs ? `it is ${hours(ageMs)} old, and up to ${hours(maxAgeMs)} is allowed` : '';
}

/** The cluster's own two zones go together: a server with another domain is not the one that left the copy. */
function differentDomain(facts: CopyFacts, zones: readonly Zone[]): string {
  for (const { id, name, source } of zones) {
    if (source !== 'services' && source !== 'imports') continue;
    const old = facts.zones.find((zone) => zone.id === id);
    if (old !== undefined && old.name !== name) return `its names end in ${old.name}, and here in ${name}`;
  }
  return '';
}

function isSame(old: CopiedZone, zone: Zone): boolean {
  return old.isRead && old.id === zone.id && old.name === zone.name;
}

function hours(ms: number): string {
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export interface NamesCopy {
  readonly path: string;
  /** The owner of these names: `cluster east`, `federation world`. */
  readonly owner: string;
  /** A usable copy left by an earlier server. */
  readonly loaded: LoadedCopy | undefined;
}

export interface FindCopyOptions {
  readonly world: Pick<World, 'clock' | 'disk'>;
  readonly log: Log;
  readonly directory: string;
  readonly owner: string;
  readonly maxAgeMs?: number;
}

/** After a day, addresses are likely to be reused. */
const defaultMaxAgeMs = 24 * 3_600_000;

const ownerPrefix = 'cluster ';

/** The owner of a cluster's names, as a copy names it. */
export function ownerOf(cluster: string): string {
  return `${ownerPrefix}${cluster}`;
}

/** The cluster whose resolver left a copy here; undefined if there is none that can be read. */
export async function clusterInCopy(disk: Pick<World['disk'], 'read'>, directory: string): Promise<string | undefined> {
  const file = await disk.read(pathIn(directory)).catch(() => undefined);
  const read = file && readCopy(file);
  if (read?.kind !== 'copy' || !read.facts.owner.startsWith(ownerPrefix)) return undefined;
  return read.facts.owner.slice(ownerPrefix.length);
}

function pathIn(directory: string): string {
  return `${directory}/names`;
}

export async function findNamesCopy(options: FindCopyOptions): Promise<NamesCopy> {
  const { directory, owner, maxAgeMs = defaultMaxAgeMs } = options;
  const path = pathIn(directory);
  return { path, owner, loaded: await loadCopy({ ...options, path, maxAgeMs }) };
}

/** The clusterset's zone as it was. */
export function clustersetZoneIn({ loaded }: NamesCopy): string | undefined {
  return loaded?.facts.zones.find(({ source }) => source === 'imports')?.name;
}

export interface KeepCopyOptions {
  readonly world: World;
  readonly log: Log;
  readonly copy: NamesCopy;
  readonly table: NameTable;
  readonly zones: () => readonly Zone[];
  readonly isWhole: () => boolean;
  whenSynced(): Promise<void>;
}

export function keepNamesCopy(options: KeepCopyOptions, parts: Parts): CopyKeeper {
  const { copy, table } = options;
  void options.whenSynced().then(() => table.dropOld());
  const keeper = new CopyKeeper({ ...options, ...copy });
  keeper.start();
  parts.add('copy of names', () => keeper.stop());
  return keeper;
}
