// The snapshots of a running home: taken for a client that asks, and on a schedule into a folder. A snapshot of the store
// is taken at one moment and written in pieces, with time for requests in between.

import { errorText, type Log } from '../../base/log.ts';
import type { Turns } from '../../base/turns.ts';
import { version } from '../../base/version.ts';
import type { Timer, World } from '../../base/world.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { copyPki, homeIdOf, tokenKeyFile } from '../security/pki-copy.ts';
import type { Store } from '../store/store.ts';
import { encodeContent } from './content.ts';
import { createSealKey, Sealer, type SealKey } from './envelope.ts';
import { excessSnapshots, type KeptSnapshot, snapshotFileName, snapshotsIn } from './retention.ts';

export interface SnapshotsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'disk' | 'random'>;
  readonly log: Log;
  readonly store: Store;
  readonly storeBytes: () => number;
  readonly turns: Pick<Turns, 'next'>;
  /** The home's data folder, with its keys. */
  readonly directory: string;
  readonly homeName: string;
  /** Where scheduled ones go; none are taken if absent. */
  readonly folder?: string | undefined;
  /** Scheduled ones are encrypted with it. */
  readonly secret?: string | undefined;
}

/** The answer to `GET /snapshots`. */
export interface SnapshotList {
  /** Empty if none are taken on a schedule. */
  readonly folder: string;
  readonly snapshots: readonly { readonly name: string; readonly takenAt: string; readonly sizeBytes: number }[];
  /** Why the last one could not be taken; empty otherwise. */
  readonly problem: string;
}

const everyMs = 3_600_000;
/** After a start, so that a home has one soon, and none while it is busy starting. */
const firstMs = 60_000;
const retryMs = 300_000;
const dayMs = 24 * 3_600_000;

export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #startedMs: number;
  #timer: Timer | undefined;
  #isStopped = false;
  #taking: Promise<void> | undefined;
  #isStreaming = false;
  #lastGoodMs: number | undefined;
  #lastRevision = -1;
  #problem = '';

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#startedMs = options.world.clock.wallMs();
  }

  async start(): Promise<void> {
    const { folder, world, log } = this.#options;
    if (folder === undefined) return;
    try {
      const newest = (await this.#kept())[0];
      this.#lastGoodMs = newest?.takenMs;
      this.#lastRevision = newest?.revision ?? -1;
    } catch (error) {
      this.#failed(error);
      log.warn('the folder of snapshots cannot be read', { folder, error: errorText(error) });
    }
    const ageMs = world.clock.wallMs() - (this.#lastGoodMs ?? Number.NEGATIVE_INFINITY);
    this.#arm(Math.max(firstMs, everyMs - Math.max(0, ageMs)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#taking;
  }

  /** For people: undefined as long as the last good one is not older than a day. */
  warning(): string | undefined {
    const nowMs = this.#options.world.clock.wallMs();
    const sinceMs = this.#lastGoodMs ?? this.#startedMs;
    if (nowMs - sinceMs <= dayMs) return undefined;
    const last = this.#lastGoodMs === undefined ? 'there is none' : `the last good one is of ${formatTime(sinceMs)}`;
    return `snapshots: ${last}${this.#problem === '' ? '' : `; ${this.#problem}`}`;
  }

  async list(): Promise<SnapshotList> {
    const { folder } = this.#options;
    const kept = folder === undefined ? [] : await this.#kept();
    return {
      folder: folder ?? '',
      snapshots: kept.map(({ name, takenMs, sizeBytes }) => ({ name, takenAt: formatTime(takenMs), sizeBytes })),
      problem: this.#problem,
    };
  }

  /** Undefined while one is being sent to somebody else: each holds what has changed since it was taken. */
  async stream(): Promise<AsyncIterable<Uint8Array> | undefined> {
    if (this.#isStreaming) return undefined;
    this.#isStreaming = true;
    try {
      const { pieces } = await this.#take(undefined);
      return this.#sent(pieces);
    } catch (error) {
      this.#isStreaming = false;
      throw error;
    }
  }

  #sent(pieces: Iterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const takenMs = this.#options.world.clock.wallMs();
    const iterator = this.#inTurns(pieces);
    const done = () => {
      this.#isStreaming = false;
    };
    // An iterator that is returned before its first piece runs none of its own code.
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            const step = await iterator.next();
            if (step.done) {
              this.#lastGoodMs = Math.max(takenMs, this.#lastGoodMs ?? 0);
              done();
            }
            return step;
          } catch (error) {
            done();
            throw error;
          }
        },
        return: async () => {
          done();
          return iterator.return(undefined);
        },
      }),
    };
  }

  async *#inTurns(pieces: Iterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
    for (const piece of pieces) {
      await this.#options.turns.next();
      yield piece;
    }
    return undefined;
  }

  async #take(seal: SealKey | undefined) {
    const { store, directory, homeName, world } = this.#options;
    const files = await copyPki({ world, directory });
    const { revision, entries } = store.snapshot();
    const takenMs = Math.floor(world.clock.wallMs());
    const homeId = homeIdOf(files[tokenKeyFile]!);
    const head = { homeId, homeName, revision, takenMs, portolan: version, files };
    return { revision, takenMs, pieces: sealedPieces(encodeContent(head, entries), seal) };
  }

  #arm(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.world.timers.after(delayMs, () => {
      this.#taking = this.#takeScheduled().finally(() => {
        this.#taking = undefined;
        this.#arm(this.#problem === '' ? everyMs : retryMs);
      });
    });
  }

  async #takeScheduled(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#write();
      if (this.#problem !== '') log.info('snapshots are taken again');
      this.#problem = '';
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Said once, however often it is tried. */
  #failed(error: unknown): void {
    const problem = errorText(error);
    if (problem !== this.#problem) this.#options.log.warn('a snapshot could not be taken', { error: problem });
    this.#problem = problem;
  }

  async #write(): Promise<void> {
    const { world, folder, secret, store, log } = this.#options;
    // An unchanged store needs no other snapshot: the last one is as good as a new one.
    if (store.revision() === this.#lastRevision && (await this.#kept()).length > 0) {
      this.#lastGoodMs = world.clock.wallMs();
      return;
    }
    await this.#checkRoom();
    const { revision, takenMs, pieces } = await this.#take(
      secret === undefined ? undefined : await createSealKey(secret, world.random),
    );
    const path = `${folder}/${snapshotFileName(takenMs, revision)}`;
    await world.disk.write(path, pieces, { mode: 0o600 });
    this.#lastGoodMs = takenMs;
    this.#lastRevision = revision;
    log.info('took a snapshot', { path, revision });
    const excess = excessSnapshots(await this.#kept(), this.#options.storeBytes());
    for (const { name } of excess) await world.disk.remove(`${folder}/${name}`);
  }

  /** The store needs the room more than its snapshot does. */
  async #checkRoom(): Promise<void> {
    const { world, folder, storeBytes } = this.#options;
    const free = await world.disk.freeBytes(folder!);
    const wanted = 2 * storeBytes();
    if (free >= wanted) return;
    throw new Error(`${folder} has ${free} bytes left, and a snapshot is taken only while there are ${wanted}`);
  }

  async #kept(): Promise<KeptSnapshot[]> {
    return snapshotsIn(await this.#options.world.disk.list(this.#options.folder!));
  }
}

export function* sealedPieces(payload: Iterable<Uint8Array>, seal?: SealKey): Generator<Uint8Array> {
  const sealer = new Sealer(seal);
  yield sealer.begin();
  for (const bytes of payload) yield sealer.add(bytes);
  yield sealer.end();
}
