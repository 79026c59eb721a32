// One request and its answer: headers, time limit, Status turned into ApiError, and the one repetition that is safe.

import { type HttpResponse, type HttpTransport, readBody } from '../../base/http.ts';
import { sleep, type World } from '../../base/world.ts';
import { ApiError, type ApiErrorDetails } from '../objects/api-error.ts';
import { parseWithoutNulls } from './foreign.ts';
import type { MissingRights } from './missing-rights.ts';

export interface RequestSpec {
  readonly method: string;
  readonly path: string;
  readonly json?: unknown;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Reads the answer in place of JSON.parse. */
  readonly decode?: (body: Uint8Array) => unknown;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface Requester {
  send<T>(spec: RequestSpec): Promise<T>;
  /** Resolves with the body when the answer has begun; the time limit covers only the time until then. */
  stream(spec: RequestSpec): Promise<AsyncIterable<Uint8Array>>;
}

export interface RequesterOptions {
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly userAgent: string;
  readonly requestTimeoutMs?: number;
  readonly rights?: MissingRights;
}

const defaultTimeoutMs = 30_000;
const retriesMax = 5;
const retryAfterMsMax = 30_000;

export function createRequester(transport: HttpTransport, options: RequesterOptions): Requester {
  const timeoutOf = (spec: RequestSpec) => spec.timeoutMs ?? options.requestTimeoutMs ?? defaultTimeoutMs;

  async function attempt<T>(spec: RequestSpec, read: (response: HttpResponse) => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      const { failure, value } = await withDeadline(options.world, spec, timeoutOf(spec), async (signal) => {
        const response = await transport.send(httpRequest(spec, options.userAgent, signal));
        if (response.status >= 200 && response.status < 300) return { value: await read(response) };
        return { failure: await errorFrom(spec, response) };
      });
      if (failure === undefined) {
        options.rights?.allowed(spec.method, spec.path);
        return value as T;
      }
      options.rights?.refused(spec.method, spec.path, failure);
      if (retries >= retriesMax || !isUntouched(failure)) throw failure;
      const jitter = 1 + options.world.random.float() / 4;
      await sleep(options.world.timers, Math.min(retryAfterMsMax, failure.retryAfterMs ?? 0) * jitter, spec.signal);
    }
  }

  return {
    send: (spec) => attempt(spec, async (response) => parseJson(spec, await readBody(response.body))),
    stream: (spec) => attempt(spec, async ({ body }) => (body instanceof Uint8Array ? once(body) : body)),
  };
}

/** Refused before anything was done, with a time to come back. */
function isUntouched(error: ApiError): boolean {
  return (error.code === 429 || error.code === 503) && error.retryAfterMs !== undefined;
}

function httpRequest(spec: RequestSpec, userAgent: string, signal: AbortSignal) {
  const headers: Record<string, string> = { ...spec.headers, accept: 'application/json', 'user-agent': userAgent };
  if (spec.json === undefined) return { method: spec.method, path: spec.path, headers, signal };
  headers['content-type'] = spec.contentType ?? 'application/json';
  return { method: spec.method, path: spec.path, headers, signal, body: Buffer.from(JSON.stringify(spec.json)) };
}

/** The server took the request, and nothing came within the time. */
class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/**
 * Rejects at the deadline even if the transport never settles. The caller's own abort goes on to reach a stream after
 * the deadline has been met.
 */
function withDeadline<T>(
  world: Pick<World, 'timers'>,
  spec: RequestSpec,
  timeoutMs: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const caller = spec.signal;
    if (caller?.aborted) return reject(caller.reason);
    const controller = new AbortController();
    const fail = (reason: unknown) => {
      timer.cancel();
      controller.abort(reason);
      reject(reason);
    };
    const onAbort = () => fail(caller?.reason);
    const timer = world.timers.after(timeoutMs, () => {
      caller?.removeEventListener('abort', onAbort);
      fail(new NoAnswer(`${spec.method} ${spec.path}: no answer within ${timeoutMs} ms`));
    });
    caller?.addEventListener('abort', onAbort, { once: true });
    run(controller.signal).then(
      (value) => {
        timer.cancel();
        if (!isStreaming(value)) caller?.removeEventListener('abort', onAbort);
        resolve(value);
      },
      (error) => {
        timer.cancel();
        caller?.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
  });
}

function isStreaming(value: unknown): boolean {
  const inner = (value as { value?: unknown } | undefined)?.value;
  return typeof inner === 'object' && inner !== null && Symbol.asyncIterator in inner;
}

async function errorFrom(spec: RequestSpec, response: HttpResponse): Promise<ApiError> {
  const text = Buffer.from(await readBody(response.body)).toString('utf8');
  const status = parseStatus(text);
  const message = status ? status.message || status.reason : text.trim().slice(0, 300);
  return new ApiError(`${spec.method} ${spec.path}: ${message || `HTTP ${response.status}`}`, {
    code: response.status,
    reason: status?.reason ?? '',
    details: status?.details,
    retryAfterMs: retryAfterMs(response.headers['retry-after']),
  });
}

interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: ApiErrorDetails;
}

function parseStatus(text: string): StatusBody | undefined {
  try {
    const body = JSON.parse(text) as { kind?: string } & StatusBody;
    return body?.kind === 'Status' ? body : undefined;
  } catch {
    return undefined;
  }
}

function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d+$/.test(header)) return undefined;
  return Number(header) * 1000;
}

function parseJson<T>(spec: RequestSpec, bytes: Uint8Array): T {
  const toText = () => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    return (spec.decode === undefined ? parseWithoutNulls(toText()) : spec.decode(bytes)) as T;
  } catch (cause) {
    const text = toText();
    throw new Error(`${spec.method} ${spec.path}: the answer is not JSON: ${text.slice(0, 200)}`, { cause });
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
