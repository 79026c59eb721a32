// The highest epoch of each audience and the highest counter of each sealed record that this cluster has opened, by exporter,
// kept in a Secret of its own home. What is lower is an older state that somebody put back, also after a restart.

import { errorText, type Log } from '../../base/log.ts';
import { Queue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import type { SeenMarks } from '../members/sealed-copy.ts';
import { sealedMemoryName } from '../membership/membership.ts';

export interface SealedMemoryOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
}

const place = { namespace: sealingNamespace, name: sealedMemoryName };
/** Changes within that time are one write. */
const writeDelayMs = 1_000;
/** Of all exporters: a Secret has room for a megabyte. */
const marksMax = 20_000;
const line = /^([as]-[0-9a-f]{16}) ([0-9a-z]{1,11})$/;

export class SealedMemory implements SeenMarks {
  readonly #options: SealedMemoryOptions;
  readonly #queue: Queue;
  /** By exporter and short name, those that were raised last at the end. */
  readonly #marks = new Map<string, Map<string, number>>();
  readonly #changed = new Set<string>();
  #size = 0;
  #isLoaded = false;

  constructor(options: SealedMemoryOptions) {
    this.#options = options;
    this.#queue = new Queue({
      name: 'memory of sealed records',
      world: options.world,
      work: async () => {
        await this.#write();
        return undefined;
      },
      onFailure: ({ error }) => options.log.warn('memory of sealed records not written', { error: errorText(error) }),
    });
  }

  /** Nothing may be opened before. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  async load(): Promise<void> {
    const found = await getOrUndefined<Secret>(this.#options.home, secretType, place);
    if (this.#isLoaded) return;
    for (const [exporter, text] of Object.entries(found?.data ?? {}))
      for (const [name, mark] of decode(text)) this.#set(exporter, name, mark);
    this.#isLoaded = true;
    this.#queue.start();
  }

  highest(exporter: string, name: string): number {
    return this.#marks.get(exporter)?.get(shortName(name)) ?? 0;
  }

  note(exporter: string, name: string, mark: number): void {
    if (mark <= this.highest(exporter, name)) return;
    this.#set(exporter, shortName(name), mark);
    this.#changed.add(exporter);
    this.#queue.addAfter('write', writeDelayMs);
  }

  /** Writes what is not written yet. */
  async stop(): Promise<void> {
    await this.#queue.stop();
    await this.#write().catch((error: unknown) =>
      this.#options.log.warn('memory of sealed records not written', { error: errorText(error) }),
    );
  }

  #set(exporter: string, name: string, mark: number): void {
    const marks = this.#marks.get(exporter) ?? new Map<string, number>();
    this.#marks.set(exporter, marks);
    if (!marks.delete(name)) this.#size += 1;
    marks.set(name, mark);
    if (this.#size > marksMax) this.#forgetOne();
  }

  /** Of the exporter that has most, so that none takes the room of others. */
  #forgetOne(): void {
    const [exporter, marks] = [...this.#marks].reduce((most, one) => (one[1].size > most[1].size ? one : most));
    const [oldest] = marks.keys();
    if (oldest === undefined) return;
    marks.delete(oldest);
    this.#size -= 1;
    this.#changed.add(exporter);
  }

  async #write(): Promise<void> {
    if (this.#changed.size === 0) return;
    const changed = [...this.#changed];
    this.#changed.clear();
    const data = Object.fromEntries(changed.map((exporter) => [exporter, encode(this.#marks.get(exporter))]));
    const { home } = this.#options;
    try {
      await home.patch(secretType, place, { kind: 'merge', body: { data } });
    } catch (error) {
      for (const exporter of changed) this.#changed.add(exporter);
      if (!isNotFound(error)) throw error;
      const all = Object.fromEntries([...this.#marks].map(([exporter, marks]) => [exporter, encode(marks)]));
      const { object } = manifest(secretType, place, { type: 'portolan.dev/sealed-memory', data: all });
      await home.create(secretType, object);
      this.#changed.clear();
    }
  }
}

/** 64 bits of a name: which of them are alike only its exporter could choose. */
function shortName(name: string): string {
  return name.slice(0, 18);
}

function encode(marks: ReadonlyMap<string, number> = new Map()): string {
  const lines = [...marks].map(([name, mark]) => `${name} ${mark.toString(36)}`);
  return Buffer.from(lines.join('\n')).toString('base64');
}

function decode(text: string): [string, number][] {
  const lines = Buffer.from(text, 'base64').toString('utf8').split('\n');
  return lines.flatMap((one) => {
    const [, name, mark] = line.exec(one) ?? [];
    const value = Number.parseInt(mark ?? '', 36);
    return name !== undefined && Number.isSafeInteger(value) ? [[name, value] as [string, number]] : [];
  });
}
