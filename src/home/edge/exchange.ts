// One request and its answer: takes in a bounded body in bounded time, asks the API, and sends the answer only as fast
// as it is read. Its deadline is looked at by the server's sweep, so that a request costs no timer of its own.

import type { HttpResponse } from '../../base/http.ts';
import { errorText, type Log } from '../../base/log.ts';
import { errorResponse } from '../encoding/respond.ts';
import type { ApiRequest, RequestTrail } from '../model/access.ts';
import { StatusError } from '../model/status.ts';
import { asStatusError } from '../model/status-errors.ts';
import type { EdgeLimits } from './limits.ts';
import { clientFields, type TlsClient } from './tls-client.ts';
import type { Transport } from './transports.ts';

const pieceBytes = 256 * 1024;
const noDeadline = Number.POSITIVE_INFINITY;

export interface ExchangeOptions {
  readonly transport: Transport;
  readonly client: TlsClient;
  readonly wallMs: number;
  /** Empty for a request that is not audited. */
  readonly auditId: string;
  readonly handle: (request: ApiRequest) => Promise<HttpResponse>;
  readonly limits: EdgeLimits;
  /** Bytes of request bodies held by all exchanges of the server together. */
  readonly bodies: { bytes: number };
  readonly log: Log;
  /** Never goes back. */
  readonly nowMs: () => number;
  readonly onResponse: (exchange: Exchange, response: HttpResponse) => void;
  readonly onDone: (exchange: Exchange) => void;
  /** A reader took nothing for too long. */
  readonly onStall: () => void;
}

