// Keeps a copy of a server's names on disk, so that the next one can answer before it has read its home, or while its home is
// away. Writes some time after a change and at the end, never a copy that is not whole; what names the next server may take
// from it is decided by `loadCopy`.

import { errorText, type Log } from '../base/log.ts';
import type { Timer, World } from '../base/world.ts';
import { type CopiedZone, type CopyFacts, copyPieces, readCopy } from './name-copy.ts';
import type { NameTable } from './name-table.ts';
import type { Zone } from './zones.ts';

export interface CopyKeeperOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'disk'>;
  readonly log: Log;
  readonly path: string;
  readonly table: NameTable;
  readonly cluster: string;
  readonly zones: () => readonly Zone[];
  /** Whether everything has been read. Until then the copy that is there is better than any we could write. */
  readonly isWhole: () => boolean;
  /** Least time between two copies. */
  readonly everyMs?: number;
}

const lookMs = 2000;
const defaultEveryMs = 30_000;
/** Names that do not change are as good as new while the home is heard; the copy should say so from time to time. */
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

  start(): void {
    this.#timer = this.#options.world.timers.after(Math.min(lookMs, this.#everyMs), () => {
      this.#look();
      const isDue = this.#options.world.clock.monotonicMs() - this.#triedMs >= this.#everyMs;
      if (isDue && this.#isNews(refreshMs)) void this.#write();
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
    const { table, world, cluster, path, log } = this.#options;
    const facts: CopyFacts = { cluster, zones: this.#zones(), asOfMs: this.#asOfMs! };
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
  readonly cluster: string;
  /** Of an older one nothing is used. */
  readonly maxAgeMs: number;
}

/** A copy that was found good. */
export interface LoadedCopy {
  readonly facts: CopyFacts;
  /** Has the table answered from the copy until it is dropped; true if any of these zones can be. */
  serve(table: NameTable, zones: readonly Zone[]): boolean;
}

/** Undefined if there is none that is of use; the log says why. */
export async function loadCopy(options: LoadCopyOptions): Promise<LoadedCopy | undefined> {
  const { world, log, path, cluster, maxAgeMs } = options;
  const ignore = (why: string) => {
    log.warn('the copy of names on disk is not used', { path, why });
    return undefined;
  };
  const file = await world.disk.read(path).catch((error) => errorText(error));
  if (typeof file === 'string') return ignore(file);
  if (file === undefined) return undefined;
  const read = readCopy(file);
  if (read.kind === 'unusable') return ignore(read.why);
  const { facts } = read;
  if (facts.cluster !== cluster) return ignore(`its names are those of cluster ${facts.cluster}`);
  // A clock that was set back makes no copy any younger.
  const ageMs = Math.abs(world.clock.wallMs() - facts.asOfMs);
  if (ageMs > maxAgeMs) return ignore(`it is ${hours(ageMs)} old, and up to ${hours(maxAgeMs)} is allowed`);
  return {
    facts,
    serve: (table, zones) => {
      const other = differentDomain(facts, zones);
      if (other !== undefined) {
        ignore(other);
        return false;
      }
      const served = zones.filter(({ id, name }) => facts.zones.some((old) => isSame(old, { id, name }) && old.isRead));
      table.setOld(read.memoryFor(served.map(({ id }) => id)));
      log.info('until the home has been read, names are answered from the copy on disk, as old', {
        path,
        zones: served.map(({ name }) => name),
        asOf: new Date(facts.asOfMs).toISOString(),
      });
      return true;
    },
  };
}

/** The cluster's own two zones go together: a server with another domain is not the one that left the copy. */
function differentDomain(facts: CopyFacts, zones: readonly Zone[]): string | undefined {
  for (const { id, name, source } of zones) {
    if (source !== 'services' && source !== 'imports') continue;
    const old = facts.zones.find((zone) => zone.id === id);
    if (old !== undefined && old.name !== name) return `its names end in ${old.name}, and here in ${name}`;
  }
  return undefined;
}

function isSame(old: CopiedZone, { id, name }: Pick<Zone, 'id' | 'name'>): boolean {
  return old.id === id && old.name === name;
}

function hours(ms: number): string {
  return `${(ms / 3_600_000).toFixed(1)} h`;
}
