// The body of a watch: what is there at first is fetched page by page as the reader takes it; what happens meanwhile
// waits in a queue. The queue is bounded: a reader that is too slow loses it, gets the reason, and the stream ends.

export interface EventStreamOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  /** The next page of what is there at first; undefined when there is no more. */
  readonly nextPage?: () => Promise<Uint8Array | undefined>;
  /** The last words to a reader that has fallen behind. */
  readonly overflow: () => Uint8Array;
  /** The last words when a page could not be read. */
  readonly pageFailure: (error: unknown) => Uint8Array;
  /** Called once, however the stream ends. */
  readonly onClose: () => void;
}

type Result = IteratorResult<Uint8Array, undefined>;

/** As much as is handed to the transport at once. */
const chunkBytesMax = 256 * 1024;

export class EventStream implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #options: EventStreamOptions;
  #nextPage: EventStreamOptions['nextPage'];
  #queue: Uint8Array[] = [];
  /** Index of the first event not yet taken. */
  #head = 0;
  #bytes = 0;
  #isEnded = false;
  #isAbandoned = false;
  #wake: (() => void) | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#nextPage = options.nextPage;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  push(event: Uint8Array): void {
    if (this.#isEnded) return;
    this.#queue.push(event);
    this.#bytes += event.length;
    const { eventsMax, bytesMax } = this.#options;
    if (this.#queue.length - this.#head > eventsMax || this.#bytes > bytesMax) this.fail(this.#options.overflow());
    else this.#wakeReader();
  }

  /** Drops what is waiting, and ends with these last words. */
  fail(lastWords: Uint8Array): void {
    if (this.#isEnded) return;
    this.#nextPage = undefined;
    this.#queue = [lastWords];
    this.#head = 0;
    this.#bytes = lastWords.length;
    this.end();
  }

  /** Ends after what is waiting has been taken. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#options.onClose();
    this.#wakeReader();
  }

  async next(): Promise<Result> {
    for (;;) {
      if (this.#isAbandoned) return { done: true, value: undefined };
      if (this.#nextPage !== undefined) {
        const page = await this.#readPage(this.#nextPage);
        if (page !== undefined && !this.#isAbandoned) return { done: false, value: page };
      } else if (this.#head < this.#queue.length) return { done: false, value: this.#take() };
      else if (this.#isEnded) return { done: true, value: undefined };
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** The reader has gone away. */
  async return(): Promise<Result> {
    this.#isAbandoned = true;
    this.#queue = [];
    this.#head = 0;
    this.end();
    this.#wakeReader();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #readPage(nextPage: () => Promise<Uint8Array | undefined>): Promise<Uint8Array | undefined> {
    try {
      const page = await nextPage();
      // Meanwhile the stream may have failed: then the rest of what was there is of no use.
      if (this.#nextPage === undefined) return undefined;
      if (page === undefined) this.#nextPage = undefined;
      return page;
    } catch (error) {
      this.fail(this.#options.pageFailure(error));
      return undefined;
    }
  }

  #take(): Uint8Array {
    const first = this.#head;
    let bytes = 0;
    do bytes += this.#queue[this.#head++]!.length;
    while (this.#head < this.#queue.length && bytes < chunkBytesMax);
    const taken = this.#queue.slice(first, this.#head);
    if (this.#head === this.#queue.length || this.#head > 1000) {
      this.#queue.splice(0, this.#head);
      this.#head = 0;
    }
    this.#bytes -= bytes;
    return taken.length === 1 ? taken[0]! : Buffer.concat(taken, bytes);
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
