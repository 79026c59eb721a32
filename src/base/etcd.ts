// Requests to etcd's JSON gateway: to one of several endpoints, each within a time limit, with a name and password if etcd
// wants them. Which endpoint is asked first is remembered: the one that answered last.

import { type HttpRequest, type HttpResponse, type HttpTransport, readBody } from './http.ts';
import type { Timer, World } from './world.ts';

export interface EtcdAccess {
  /** One per endpoint; all of one etcd. */
  readonly transports: readonly HttpTransport[];
  readonly credentials?: { readonly name: string; readonly password: string };
}

export interface EtcdClientOptions extends EtcdAccess {
  readonly world: Pick<World, 'timers'>;
  readonly callMs?: number;
}

const defaultCallMs = 3000;
const unauthorized = 401;

/** It answered, and means no: another endpoint would say the same. */
export class EtcdRefusal extends Error {}

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  #current = 0;
  #token: string | undefined;

  constructor(options: EtcdClientOptions) {
    this.#options = options;
  }

  get endpoints(): number {
    return this.#options.transports.length;
  }

  /** Number of the endpoint that is asked first. */
  get current(): number {
    return this.#current;
  }

  /** Another one is asked first from now on, unless that is so already. */
  leave(endpoint: number): void {
    if (this.#current === endpoint) this.#current = (endpoint + 1) % this.endpoints;
  }

  /** From the first endpoint that answers. */
  async call(path: string, request: object): Promise<unknown> {
    for (let tries = 1; ; tries++) {
      const endpoint = this.#current;
      try {
        return await this.callAt(endpoint, path, request);
      } catch (error) {
        if (error instanceof EtcdRefusal) throw error;
        this.leave(endpoint);
        if (tries >= this.endpoints) throw error;
      }
    }
  }

  callAt(endpoint: number, path: string, request: object): Promise<unknown> {
    return this.#inTime(path, async (signal) => {
      const response = await this.#send(endpoint, path, request, signal);
      return JSON.parse(await textOf(path, response)) as unknown;
    });
  }

  /** Lines of an answer that goes on, as values. Whether it still lives is for the caller to find out. */
  async *streamAt(endpoint: number, path: string, request: object, signal: AbortSignal): AsyncIterable<unknown> {
    const response = await this.#send(endpoint, path, request, signal);
    if (response.status !== 200) throw new Error(`etcd ${path}: status ${response.status}`);
    if (response.body instanceof Uint8Array) throw new Error(`etcd ${path}: want a stream`);
    let rest = '';
    for await (const chunk of response.body) {
      const lines = (rest + Buffer.from(chunk).toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') yield JSON.parse(line);
    }
  }

  /** A token may have run out: then once more with a new one. */
  async #send(endpoint: number, path: string, request: object, signal: AbortSignal): Promise<HttpResponse> {
    const send = async () => this.#post(endpoint, path, request, await this.#tokenAt(endpoint, signal), signal);
    const response = await send();
    if (response.status !== unauthorized || this.#options.credentials === undefined) return response;
    await readBody(response.body);
    this.#token = undefined;
    return send();
  }

  async #tokenAt(endpoint: number, signal: AbortSignal): Promise<string | undefined> {
    const { credentials } = this.#options;
    if (credentials === undefined || this.#token !== undefined) return this.#token;
    const path = '/v3/auth/authenticate';
    const response = await this.#post(endpoint, path, credentials, undefined, signal);
    const { token } = JSON.parse(await textOf(path, response)) as { token?: string };
    this.#token = token;
    return token;
  }

  #post(
    endpoint: number,
    path: string,
    body: object,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: token }) };
    const request: HttpRequest = { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)), signal };
    return this.#options.transports[endpoint]!.send(request);
  }

  async #inTime<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { world, callMs = defaultCallMs } = this.#options;
    const ending = new AbortController();
    let timer: Timer | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = world.timers.after(callMs, () => {
        const error = new Error(`etcd ${what}: no answer within ${callMs} ms`);
        reject(error);
        ending.abort(error);
      });
    });
    try {
      return await Promise.race([work(ending.signal), late]);
    } finally {
      timer?.cancel();
    }
  }
}

async function textOf(path: string, { status, body }: HttpResponse): Promise<string> {
  const text = Buffer.from(await readBody(body)).toString('utf8');
  if (status === 200) return text;
  const why = `etcd ${path}: status ${status}: ${text.slice(0, 200)}`;
  throw status < 500 ? new EtcdRefusal(why) : new Error(why);
}