export class Exchange {
  readonly #options: ExchangeOptions;
  readonly trail: RequestTrail = {};
  #deadlineMs = noDeadline;
  #onDeadline: () => void = () => {};
  #abort: AbortController | undefined;
  #isGone = false;
  #isEnding = false;
  #isReceived = false;
  #bodyBytes = 0;
  /** Then the other side may never end its part, and the exchange is over once the answer has left. */
  #isRestRefused = false;
  #iterator: AsyncIterator<Uint8Array> | undefined;
  /** Ends a pending wait: the other side has gone. */
  #wake: (() => void) | undefined;
  /** The status that was sent; 0 until then. */
  status = 0;
  isStream = false;
  #isEndless = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    options.transport.onGone(() => this.#gone());
    options.transport.output.on('error', ignore);
  }

  get wallMs(): number {
    return this.#options.wallMs;
  }

  get auditId(): string {
    return this.#options.auditId;
  }

  get transport(): Transport {
    return this.#options.transport;
  }

  async run(): Promise<void> {
    try {
      const response = await this.#answer();
      if (this.#isGone) discard(response);
      else await this.#send(response);
    } catch (error) {
      this.#options.log.error('an answer broke off', { path: this.transport.path, error: errorText(error) });
      this.transport.cut('failed');
    } finally {
      this.#deadlineMs = noDeadline;
      this.#options.bodies.bytes -= this.#bodyBytes;
      this.#options.onDone(this);
    }
  }

  sweep(nowMs: number): void {
    if (nowMs <= this.#deadlineMs) return;
    this.#deadlineMs = noDeadline;
    this.#onDeadline();
  }

  /** The server stops: a watch ends here, anything else is answered. */
  endStream(): void {
    this.#isEnding = true;
    if (!this.#isEndless) return;
    const iterator = this.#iterator;
    this.#iterator = undefined;
    this.#abort?.abort();
    void iterator?.return?.();
    this.transport.output.end();
    this.#wake?.();
  }

  #gone(): void {
    this.#isGone = true;
    this.#abort?.abort();
    void this.#iterator?.return?.();
    this.#iterator = undefined;
    this.#wake?.();
  }

  async #answer(): Promise<HttpResponse> {
    try {
      return await this.#handle();
    } catch (error) {
      if (this.#isGone) return { status: 499, headers: {}, body: new Uint8Array() };
      if (!(error instanceof StatusError)) this.#options.log.error('a request failed', { error: errorText(error) });
      return errorResponse(asStatusError(error));
    }
  }

  #receive(): Promise<Uint8Array> {
    const { transport, limits, bodies } = this.#options;
    const { input } = transport;
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = [];
      let length = 0;
      const refuse = (error: StatusError) => {
        this.#deadlineMs = noDeadline;
        input.removeAllListeners('data');
        this.#isRestRefused = true;
        transport.refuseRest();
        reject(error);
      };
      this.#expire(limits.bodyMsMax, () => refuse(bodyTooSlow(limits.bodyMsMax)));
      if (Number(transport.headers['content-length'] ?? 0) > limits.bodyBytesMax) return refuse(bodyTooLarge(limits));
      this.#wake = () => reject(new StatusError('BadRequest', 'the request broke off before its end'));
      input.on('data', (chunk: Uint8Array) => {
        length += chunk.length;
        if (length > limits.bodyBytesMax) return refuse(bodyTooLarge(limits));
        this.#bodyBytes += chunk.length;
        bodies.bytes += chunk.length;
        if (bodies.bytes > limits.bodiesBytesMax) refuse(tooManyBodies());
        else chunks.push(chunk);
      });
      input.once('end', () => {
        if (this.#isRestRefused) return;
        this.#deadlineMs = noDeadline;
        this.#wake = undefined;
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      });
    });
  }

  #handle(): Promise<HttpResponse> {
    const { limits, handle } = this.#options;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const expire = () =>
        this.#expire(limits.handleMsMax, () => {
          isLate = true;
          this.#abort?.abort();
          reject(new StatusError('Timeout', `the request was not answered within ${limits.handleMsMax} ms`));
        });
      expire();
      handle(this.#request(expire)).then((response) => {
        if (isLate) return discard(response);
        this.#deadlineMs = noDeadline;
        resolve(response);
      }, reject);
    });
  }

  /** The time for handling begins anew once the body is there. */
  #request(onBody: () => void): ApiRequest {
    const { transport, client, wallMs } = this.#options;
    const signal = () => this.#signal();
    const request: ApiRequest & { body?: Uint8Array } = {
      // RFC 9110 section 9.3.2: HEAD is GET without the body, which is left out when the answer is sent.
      method: transport.method === 'HEAD' ? 'GET' : transport.method,
      path: transport.path,
      headers: transport.headers,
      get signal() {
        return signal();
      },
      ...clientFields(client, wallMs),
      trail: this.trail,
      ...(transport.hasBody && { receiveBody: () => (received ??= receive()) }),
    };
    let received: Promise<void> | undefined;
    const receive = async () => {
      request.body = await this.#receive();
      this.#isReceived = true;
      onBody();
    };
    return request;
  }

  #signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isGone) this.#abort.abort();
    return this.#abort.signal;
  }

  async #send(response: HttpResponse): Promise<void> {
    const { transport, onResponse } = this.#options;
    const { body } = response;
    this.status = response.status;
    this.isStream = !(body instanceof Uint8Array);
    this.#isEndless = response.isEndless ?? false;
    onResponse(this, response);
    if (transport.hasBody && !this.#isReceived && !this.#isRestRefused) transport.ignoreRest();
    if (body instanceof Uint8Array) {
      transport.respond(response.status, response.headers, body.length);
      await this.#sendBytes(body);
    } else {
      transport.respond(response.status, response.headers);
      await this.#sendStream(body);
    }
    await this.#delivered();
  }

  async #sendBytes(body: Uint8Array): Promise<void> {
    const { output, method } = this.transport;
    const sent = method === 'HEAD' ? new Uint8Array() : body;
    let from = 0;
    while (sent.length - from > pieceBytes) {
      if (this.#isGone) return;
      if (!output.write(sent.subarray(from, from + pieceBytes))) await this.#drained();
      from += pieceBytes;
    }
    if (from === sent.length) output.end();
    else output.end(from === 0 ? sent : sent.subarray(from));
  }

  // The next chunk is requested only after the last one was sent, so the producer notices a slow reader.
  async #sendStream(body: AsyncIterable<Uint8Array>): Promise<void> {
    const { transport } = this;
    const { output, method } = transport;
    const iterator = body[Symbol.asyncIterator]();
    if (method === 'HEAD' || (this.#isEnding && this.#isEndless)) {
      void iterator.return?.();
      output.end();
      return;
    }
    this.#iterator = iterator;
    while (this.#iterator !== undefined) {
      const step = await iterator.next();
      if (this.#iterator === undefined || step.done) break;
      transport.batchThisTurn();
      if (!output.write(step.value)) await this.#drained();
    }
    this.#iterator = undefined;
    if (!this.#isGone) output.end();
  }

  #drained(): Promise<void> {
    return this.#until('drain');
  }

  /** Until the answer has left, or the reader has: either closes the exchange. */
  async #delivered(): Promise<void> {
    if (!this.#isRestRefused) await this.#until('gone');
    else if (!this.transport.output.writableFinished) await this.#until('finish');
  }

  #until(event: 'drain' | 'finish' | 'gone'): Promise<void> {
    const { transport, limits, onStall } = this.#options;
    return new Promise((resolve) => {
      if (this.#isGone) return resolve();
      const done = () => {
        this.#deadlineMs = noDeadline;
        this.#wake = undefined;
        if (event !== 'gone') transport.output.removeListener(event, done);
        resolve();
      };
      this.#wake = done;
      if (event !== 'gone') transport.output.once(event, done);
      this.#expire(limits.stallMsMax, () => {
        onStall();
        transport.cut('stalled');
      });
    });
  }

  #expire(delayMs: number, onDeadline: () => void): void {
    this.#deadlineMs = this.#options.nowMs() + delayMs;
    this.#onDeadline = onDeadline;
  }
}

/** A fault of a transport ends it; an exchange needs no more than that. */
function ignore(): void {}

/** An abandoned answer may hold resources that must be released. */
function discard({ body }: HttpResponse): void {
  if (!(body instanceof Uint8Array)) void body[Symbol.asyncIterator]().return?.();
}

function bodyTooLarge(limits: EdgeLimits): StatusError {
  return new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limits.bodyBytesMax}`);
}

function tooManyBodies(): StatusError {
  const message = 'too many large requests are being received; try again later';
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds: 1 } });
}

function bodyTooSlow(limitMs: number): StatusError {
  return new StatusError('Timeout', `the request body did not arrive within ${limitMs} ms`);
}
