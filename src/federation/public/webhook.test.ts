import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { ownerNameOf } from './difference.ts';
import { runOnce } from './publisher.ts';
import type { PublicSet } from './wanted.ts';
import { createWebhookProvider } from './webhook.ts';
import { type Changes, type Endpoint, webhookMediaType } from './webhook-protocol.ts';

const world = createRealWorld();
const domain = 'example.org';
const name = `checkout.shop.${domain}`;
const wanted = (...values: string[]): PublicSet[] => [{ name, type: 'A', values }];

/** A provider that keeps records in memory; each of its answers may be replaced. */
class MemoryProvider {
  readonly records = new Map<string, Endpoint>();
  readonly changes: Changes[] = [];
  filter: unknown = { include: [domain] };
  type = webhookMediaType;
  ttlMin = 0;
  answer: (path: string) => { status?: number; body?: unknown; isSilent?: boolean } | undefined = () => undefined;
  readonly #server: Server;

  constructor(...records: Endpoint[]) {
    for (const record of records) this.records.set(keyOf(record), record);
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '' } = request;
        const other = this.answer(`${method} ${url}`);
        if (other?.isSilent) return;
        const text = Buffer.concat(chunks).toString();
        const body =
          other?.body ?? this.#serve(`${method} ${url}`, text === '' ? undefined : (JSON.parse(text) as unknown));
        response.writeHead(other?.status ?? (body === undefined ? 204 : 200), { 'content-type': this.type });
        response.end(body === undefined ? undefined : JSON.stringify(body));
      });
    });
  }

  #serve(path: string, body: unknown): unknown {
    if (path === 'GET /') return this.filter;
    if (path === 'GET /records') return [...this.records.values()];
    if (path === 'POST /adjustendpoints')
      return (body as Endpoint[]).map((one) => ({ ...one, recordTTL: Math.max(this.ttlMin, one.recordTTL ?? 0) }));
    const changes = body as Changes;
    this.changes.push(changes);
    for (const gone of [...changes.delete, ...changes.updateOld]) this.records.delete(keyOf(gone));
    for (const come of [...changes.create, ...changes.updateNew]) this.records.set(keyOf(come), come);
    return undefined;
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const keyOf = ({ dnsName, recordType }: Endpoint) => `${dnsName} ${recordType}`;
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function start(...records: Endpoint[]) {
  const server = new MemoryProvider(...records);
  const url = await server.open();
  const transport = world.network.http({ server: url });
  closers.push(
    () => server.close(),
    () => transport.close(),
  );
  // An answer is waited for a quarter of a second here.
  const timers = {
    ...world.timers,
    after: (ms: number, run: () => void) => world.timers.after(Math.min(ms, 250), run),
  };
  const provider = createWebhookProvider({ url, domain, transport, timers, owner: 'us', ttlSeconds: 60 });
  const publish = (sets: readonly PublicSet[]) =>
    runOnce({ log: silentLog, provider, owner: 'us', ttlSeconds: 60, wanted: () => sets });
  const lines = () =>
    [...server.records.values()]
      .map(({ dnsName, recordType, targets }) => `${dnsName} ${recordType} ${targets}`)
      .sort();
  return { server, publish, lines };
}

const mark = `${ownerNameOf(name)} TXT "owner=us name=${name}"`;

