// A webhook provider of external-dns, called over its HTTP protocol: whatever DNS service it writes to, it negotiates,
// lists records, adjusts endpoints and applies changes. A provider that hangs, answers without end, or says that it has
// written what it does not list afterwards is a failure that is shown and tried again.

import type { HttpTransport } from '../../base/http.ts';
import { errorText } from '../../base/log.ts';
import type { Timers } from '../../base/world.ts';
import { isSameRecords, type NameChange, type ZoneSet } from './difference.ts';
import type { ChangeResult, Provider } from './publisher.ts';
import type { PublicSet } from './wanted.ts';
import {
  adjustedSets,
  endpointOf,
  filterProblem,
  readEndpoints,
  stepsOf,
  webhookMediaType,
  zoneSetsOf,
} from './webhook-protocol.ts';

export interface WebhookOptions {
  /** `http://127.0.0.1:8888`, with the path that it lies under, if any. */
  readonly url: string;
  readonly domain: string;
  /** To the origin of the URL. */
  readonly transport: HttpTransport;
  readonly timers: Timers;
  readonly owner: string;
  readonly ttlSeconds: number;
}

const answerMsMax = 30_000;
const answerBytesMax = 64 * 1024 * 1024;
const changesPerRequest = 500;
/** Characters of an error's text. */
const shownMax = 200;

export function createWebhookProvider(options: WebhookOptions): Provider {
  const { domain, owner, ttlSeconds } = options;
  let current: ReadonlyMap<string, readonly ZoneSet[]> = new Map();

  async function read(): Promise<readonly ZoneSet[]> {
    const problem = filterProblem(await ask(options, { method: 'GET', path: '/' }), domain);
    if (problem !== undefined) throw new Error(problem);
    return list();
  }

  async function list(): Promise<readonly ZoneSet[]> {
    const answer = await ask(options, { method: 'GET', path: '/records' });
    const sets = zoneSetsOf(readEndpoints(answer, 'records of the webhook'), domain);
    current = Map.groupBy(sets, ({ name }) => name);
    return sets;
  }

  async function adjust(sets: readonly PublicSet[]): Promise<readonly PublicSet[]> {
    if (sets.length === 0) return sets;
    const body = sets.map((set) => endpointOf(set, ttlSeconds));
    const answer = await ask(options, { method: 'POST', path: '/adjustendpoints', body });
    return adjustedSets(sets, readEndpoints(answer, 'adjusted endpoints of the webhook'));
  }

  async function apply(changes: readonly NameChange[]): Promise<readonly ChangeResult[]> {
    const why = new Map<NameChange, string>();
    for (let from = 0; from < changes.length; from += changesPerRequest) {
      const some = changes.slice(from, from + changesPerRequest);
      try {
        for (const body of stepsOf(some, { owner, ttlSeconds, current }))
          await ask(options, { method: 'POST', path: '/records', body });
      } catch (error) {
        for (const change of some) why.set(change, errorText(error));
      }
    }
    if (why.size < changes.length) await list();
    return changes.map((change) => {
      const text = why.get(change) ?? notListed(change);
      return text === undefined ? { kind: 'done' } : { kind: 'failed', why: text };
    });
  }

  function notListed({ name, sets }: NameChange): string | undefined {
    const isThere = isSameRecords(sets, current.get(name) ?? [], ttlSeconds);
    return isThere ? undefined : 'the webhook accepted the change and does not list it';
  }

  return { read, adjust, apply };
}

interface Asked {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
}

/** The decoded answer; undefined if there is none to a change. Throws for any answer that the protocol does not know. */
async function ask({ url, transport, timers }: WebhookOptions, { method, path, body }: Asked): Promise<unknown> {
  const prefix = new URL(url).pathname.replace(/\/$/, '');
  const what = `${method} ${prefix}${path} of ${url}`;
  const late = new AbortController();
  const timer = timers.after(answerMsMax, () => late.abort());
  const tooLate = new Promise<never>((_resolve, reject) => {
    late.signal.addEventListener('abort', () => reject(new Error(`${what}: no answer within ${answerMsMax / 1000} s`)));
  });
  tooLate.catch(() => {});
  try {
    return await Promise.race([tooLate, exchange()]);
  } finally {
    timer.cancel();
    late.abort();
  }

  async function exchange(): Promise<unknown> {
    const headers = { accept: webhookMediaType, ...(body === undefined ? {} : { 'content-type': webhookMediaType }) };
    const bytes = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const request = { method, path: `${prefix}${path}`, headers, signal: late.signal, ...bytes };
    const response = await transport.send(request);
    const text = await boundedText(response.body, what);
    if (response.status < 200 || response.status > 299)
      throw new Error(`${what}: status ${response.status}: ${text.slice(0, shownMax)}`);
    if (method === 'POST' && path === '/records') return undefined;
    const type = (response.headers['content-type'] ?? '').replaceAll(' ', '');
    if (type !== webhookMediaType)
      throw new Error(
        `${what}: the content type is "${type.slice(0, shownMax)}", this is no webhook provider of version 1`,
      );
    try {
      return JSON.parse(text);
    } catch {
      throw new Error(`${what}: the answer is no JSON`);
    }
  }
}

async function boundedText(body: Uint8Array | AsyncIterable<Uint8Array>, what: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body instanceof Uint8Array ? [body] : body) {
    size += chunk.length;
    if (size > answerBytesMax) throw new Error(`${what}: the answer is longer than ${answerBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
