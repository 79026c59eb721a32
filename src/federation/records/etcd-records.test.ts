// Records in etcd, against a small etcd that can freeze, go deaf on its watches, or die. In virtual time.

import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { type EtcdAccess, EtcdRefusal } from '../../base/etcd.ts';
import type { HttpRequest, HttpResponse, HttpTransport } from '../../base/http.ts';
import { type Log, type LogFields, silentLog } from '../../base/log.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { EtcdRecords } from './etcd-records.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const text = (bytes: string) => Buffer.from(bytes, 'base64').toString();

/** The data that all endpoints share. */
class Data {
  revision = 1;
  readonly keys = new Map<string, { value: string; revision: number }>();
  readonly watchers = new Set<(line: object) => void>();

  put(key: string, value: string): void {
    this.revision += 1;
    this.keys.set(key, { value, revision: this.revision });
    this.#tell({ type: 'PUT', kv: { key: base64(key), value: base64(value), mod_revision: String(this.revision) } });
  }

  remove(key: string): void {
    this.revision += 1;
    this.keys.delete(key);
    this.#tell({ type: 'DELETE', kv: { key: base64(key) } });
  }

  #tell(event: object): void {
    const line = { result: { header: { revision: String(this.revision) }, events: [event] } };
    for (const watcher of this.watchers) watcher(line);
  }
}

class Endpoint implements HttpTransport {
  readonly data: Data;
  /** `deaf`: its watches tell nothing any more. */
  mode: 'well' | 'frozen' | 'deaf' | 'dead' = 'well';
  asked = 0;
  readonly credentials: object | undefined;
  tokens = 0;

  constructor(data: Data, credentials?: object) {
    this.data = data;
    this.credentials = credentials;
  }

  close(): void {}

  async send({ path, body, signal, headers }: HttpRequest): Promise<HttpResponse> {
    this.asked += 1;
    if (this.mode === 'dead') throw new Error('connection refused');
    if (this.mode === 'frozen') return forever(signal);
    const request = JSON.parse(Buffer.from(body!).toString());
    if (path === '/v3/auth/authenticate') {
      const isRight = JSON.stringify(request) === JSON.stringify(this.credentials);
      if (!isRight) return reply(400, { error: 'authentication failed' });
      this.tokens += 1;
      return reply(200, { token: `token-${this.tokens}` });
    }
    if (this.credentials && headers['authorization'] !== `token-${this.tokens}`)
      return reply(401, { error: 'invalid auth token' });
    if (path === '/v3/watch') return { status: 200, headers: {}, body: this.#watch(signal!) };
    if (path === '/v3/kv/put') this.data.put(text(request.key), text(request.value));
    if (path !== '/v3/kv/range') return reply(200, {});
    const after = Number(request.min_mod_revision ?? 0);
    const all = request.range_end === undefined ? [] : [...this.data.keys];
    const kvs = all
      .filter(([, { revision }]) => revision >= after)
      .map(([key, { value, revision }]) => ({ key: base64(key), value: base64(value), mod_revision: `${revision}` }));
    return reply(200, { header: { revision: `${this.data.revision}` }, kvs, count: `${all.length}` });
  }

  async *#watch(signal: AbortSignal): AsyncIterable<Uint8Array> {
    const lines: object[] = [{ result: { header: { revision: '1' }, created: true } }];
    let wake = () => {};
    const watcher = (line: object) => {
      lines.push(line);
      wake();
    };
    this.data.watchers.add(watcher);
    signal.addEventListener('abort', () => wake());
    while (!signal.aborted) {
      // A frozen or deaf server answers later or never.
      if (this.mode === 'well') for (const line of lines.splice(0)) yield Buffer.from(`${JSON.stringify(line)}\n`);
      await new Promise<void>((resolve) => (wake = resolve));
    }
    this.data.watchers.delete(watcher);
    throw signal.reason;
  }
}

function reply(status: number, value: object): HttpResponse {
  return { status, headers: {}, body: Buffer.from(JSON.stringify(value)) };
}

function forever(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
}

const key = '/world/shop/web/east';
const record = (ip: string) => `{"externalIP": "${ip}", "clusterIP": "10.0.0.1"}`;

