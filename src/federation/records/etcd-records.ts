// A federation's records in etcd, through its JSON gateway: read once, then watched from that revision; read again when the
// history needed is gone or the server was away. Keys and values are seed 001's. While etcd is away, or silent, the last
// records stay and are marked stale, and the next endpoint is tried.

import { Backoff } from '../../base/backoff.ts';
import { type EtcdAccess, EtcdClient } from '../../base/etcd.ts';
import { errorText, type Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import { type FederationSink, parseShardKey, parseShardRecord, type ShardSeen } from '../rules/record.ts';

export interface EtcdRecordsOptions extends EtcdAccess {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Records lie under `/<federation>/`. */
  readonly federation: string;
}

/** A watch says nothing while nothing changes: so often is the server asked for a sign of life. */
const probeMs = 3000;
/** So often is the watch itself checked against what lies there. */
const probesPerCheck = 20;

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

interface EtcdRange {
  readonly header: { readonly revision: string };
  readonly kvs?: readonly EtcdKeyValue[];
  readonly count?: string;
}

/** How far a watch has come. */
interface Progress {
  revision: number;
}

export class EtcdRecords {
  readonly #options: EtcdRecordsOptions;
  readonly #client: EtcdClient;

  constructor(options: EtcdRecordsOptions) {
    this.#options = options;
    this.#client = new EtcdClient(options);
  }

  async list(): Promise<{ readonly revision: number; readonly records: readonly EtcdRecord[] }> {
    const reply = (await this.#client.call('/v3/kv/range', this.#range())) as EtcdRange;
    return { revision: Number(reply.header.revision), records: (reply.kvs ?? []).map(recordOf) };
  }

  async put(key: string, value: string): Promise<void> {
    await this.#client.call('/v3/kv/put', { key: toBase64(key), value: toBase64(value) });
  }

  async remove(key: string): Promise<void> {
    await this.#client.call('/v3/kv/deleterange', { key: toBase64(key) });
  }

  /** Keeps a sink equal to what lies in etcd until the signal ends it. */
  async follow(sink: FederationSink, signal: AbortSignal): Promise<void> {
    const { world, log } = this.#options;
    const backoff = new Backoff(world.random, { firstMs: 200, delayMsMax: 5000 });
    const follower = new Follower(sink, this.#options);
    let revision: number | undefined;
    let isAway = false;
    while (!signal.aborted) {
      let endpoint = this.#client.current;
      try {
        if (revision === undefined) {
          const list = await this.list();
          follower.fill(list.records);
          revision = list.revision;
          endpoint = this.#client.current;
        }
        sink.setStale(false);
        if (isAway) log.info('etcd answers again, its records were listed again');
        isAway = false;
        revision = await this.#watch(endpoint, follower, revision, signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        log.warn('etcd does not answer, keeping the records known', { error: errorText(error) });
        sink.setStale(true);
        isAway = true;
        // After the reconnect the history may differ: everything is read again.
        revision = undefined;
        this.#client.leave(endpoint);
        await sleep(world.timers, backoff.nextMs(), signal).catch(() => {});
      }
    }
  }

  /** Ends with the last revision seen, or undefined if everything must be read again; fails when the server is silent. */
  async #watch(
    endpoint: number,
    follower: Follower,
    revision: number,
    signal: AbortSignal,
    onLife: () => void,
  ): Promise<number | undefined> {
    const progress: Progress = { revision };
    const ending = new AbortController();
    const end = () => ending.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    try {
      const reading = this.#read(endpoint, follower, progress, ending.signal, onLife);
      return await Promise.race([reading, this.#probe(endpoint, follower, progress, ending.signal)]);
    } finally {
      signal.removeEventListener('abort', end);
      ending.abort(new Error('the watch has ended'));
    }
  }

  async #read(
    endpoint: number,
    follower: Follower,
    progress: Progress,
    signal: AbortSignal,
    onLife: () => void,
  ): Promise<number | undefined> {
    const request = { create_request: { ...this.#range(), start_revision: String(progress.revision + 1) } };
    for await (const line of this.#client.streamAt(endpoint, '/v3/watch', request, signal)) {
      const reply = line as EtcdWatchReply;
      if (signal.aborted) break;
      if (reply.error !== undefined) throw new Error(`etcd ended the watch: ${JSON.stringify(reply.error)}`);
      // Compacted away: the events in between are lost.
      if (reply.result?.canceled) return undefined;
      onLife();
      for (const { type, kv } of reply.result?.events ?? []) {
        if (type === 'DELETE') follower.remove(fromBase64(kv.key));
        else follower.put(recordOf(kv));
      }
      progress.revision = Math.max(progress.revision, Number(reply.result?.header?.revision ?? 0));
    }
    return progress.revision;
  }

  /** Fails when the server does not answer in time, or knows what the watch does not tell. */
  async #probe(endpoint: number, follower: Follower, progress: Progress, signal: AbortSignal): Promise<never> {
    const { world } = this.#options;
    for (let round = 1; ; round++) {
      await sleep(world.timers, probeMs, signal);
      if (round % probesPerCheck === 0) await this.#check(endpoint, follower, progress, signal);
      else await this.#client.callAt(endpoint, '/v3/kv/range', { key: this.#range().key });
    }
  }

  /** A connection that is cut in the middle looks like one on which nothing happens. */
  async #check(endpoint: number, follower: Follower, progress: Progress, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    const look = async () => {
      const { revision } = progress;
      const request = { ...this.#range(), min_mod_revision: String(revision + 1), limit: '1', keys_only: true };
      const { kvs = [], count = '0' } = (await this.#client.callAt(endpoint, '/v3/kv/range', request)) as EtcdRange;
      return { revision, isMissing: kvs.length > 0 || Number(count) !== follower.size };
    };
    const first = await look();
    if (!first.isMissing) return;
    // It may have been on its way.
    await sleep(world.timers, probeMs, signal);
    const second = await look();
    if (second.isMissing && second.revision === first.revision) throw new Error('the watch does not tell what changed');
  }

  /** All keys with the prefix: up to the one whose last byte is one larger. */
  #range(): { key: string; range_end: string } {
    const prefix = `/${this.#options.federation}/`;
    return { key: toBase64(prefix), range_end: toBase64(`${prefix.slice(0, -1)}0`) };
  }
}

/** Hands records on to a sink, and remembers which, so that a later list can take away what it does not bring. */
class Follower {
  readonly #sink: FederationSink;
  readonly #options: EtcdRecordsOptions;
  /** Keys, whether they can be read or not, and their revisions. */
  readonly #present = new Map<string, string>();

  constructor(sink: FederationSink, options: EtcdRecordsOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  get size(): number {
    return this.#present.size;
  }

  fill(records: readonly EtcdRecord[]): void {
    const present = new Set(records.map(({ key }) => key));
    for (const record of records) if (this.#present.get(record.key) !== record.revision) this.put(record);
    for (const key of [...this.#present.keys()]) if (!present.has(key)) this.remove(key);
    this.#sink.setSynced();
  }

  /** A record that cannot be read is no record: what it said before is gone. */
  put({ key: keyText, value, revision }: EtcdRecord): void {
    const { log, world } = this.#options;
    const key = parseShardKey(keyText);
    this.#present.set(keyText, revision);
    if (!key) return log.warn('a key in etcd is not /<federation>/<namespace>/<service>/<cluster>', { key: keyText });
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