describe('webhook provider', () => {
  test('webhook: a new name -> its mark first, then its records; a second run writes nothing', async () => {
    const { server, publish, lines } = await start();
    expect(await publish(wanted('1.0.0.1', '1.0.0.2'))).toMatchObject({ written: 1, failed: 0 });
    expect(lines()).toEqual([mark, `${name} A 1.0.0.1,1.0.0.2`].sort());
    expect(server.changes.map(({ create }) => create.map(({ recordType }) => recordType))).toEqual([['TXT'], ['A']]);
    expect(await publish(wanted('1.0.0.1', '1.0.0.2'))).toMatchObject({ written: 0, failed: 0 });
  });

  test('webhook: another address, another type, and gone -> each arrives, and nothing is left', async () => {
    const { publish, lines } = await start();
    await publish(wanted('1.0.0.1'));
    await publish(wanted('1.0.0.2'));
    expect(lines()).toEqual([mark, `${name} A 1.0.0.2`].sort());
    await publish([{ name, type: 'CNAME', values: ['lb.example.net'] }]);
    expect(lines()).toEqual([mark, `${name} CNAME lb.example.net`].sort());
    await publish([
      { name, type: 'A', values: ['1.0.0.3'] },
      { name, type: 'AAAA', values: ['2001:db8::1'] },
    ]);
    expect(lines()).toEqual([mark, `${name} A 1.0.0.3`, `${name} AAAA 2001:db8::1`].sort());
    expect(await publish([])).toMatchObject({ written: 1, failed: 0 });
    expect(lines()).toEqual([]);
  });

  test('webhook: records of others, under our name, in our domain, with several sets of one name -> left, and our name is a conflict', async () => {
    const theirs = [
      { dnsName: name, recordType: 'A', targets: ['9.9.9.9'] },
      { dnsName: `www.${domain}`, recordType: 'A', targets: ['9.9.9.8'] },
      { dnsName: `_portolan-x.${domain}`, recordType: 'TXT', targets: ['"owner=them name=x.example.org"'] },
    ];
    const { publish, lines } = await start(...theirs);
    const before = lines();
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 0, conflicts: [name] });
    expect(await publish([])).toMatchObject({ written: 0 });
    expect(lines()).toEqual(before);
    const weighted = await start({ dnsName: name, recordType: 'A', targets: ['9.9.9.9'], setIdentifier: 'a' });
    expect(await weighted.publish(wanted('1.0.0.1'))).toMatchObject({ written: 0, conflicts: [name] });
  });

  test('webhook: the provider gives every record a longer TTL -> kept, and written once', async () => {
    const { server, publish } = await start();
    server.ttlMin = 300;
    await publish(wanted('1.0.0.1'));
    expect(server.records.get(`${name} A`)?.recordTTL).toBe(300);
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 0 });
  });

  test('webhook: it says that it has written, and has not -> failed, and said', async () => {
    const { server, publish } = await start();
    server.answer = (path) => (path === 'POST /records' ? { status: 204 } : undefined);
    server.records.clear();
    const lie = server.records.set.bind(server.records);
    server.records.set = (key, value) => (key.endsWith(' TXT') ? lie(key, value) : server.records);
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 0, failed: 1 });
  });

  test.each([
    ['it fails', 'GET /records', { status: 500, body: 'database' }, /GET \/records .* status 500: "database"/],
    ['it hangs', 'GET /records', { isSilent: true }, /no answer within/],
    ['records that are no list', 'GET /records', { body: { a: 1 } }, /a list of endpoints was expected/],
    ['a record without a name', 'GET /records', { body: [{ recordType: 'A' }] }, /needs dnsName and recordType/],
    ['another domain', 'GET /', { body: { include: ['example.com'] } }, /serves example\.com, not example\.org/],
    [
      'a name that nobody asked for',
      'POST /adjustendpoints',
      { body: [{ dnsName: 'bank.example.org', recordType: 'A', targets: ['6.6.6.6'] }] },
      /have bank\.example\.org A, which was not asked for/,
    ],
    [
      'another target',
      'POST /adjustendpoints',
      { body: [{ dnsName: name, recordType: 'A', targets: ['6.6.6.6'] }] },
      /other targets for checkout/,
    ],
    ['a name left out', 'POST /adjustendpoints', { body: [] }, /lack 1 that were asked for/],
  ])('webhook: %s -> nothing is written, and said why', async (_what, path, answer, why) => {
    const { server, publish } = await start();
    server.answer = (asked) => (asked === path ? answer : undefined);
    await expect(publish(wanted('1.0.0.1'))).rejects.toThrow(why);
    expect(server.changes).toEqual([]);
    server.answer = () => undefined;
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 1 });
  });

  test('webhook: lists that are null, a filter that says nothing -> as empty ones', async () => {
    const { server, publish } = await start();
    server.filter = {};
    server.answer = (path) => (path === 'GET /records' && server.records.size === 0 ? { body: null } : undefined);
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 1 });
  });

  test('webhook: an ordinary web server -> said that it is none', async () => {
    const { server, publish } = await start();
    server.type = 'text/html';
    await expect(publish(wanted('1.0.0.1'))).rejects.toThrow(/no webhook provider of version 1/);
  });

  test('webhook: changes fail half-way -> the marks are there, so that the names are ours when they are tried again', async () => {
    const { server, publish, lines } = await start();
    let posts = 0;
    server.answer = (path) => (path === 'POST /records' && ++posts === 2 ? { status: 503, body: '' } : undefined);
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 0, failed: 1, conflicts: [] });
    expect(lines()).toEqual([mark]);
    expect(await publish(wanted('1.0.0.1'))).toMatchObject({ written: 1, failed: 0, conflicts: [] });
  });
});
