// HTTP between simulated processes: each message takes time, links can be refused, cut or silent, open streams can be
// broken. Servers are functions from request to response, found by the URL their callers use.

import type { HttpRequest, HttpResponse, HttpTransport } from '../src/base/http.ts';
import { ConnectionError } from '../src/base/real/connection-error.ts';
import type { VirtualTime } from './virtual-time.ts';

export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;

/** `refused` fails at once, `silent` swallows everything: what a partition looks like from outside. */
export type LinkState = 'up' | 'refused' | 'silent';

interface Stream {
  readonly from: string;
  readonly server: string;
  /** Closing it breaks its own streams alone. */
  readonly transport: HttpTransport;
  fail(error: Error): void;
}

export class VirtualNetwork {
  readonly #time: VirtualTime;
  readonly #latencyMs: () => number;
  readonly #servers = new Map<string, HttpHandler>();
  /** Caller, then server. */
  readonly #links = new Map<string, Map<string, LinkState>>();
  readonly #open = new Set<Stream>();

  constructor(time: VirtualTime, latencyMs: () => number) {
    this.#time = time;
    this.#latencyMs = latencyMs;
  }

  listen(server: string, handler: HttpHandler): void {
    this.#servers.set(server, handler);
  }

  close(server: string): void {
    this.#servers.delete(server);
    this.breakStreams({ server });
  }

  setLink(from: string, server: string, state: LinkState): void {
    const links = this.#links.get(from) ?? new Map<string, LinkState>();
    this.#links.set(from, links.set(server, state));
    if (state === 'refused') this.breakStreams({ from, server });
  }

  /** Breaks connections as a reset does; pending reads fail. */
  breakStreams(which: { readonly from?: string; readonly server?: string; readonly transport?: HttpTransport }): void {
    for (const stream of [...this.#open]) {
      if (which.from !== undefined && which.from !== stream.from) continue;
      if (which.server !== undefined && which.server !== stream.server) continue;
      if (which.transport !== undefined && which.transport !== stream.transport) continue;
      stream.fail(new Error(`${stream.server}: connection reset`));
    }
  }

  transport(
    from: string,
    access: { readonly server: string; readonly bearerToken?: () => Promise<string | undefined> },
  ) {
    let isClosed = false;
    const transport: HttpTransport = {
      send: async (request) => {
        if (isClosed) throw new Error(`${access.server}: transport is closed`);
        const token = await access.bearerToken?.();
        const headers =
          token === undefined ? request.headers : { ...request.headers, authorization: `Bearer ${token}` };
        return this.#exchange({ from, server: access.server, transport }, { ...request, headers });
      },
      close: () => {
        isClosed = true;
        this.breakStreams({ transport });
      },
    };
    return transport;
  }

  #link(from: string, server: string): LinkState {
    return this.#links.get(from)?.get(server) ?? 'up';
  }

  #exchange(ends: Omit<Stream, 'fail'>, request: HttpRequest): Promise<HttpResponse> {
    const { from, server } = ends;
    return new Promise((resolve, reject) => {
      // Only a watch is still being answered when its caller may have lost interest.
      const caller = request.path.includes('watch=') ? new AbortController() : undefined;
      const stream: Stream = {
        ...ends,
        fail: (error) => {
          this.#open.delete(stream);
          caller?.abort(error);
          reject(error);
        },
      };
      this.#open.add(stream);
      request.signal?.addEventListener('abort', () => stream.fail(request.signal?.reason), { once: true });
      const deliver = (response: HttpResponse) => {
        const isStream = !(response.body instanceof Uint8Array);
        if (!isStream) this.#open.delete(stream);
        resolve(isStream ? { ...response, body: this.#carry(stream, response.body, caller?.signal) } : response);
      };
      this.#hop(from, server, () => {
        const handler = this.#servers.get(server);
        if (handler === undefined || this.#link(from, server) === 'refused') {
          const cause = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
          return stream.fail(new ConnectionError(`${server}: connection refused`, cause));
        }
        handler({ ...request, signal: caller?.signal }).then(
          (response) => this.#hop(from, server, () => deliver(response)),
          (error) => stream.fail(error),
        );
      });
    });
  }

  /** Runs one latency later, or never on a silent link. */
  #hop(from: string, server: string, run: () => void): void {
    this.#time.schedule(this.#latencyMs(), () => {
      if (this.#link(from, server) !== 'silent') run();
    });
  }

  /** Carries a body chunk by chunk. A silent link loses nothing but delivers nothing either until it is up again. */
  async *#carry(
    stream: Stream,
    body: HttpResponse['body'],
    signal = new AbortController().signal,
  ): AsyncGenerator<Uint8Array> {
    const source = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    const broken = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    broken.catch(() => {});
    try {
      for (;;) {
        const next = await Promise.race([source.next(), broken]);
        if (next.done) return;
        await Promise.race([this.#arrival(stream), broken]);
        yield next.value;
      }
    } finally {
      this.#open.delete(stream);
      void source.return?.();
    }
  }

  #arrival(stream: Stream): Promise<void> {
    return new Promise((resolve) => {
      const tryAgain = () => {
        if (this.#link(stream.from, stream.server) !== 'silent') resolve();
        else this.#time.schedule(1000, tryAgain);
      };
      this.#time.schedule(this.#latencyMs(), tryAgain);
    });
  }
}
