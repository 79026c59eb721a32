// Processes of two versions may serve a home by turns, so rows are written in no newer format than each of them reads. Every
// process leaves a note of what it reads, which outlives it: one that is away for a moment counts. The process that writes
// raises the format when no note of an older version is left.

import { errorText, type Log } from '../../../base/log.ts';
import type { Timer, World } from '../../../base/world.ts';
import type { EtcdClient } from './client.ts';
import type { EtcdJournal } from './journal.ts';
import { decodeTip, type Layout } from './rows.ts';

/** The newest format that this version reads and writes; all before it too. */
const newestFormat = 1;

export interface FormatsOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly log: Log;
  /** Which formats this process reads: up to this one. */
  readonly reads?: number;
}

const noteSeconds = 600;
const renewEveryMs = 60_000;
const retryMs = 2_000;

export class Formats {
  readonly #options: FormatsOptions;
  readonly #reads: number;
  readonly #key: string;
  #leaseId: bigint | undefined;
  #journal: EtcdJournal | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  private constructor(options: FormatsOptions) {
    this.#options = options;
    this.#reads = options.reads ?? newestFormat;
    this.#key = options.layout.reader(options.world.random.uuid());
  }

  /** Rejects if the home is written in a format that this process does not read. An etcd that is away is waited for later. */
  static async join(options: FormatsOptions): Promise<Formats> {
    const formats = new Formats(options);
    const { client, layout } = options;
    const entries = await client.range({ key: layout.tip }).then(
      (answer) => answer.entries,
      () => [],
    );
    for (const { value } of entries) formats.check(decodeTip(layout.tip, value).format);
    await formats.renew();
    return formats;
  }

  check(format: number): void {
    if (format <= this.#reads) return;
    throw new Error(
      `etcd under ${this.#options.layout.prefix}: it is written in format ${format}, and this version reads up to ${this.#reads}; upgrade this process`,
    );
  }

  /** From now on this process writes. */
  async follow(journal: EtcdJournal): Promise<void> {
    this.#journal = journal;
    await this.renew();
  }

  /** The note stays until its time is over. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  async renew(): Promise<void> {
    const { world, log } = this.#options;
    this.#timer?.cancel();
    let nextMs = renewEveryMs;
    try {
      await this.#note();
      await this.#raise();
    } catch (error) {
      nextMs = retryMs;
      log.debug('the format of the home could not be looked at', { error: errorText(error) });
    }
    if (!this.#isClosed) this.#timer = world.timers.after(nextMs, () => void this.renew());
  }

  async #note(): Promise<void> {
    const { client } = this.#options;
    if (this.#leaseId !== undefined && (await client.keepAlive(this.#leaseId)).seconds > 0) return;
    const { leaseId } = await client.grantLease(noteSeconds);
    const value = Buffer.from(JSON.stringify({ v: 1, reads: this.#reads }));
    await client.txn({ conditions: [], operations: [{ put: this.#key, value, leaseId }] });
    this.#leaseId = leaseId;
  }

  async #raise(): Promise<void> {
    const journal = this.#journal;
    if (journal === undefined || this.#isClosed || journal.tip.format >= this.#reads) return;
    const lowest = Math.min(this.#reads, ...(await this.#noted()));
    if (lowest <= journal.tip.format) return;
    await journal.raiseFormat(lowest);
    this.#options.log.info('every process of this home reads a newer format; it is written from now on', {
      format: lowest,
    });
  }

  async #noted(): Promise<number[]> {
    const { client, layout } = this.#options;
    const { entries } = await client.range({ key: layout.reader(''), until: layout.readersEnd });
    return entries.map(({ value }) => readsOf(value));
  }
}

/** A note that cannot be read is of a process that reads the first format at least. */
function readsOf(value: Uint8Array): number {
  try {
    const { reads } = JSON.parse(Buffer.from(value).toString()) as { reads?: unknown };
    return Number.isSafeInteger(reads) ? (reads as number) : 1;
  } catch {
    return 1;
  }
}
