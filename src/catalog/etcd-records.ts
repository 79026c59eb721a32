// A federation's records in etcd, through its JSON gateway: read once, then watched from that revision; read again when the
// history needed is gone. Keys and values are seed 001's. While etcd is away the last records stay and are marked stale.

import { Backoff } from '../base/backoff.ts';
import { type HttpTransport, readBody } from '../base/http.ts';
import { errorText, type Log } from '../base/log.ts';
import { sleep, type World } from '../base/world.ts';
import { type FederationSink, parseShardKey, parseShardRecord, type ShardSeen } from '../model/federation-record.ts';

export interface EtcdRecordsOptions {
  readonly transport: HttpTransport;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Records lie under `/<federation>/`. */
  readonly federation: string;
}

export interface EtcdRecord {
  readonly key: string;
  readonly value: string;
  readonly revision: string;
}

interface EtcdKeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision?: string;
}

interface EtcdWatchReply {
  readonly result?: {
    readonly header?: { readonly revision?: string };
    readonly canceled?: boolean;
    readonly events?: readonly { readonly type?: 'PUT' | 'DELETE'; readonly kv: EtcdKeyValue }[];
  };
  readonly error?: unknown;
}

export class EtcdRecords {
  readonly #options: EtcdRecordsOptions;

  constructor(options: EtcdRecordsOptions) {
    this.#options = options;
  }

  async list(): Promise<{ readonly revision: number; readonly records: readonly EtcdRecord[] }> {
    const reply = (await this.#call('/v3/kv/range', this.#range())) as {
      header: { revision: string };
      kvs?: EtcdKeyValue[];
    };
    const records = (reply.kvs ?? []).map(recordOf);
    return { revision: Number(reply.header.revision), records };
  }

  async put(key: string, value: string): Promise<void> {
    await this.#call('/v3/kv/put', { key: toBase64(key), value: toBase64(value) });
  }

  async remove(key: string): Promise<void> {
    await this.#call('/v3/kv/deleterange', { key: toBase64(key) });
  }

  /** Keeps a sink equal to what lies in etcd until the signal ends it. */
  async follow(sink: FederationSink, signal: AbortSignal): Promise<void> {
    const { world, log } = this.#options;
    const backoff = new Backoff(world.random, { firstMs: 200, delayMsMax: 5000 });
    const follower = new Follower(sink, this.#options);
    let revision: number | undefined;
    while (!signal.aborted) {
      try {
        if (revision === undefined) {
          const list = await this.list();
          follower.fill(list.records);
          revision = list.revision;
        }
        sink.setStale(false);
        revision = await this.#watch(follower, revision, signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        log.warn('etcd does not answer, keeping the records known', { error: errorText(error) });
        sink.setStale(true);
        await sleep(world.timers, backoff.nextMs(), signal).catch(() => {});
      }
    }
  }

  /** Ends with the last revision seen, or undefined if everything must be read again. */
  async #watch(
    follower: Follower,
    revision: number,
    signal: AbortSignal,
    onLife: () => void,
  ): Promise<number | undefined> {
    let seen = revision;
    const request = { create_request: { ...this.#range(), start_revision: String(revision + 1) } };
    for await (const reply of this.#stream('/v3/watch', request, signal)) {
      if (reply.error !== undefined) throw new Error(`etcd ended the watch: ${JSON.stringify(reply.error)}`);
      // Compacted away: what happened in between cannot be told any more.
      if (reply.result?.canceled) return undefined;
      onLife();
      for (const { type, kv } of reply.result?.events ?? []) {
        if (type === 'DELETE') follower.remove(fromBase64(kv.key));
        else follower.put(recordOf(kv));
      }
      seen = Math.max(seen, Number(reply.result?.header?.revision ?? 0));
    }
    return seen;
  }

  /** All keys with the prefix: up to the one whose last byte is one larger. */
  #range(): { key: string; range_end: string } {
    const prefix = `/${this.#options.federation}/`;
    return { key: toBase64(prefix), range_end: toBase64(`${prefix.slice(0, -1)}0`) };
  }

  async #call(path: string, request: object): Promise<unknown> {
    const { transport } = this.#options;
    const headers = { 'content-type': 'application/json' };
    const response = await transport.send({
      method: 'POST',
      path,
      headers,
      body: Buffer.from(JSON.stringify(request)),
    });
    const text = Buffer.from(await readBody(response.body)).toString('utf8');
    if (response.status !== 200) throw new Error(`etcd ${path}: status ${response.status}: ${text.slice(0, 200)}`);
    return JSON.parse(text);
  }

  async *#stream(path: string, request: object, signal: AbortSignal): AsyncIterable<EtcdWatchReply> {
    const { transport } = this.#options;
    const headers = { 'content-type': 'application/json' };
    const body = Buffer.from(JSON.stringify(request));
    const response = await transport.send({ method: 'POST', path, headers, body, signal });
    if (response.status !== 200) throw new Error(`etcd ${path}: status ${response.status}`);
    if (response.body instanceof Uint8Array) throw new Error(`etcd ${path}: want a stream`);
    let rest = '';
    for await (const chunk of response.body) {
      const lines = (rest + Buffer.from(chunk).toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as EtcdWatchReply;
    }
  }
}

/** Hands records on to a sink, and remembers which, so that a later list can take away what it does not bring. */
class Follower {
  readonly #sink: FederationSink;
  readonly #options: EtcdRecordsOptions;
  readonly #present = new Set<string>();

  constructor(sink: FederationSink, options: EtcdRecordsOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  fill(records: readonly EtcdRecord[]): void {
    const present = new Set(records.map(({ key }) => key));
    for (const record of records) this.put(record);
    for (const key of [...this.#present]) if (!present.has(key)) this.remove(key);
    this.#sink.setSynced();
  }

  /** A record that cannot be read is no record: what it said before is gone. */
  put({ key: keyText, value, revision }: EtcdRecord): void {
    const { log, world } = this.#options;
    const key = parseShardKey(keyText);
    if (!key) return log.warn('a key in etcd is not /<federation>/<namespace>/<service>/<cluster>', { key: keyText });
    this.#present.add(keyText);
    const record = parseShardRecord(value);
    const seen: ShardSeen = { revision, seenMs: world.clock.monotonicMs() };
    if (record) return this.#sink.upsertShard(key, record, seen);
    log.warn('a record in etcd is not JSON with externalIP and clusterIP', { key: keyText });
    this.#sink.removeShard(key);
  }

  remove(keyText: string): void {
    this.#present.delete(keyText);
    const key = parseShardKey(keyText);
    if (key) this.#sink.removeShard(key);
  }
}

function recordOf({ key, value = '', mod_revision: revision = '' }: EtcdKeyValue): EtcdRecord {
  return { key: fromBase64(key), value: fromBase64(value), revision };
}

function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8');
}
