// For tests of the consumer's session: a disk that takes what it was asked to store when the test says so.

import type { ConsumerOutput } from '../session/consumer-session.ts';
import { type HeldService, type HeldServices, hashText } from '../session/held-services.ts';

export class TestDisk implements HeldServices {
  readonly #services = new Map<string, HeldService>();
  readonly #queued = new Map<number, ConsumerOutput>();
  bytes = 0;

  get size(): number {
    return this.#services.size;
  }

  get(id: string): HeldService | undefined {
    return this.#services.get(id);
  }

  ids(): Iterable<string> {
    return this.#services.keys();
  }

  put(id: string, hash: Uint8Array, bytes: number): void {
    this.remove(id);
    this.#services.set(id, { id, hash: hashText(hash), bytes });
    this.bytes += bytes;
  }

  remove(id: string): void {
    this.bytes -= this.#services.get(id)?.bytes ?? 0;
    this.#services.delete(id);
  }

  queue(output: ConsumerOutput): void {
    if (output.kind === 'store' || output.kind === 'remove') this.#queued.set(output.ticket, output);
  }

  /** Marks the work of this ticket as stored. */
  take(ticket: number): void {
    const output = this.#queued.get(ticket);
    this.#queued.delete(ticket);
    if (output?.kind === 'store') this.put(output.service.id, output.hash, output.bytes);
    if (output?.kind === 'remove') for (const id of output.ids) this.remove(id);
  }
}