function setUp(count: number, more: Partial<EtcdAccess> = {}) {
  const sim = new Simulation({ seed: 1 });
  const world = sim.world('authority');
  const data = new Data();
  data.put(key, record('192.0.2.1'));
  const endpoints = Array.from({ length: count }, () => new Endpoint(data, more.credentials));
  const lines: string[] = [];
  const say = (line: string, fields?: LogFields) => void lines.push(`${line} ${JSON.stringify(fields ?? {})}`);
  const log: Log = { ...silentLog, info: say, warn: say };
  const records = new EtcdRecords({ transports: endpoints, world, log, federation: 'world', ...more });
  const table = new NameTable({ serial: 1 });
  const federation = new FederationTable({ table });
  const ending = new AbortController();
  const following = records.follow(federation, ending.signal);
  const state = new Int32Array(table.memory.state);
  return {
    data,
    endpoints,
    lines,
    records,
    isStale: () => state[1] !== 0,
    address: () => federation.shardsOf('/world/shop/web')[0]?.externalIPs[0],
    advance: (ms: number) => sim.time.advance(ms),
    end: async () => {
      ending.abort(new Error('the test is over'));
      await sim.time.settle(following);
    },
  };
}

describe('records in etcd', () => {
  test('followed -> what is put and removed is seen at once', async () => {
    const { data, advance, address, isStale, end } = setUp(1);
    await advance(100);
    expect(address()).toBe('192.0.2.1');
    data.put(key, record('192.0.2.2'));
    await advance(1);
    expect(address()).toBe('192.0.2.2');
    data.remove(key);
    await advance(1);
    expect(address()).toBeUndefined();
    await advance(600_000);
    expect(isStale()).toBe(false);
    await end();
  });

  test('the only one freezes -> within seconds marked stale and said; thaws -> read anew, stale no longer', async () => {
    const { data, endpoints, lines, advance, address, isStale, end } = setUp(1);
    await advance(100);
    endpoints[0]!.mode = 'frozen';
    data.put(key, record('192.0.2.3'));
    await advance(7000);
    expect(isStale()).toBe(true);
    expect(address()).toBe('192.0.2.1');
    expect(lines.join('\n')).toMatch(/etcd does not answer, keeping the records known .*no answer within 3000 ms/);
    endpoints[0]!.mode = 'well';
    await advance(10_000);
    expect(isStale()).toBe(false);
    expect(address()).toBe('192.0.2.3');
    expect(lines.join('\n')).toContain('etcd answers again');
    await end();
  });

  test.each(['frozen', 'dead'] as const)('one of two is %s -> the other is followed', async (mode) => {
    const { data, endpoints, records, advance, address, isStale, end } = setUp(2);
    await advance(100);
    endpoints[0]!.mode = mode;
    await advance(10_000);
    expect(isStale()).toBe(false);
    data.put(key, record('192.0.2.4'));
    await advance(1);
    expect(address()).toBe('192.0.2.4');
    const putting = records.put(key, record('192.0.2.5'));
    await advance(1);
    await putting;
    expect(address()).toBe('192.0.2.5');
    await end();
  });

  test('the watch is cut in the middle while the server lives -> noticed by what lies there', async () => {
    const { data, endpoints, lines, advance, address, end } = setUp(1);
    await advance(100);
    endpoints[0]!.mode = 'deaf';
    data.remove(key);
    await advance(70_000);
    expect(lines.join('\n')).toContain('the watch does not tell what changed');
    expect(address()).toBeUndefined();
    await end();
  });

  test('name and password -> a token is fetched, and another when it has run out; a wrong one -> said', async () => {
    const credentials = { name: 'portolan', password: 'secret' };
    const { endpoints, advance, address, isStale, end, records } = setUp(1, { credentials });
    await advance(100);
    expect(address()).toBe('192.0.2.1');
    endpoints[0]!.tokens += 1;
    await records.put(key, record('192.0.2.6'));
    await advance(1);
    expect(address()).toBe('192.0.2.6');
    expect(isStale()).toBe(false);
    await end();
    const wrong = new EtcdRecords({
      transports: endpoints,
      world: new Simulation({ seed: 1 }).world('other'),
      log: silentLog,
      federation: 'world',
      credentials: { name: 'portolan', password: 'wrong' },
    });
    await expect(wrong.list()).rejects.toThrow(EtcdRefusal);
    await expect(wrong.list()).rejects.toThrow('authentication failed');
  });
});
