// The store on a real etcd: the contract that memory and SQLite pass too, then what only etcd can do to it.

import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codes } from '../src/base/grpc/status.ts';
import { type Log, silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { openEtcdStore } from '../src/home/open-store.ts';
import { storeContract } from '../src/home/store/contract.ts';
import { EtcdClient, type EtcdEndpoint, EtcdError } from '../src/home/store/etcd/client.ts';
import { Formats } from '../src/home/store/etcd/formats.ts';
import { EtcdLock } from '../src/home/store/etcd/lock.ts';
import { Layout } from '../src/home/store/etcd/rows.ts';
import { Seal } from '../src/home/store/etcd/seal.ts';
import { etcdEndpoint } from '../src/home/store/etcd/transport-grpc.ts';
import { CommitTooLargeError, StoreUnavailableError } from '../src/home/store/store.ts';
import { commit, put, text } from '../src/home/store/testing/tools.ts';
import { describeWith } from './support/counterparts.ts';
import { type EtcdProcess, startEtcd } from './support/dns-process.ts';
import { until } from './support/kubectl.ts';

const world = createRealWorld();
let count = 0;

interface Opening {
  readonly prefix?: string;
  readonly seal?: Seal;
  readonly jsonBelow?: string;
  readonly onWaiting?: (holder: string) => void;
  readonly isGone?: (holder: string) => Promise<boolean>;
  readonly leaseSeconds?: number;
  readonly log?: Log;
  readonly credentials?: { readonly name: string; readonly password: string } | undefined;
}

async function open(endpoint: EtcdEndpoint, opening: Opening = {}) {
  const client = new EtcdClient({ endpoints: [endpoint], credentials: opening.credentials });
  const layout = new Layout(opening.prefix ?? `/t/${count++}/`);
  const { onWaiting, isGone, leaseSeconds = 5 } = opening;
  const lock = await EtcdLock.acquire({
    ...{ client, world, log: opening.log ?? silentLog, key: layout.lock, claimKey: layout.claim },
    ...{ address: 'here', onWaiting, isGone, leaseSeconds },
  });
  const { seal, jsonBelow } = opening;
  const { store } = await openEtcdStore({ world, client, lock, layout, seal, jsonBelow });
  return { store, layout };
}

/** Does something else with the next transaction than to send it. */
class Interposed {
  next: ((send: () => Promise<Buffer>) => Promise<Buffer>) | undefined;
  isCut = false;
  readonly endpoint: EtcdEndpoint;

  constructor(url: string) {
    const real = etcdEndpoint({ url });
    this.endpoint = {
      url,
      close: () => real.close(),
      call: (call) => {
        if (this.isCut) return Promise.reject(lost());
        const { next } = this;
        if (next === undefined || !call.path.endsWith('/Txn')) return real.call(call);
        this.next = undefined;
        return next(() => real.call(call));
      },
    };
  }
}

const lost = () =>
  new EtcdError(codes.unavailable, 'etcdserver: request timed out, possibly due to previous leader failure');

describeWith(['etcd'], 'a store on etcd', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-store-etcd-'));
  let etcd: EtcdProcess;
  beforeAll(async () => {
    etcd = await startEtcd(join(directory, 'etcd'));
  });
  afterAll(async () => {
    await etcd?.stop();
    rmSync(directory, { recursive: true });
  });

  storeContract('etcd', async () => (await open(etcdEndpoint({ url: etcd.url }))).store);

  test('reopened: objects, revisions and history -> as they were', async () => {
    const prefix = '/reopened/';
    const first = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    for (const value of ['1', '2', '3']) await put(first.store, '/a', value);
    await commit(first.store, { writes: [{ key: '/a' }] });
    await first.store.close();
    const { store } = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    expect([store.revision(), store.floor()]).toEqual([4, 0]);
    expect(text((await store.range({ prefix: '', revision: 2 })).entries[0]!.value)).toBe('2');
    expect(await put(store, '/b', '1')).toBe(5);
    await store.close();
  });

  test.each([
    ['was carried out', (send: () => Promise<Buffer>) => send().then(() => Promise.reject(lost()))],
    ['never arrived', () => Promise.reject(lost())],
    ['arrives when it has been answered', 'later' as const],
  ])('a write without an answer that %s -> is there once, and answered so', async (_name, next) => {
    const between = new Interposed(etcd.url);
    const prefix = `/unknown/${count++}/`;
    const { store } = await open(between.endpoint, { prefix });
    await put(store, '/a', '1');
    let late: (() => Promise<Buffer>) | undefined;
    between.next =
      next === 'later'
        ? (send) => {
            late = send;
            return Promise.reject(lost());
          }
        : next;
    expect(await put(store, '/a', '2')).toBe(2);
    expect(store.writeFailure()).toBeUndefined();
    await late?.();
    expect(await put(store, '/a', '3')).toBe(3);
    await store.close();
    const again = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    const history = await Promise.all([1, 2, 3].map((revision) => again.store.range({ prefix: '', revision })));
    expect(history.map(({ entries }) => entries.map(({ value }) => text(value)))).toEqual([['1'], ['2'], ['3']]);
    await again.store.close();
  });

  test('a second process -> waits for the first, and then has all it wrote', async () => {
    const prefix = '/second/';
    const first = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    const holders: string[] = [];
    const second = open(etcdEndpoint({ url: etcd.url }), { prefix, onWaiting: (holder) => holders.push(holder) });
    await until(() => holders.length > 0);
    await put(first.store, '/a', '1');
    await first.store.close();
    const { store } = await second;
    expect([holders, store.revision()]).toEqual([['here'], 1]);
    await store.close();
  });

  test('a process that was away while another took over -> writes nothing, and answers no reads', async () => {
    const prefix = '/away/';
    const first = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    await put(first.store, '/a', '1');
    const losses: string[] = [];
    first.store.onBroken = (error) => losses.push(error.message);
    const remover = new EtcdClient({ endpoints: [etcdEndpoint({ url: etcd.url })] });
    await remover.txn({ conditions: [], operations: [{ remove: first.layout.lock }] });
    const { store } = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    await put(store, '/a', 'second');
    // By this write, or by itself just before.
    const reason = /another process (writes this home now, at here|has taken over .*; it is at here)/;
    await expect(put(first.store, '/a', 'first')).rejects.toThrow(reason);
    await expect(first.store.get('/a')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(losses.length).toBe(1);
    expect(text((await store.get('/a'))!.value)).toBe('second');
    for (const one of [first.store, store]) await one.close();
    remover.close();
  });

  test('nobody listens at the holder, which is cut off -> its lock is taken before the lease ends; it answers nothing meanwhile', async () => {
    const prefix = '/gone/';
    const between = new Interposed(etcd.url);
    const first = await open(between.endpoint, { prefix, leaseSeconds: 600 });
    await put(first.store, '/a', '1');
    between.isCut = true;
    const second = await open(etcdEndpoint({ url: etcd.url }), { prefix, isGone: async () => true });
    const read = first.store.get('/a').then(
      (entry) => text(entry!.value),
      () => 'refused',
    );
    await put(second.store, '/a', '2');
    between.isCut = false;
    expect(await read).toBe('refused');
    await expect(put(first.store, '/a', '3')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(text((await second.store.get('/a'))!.value)).toBe('2');
    for (const { store } of [first, second]) await store.close();
  });

  test('nobody listens at the holder, which lives -> it keeps its lock, and the other one says so', async () => {
    const prefix = '/refused/';
    const first = await open(etcdEndpoint({ url: etcd.url }), { prefix });
    await put(first.store, '/a', '1');
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (message: string) => warnings.push(message) } as Log;
    const second = open(etcdEndpoint({ url: etcd.url }), { prefix, log, isGone: async () => true });
    await until(() => warnings.length > 0);
    expect(warnings).toEqual(['the process that serves this home seemed to be gone, and lives']);
    expect(await put(first.store, '/a', '2')).toBe(2);
    expect(text((await first.store.get('/a'))!.value)).toBe('2');
    await first.store.close();
    await (await second).store.close();
  });

  test('the lock has ended and nobody came -> the process takes it again and goes on', async () => {
    const { store, layout } = await open(etcdEndpoint({ url: etcd.url }));
    await put(store, '/a', '1');
    const client = new EtcdClient({ endpoints: [etcdEndpoint({ url: etcd.url })] });
    await client.txn({ conditions: [], operations: [{ remove: layout.lock }] });
    expect(await put(store, '/a', '2')).toBe(2);
    expect(text((await store.get('/a'))!.value)).toBe('2');
    await store.close();
    client.close();
  });

  test('etcd is put back to an older state under a running home -> refused, and said', async () => {
    const { store, layout } = await open(etcdEndpoint({ url: etcd.url }));
    await put(store, '/a', '1');
    const client = new EtcdClient({ endpoints: [etcdEndpoint({ url: etcd.url })] });
    await client.txn({ conditions: [], operations: [{ remove: layout.tip }] });
    await expect(put(store, '/a', '2')).rejects.toThrow(/etcd was changed behind this process/);
    await store.close();
    client.close();
  });

  test('many and large commits at once -> all of them; one that is too large for etcd -> refused by itself', async () => {
    const { store } = await open(etcdEndpoint({ url: etcd.url }));
    const large = new Uint8Array(400_000);
    const many = Array.from({ length: 300 }, (_, index) => put(store, `/k/${index}`, '1'));
    const some = Array.from({ length: 6 }, (_, index) =>
      commit(store, { writes: [{ key: `/l/${index}`, value: large }] }),
    );
    const tooLarge = commit(store, { writes: [{ key: '/x', value: new Uint8Array(1_500_000) }] });
    await expect(tooLarge).rejects.toBeInstanceOf(CommitTooLargeError);
    await Promise.all([...many, ...some]);
    expect((await store.range({ prefix: '' })).entries.length).toBe(306);
    expect(store.revision()).toBe(306);
    await store.close();
  });

  test('one record below the root of objects is not JSON -> refused with its key; elsewhere or deleted -> opened', async () => {
    const endpoint = etcdEndpoint({ url: etcd.url });
    const [prefix, jsonBelow] = ['/broken/', '/registry/'];
    const bad = '/registry/core/configmaps/x/bad';
    const first = await open(endpoint, { prefix });
    await put(first.store, '/registry/core/configmaps/x/good', '{"metadata":{"name":"é"}}');
    await put(first.store, '/addresses/10.0.0.1', 'no JSON');
    await put(first.store, bad, '{"metadata":{"name":"bad"');
    await first.store.close();
    await expect(open(endpoint, { prefix, jsonBelow })).rejects.toThrow(
      `the record "${bad}" (etcd key ${prefix}rows/0000000000000003) is not JSON`,
    );
    // Its lock was let go, and what the message says helps.
    const client = new EtcdClient({ endpoints: [endpoint] });
    await client.txn({ conditions: [], operations: [{ remove: `${prefix}rows/0000000000000003` }] });
    client.close();
    const { store } = await open(endpoint, { prefix, jsonBelow });
    expect((await store.range({ prefix: '' })).entries.map(({ key }) => key)).toEqual([
      '/addresses/10.0.0.1',
      '/registry/core/configmaps/x/good',
    ]);
    await store.close();
  });

  test('two versions beside each other -> the older format, until no note of the older one is left; then that one is refused', async () => {
    const client = new EtcdClient({ endpoints: [etcdEndpoint({ url: etcd.url })] });
    const layout = new Layout('/versions/');
    const notes = async () => (await client.range({ key: layout.reader(''), until: layout.readersEnd })).entries;
    const join = (reads: number) => Formats.join({ client, layout, world, log: silentLog, reads });
    const older = await join(1);
    const [ofOlder] = await notes();
    const newer = await join(2);
    const acquire = { client, world, log: silentLog, key: layout.lock, claimKey: layout.claim, address: 'here' };
    const lock = await EtcdLock.acquire(acquire);
    const { store, journal } = await openEtcdStore({ world, client, lock, layout });
    await newer.follow(journal);
    expect(journal.tip.format).toBe(1);
    // Stopped, but not long enough ago: it may come back as it was.
    older.close();
    await newer.renew();
    expect(journal.tip.format).toBe(1);
    await client.txn({ conditions: [], operations: [{ remove: ofOlder!.key }] });
    await newer.renew();
    expect(journal.tip.format).toBe(2);
    await put(store, '/a', '1');
    await expect(join(1)).rejects.toThrow('it is written in format 2, and this version reads up to 1; upgrade this');
    newer.close();
    await store.close();
  });

  test('encrypted: nothing readable in etcd; another key refused; a replaced key takes all rows along', async () => {
    const [one, two] = [Buffer.alloc(32, 1).toString('base64'), Buffer.alloc(32, 2).toString('base64')];
    const sealOf = (...keys: string[]) => Seal.parse(keys.join('\n'), world.random);
    const prefix = '/sealed/';
    const { store } = await open(etcdEndpoint({ url: etcd.url }), { prefix, seal: sealOf(one) });
    await put(store, '/secret', 'hunter2');
    await store.close();
    const client = new EtcdClient({ endpoints: [etcdEndpoint({ url: etcd.url })] });
    const stored = await client.range({ key: `${prefix}rows/`, until: `${prefix}rows0` });
    expect(stored.entries.length).toBe(1);
    expect(Buffer.from(stored.entries[0]!.value).includes('hunter2')).toBe(false);
    for (const seal of [undefined, sealOf(two)])
      await expect(open(etcdEndpoint({ url: etcd.url }), { prefix, ...(seal ? { seal } : {}) })).rejects.toThrow(
        seal ? /not in the key file/ : /it is encrypted; give the key file/,
      );
    await (await open(etcdEndpoint({ url: etcd.url }), { prefix, seal: sealOf(two, one) })).store.close();
    const rotated = await open(etcdEndpoint({ url: etcd.url }), { prefix, seal: sealOf(two) });
    expect(text((await rotated.store.get('/secret'))!.value)).toBe('hunter2');
    await rotated.store.close();
    client.close();
  });
});

describeWith(['etcd'], 'a store on an etcd that asks who calls', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-auth-etcd-'));
  let etcd: EtcdProcess;
  beforeAll(async () => {
    etcd = await startEtcd(join(directory, 'etcd'));
  });
  afterAll(async () => {
    await etcd?.stop();
    rmSync(directory, { recursive: true });
  });

  test('TLS with client certificates -> written with ours; without it, or with another authority -> refused', async () => {
    const authority = makeAuthority('etcd authority');
    const server = authority.issue('etcd', { kind: 'server', hosts: ['127.0.0.1'] });
    const { certificate, key } = authority.issue('portolan', { kind: 'client' });
    const ca = authority.certificate;
    // Stands before the etcd that is there.
    const front = createServer(
      { cert: server.certificate, key: server.key, ca, requestCert: true, ALPNProtocols: ['h2'] },
      (socket) => {
        const behind = connect(Number(new URL(etcd.url).port), '127.0.0.1');
        for (const each of [socket, behind]) each.on('error', () => {});
        socket.pipe(behind).pipe(socket);
      },
    );
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const { store } = await open(etcdEndpoint({ url, ca, certificate, key }));
    expect(await put(store, '/a', '1')).toBe(1);
    await store.close();
    const other = makeAuthority('another').certificate;
    const strangers = [etcdEndpoint({ url, ca }), etcdEndpoint({ url, ca: other, certificate, key })];
    for (const stranger of strangers)
      await expect(new EtcdClient({ endpoints: [stranger] }).range({ key: '/a' })).rejects.toBeInstanceOf(EtcdError);
    for (const stranger of strangers) stranger.close();
    front.close();
  });

  test('a user and a password -> used, also after the token has ended; a wrong one -> refused at once', async () => {
    const call = (path: string, body: object) =>
      fetch(`${etcd.url}/v3/auth/${path}`, { method: 'POST', body: JSON.stringify(body) });
    await call('user/add', { name: 'root', password: 'of a test' });
    await call('role/add', { name: 'root' });
    await call('user/grant', { user: 'root', role: 'root' });
    await call('enable', {});
    const between = new Interposed(etcd.url);
    const { store } = await open(between.endpoint, { credentials: { name: 'root', password: 'of a test' } });
    expect(await put(store, '/a', '1')).toBe(1);
    between.next = () => Promise.reject(new EtcdError(codes.unauthenticated, 'etcdserver: invalid auth token'));
    expect(await put(store, '/a', '2')).toBe(2);
    await store.close();
    for (const credentials of [{ name: 'root', password: 'wrong' }, undefined])
      await expect(open(etcdEndpoint({ url: etcd.url }), { credentials })).rejects.toThrow(
        credentials ? /invalid user ID or password/ : /user name is empty/,
      );
  });
});

describeWith(['etcd'], 'a store on an etcd of its own', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-own-etcd-'));
  const own = (name: string, ...flags: string[]) => startEtcd(join(directory, name), flags);
  afterAll(() => rmSync(directory, { recursive: true }));

  test.concurrent('etcd is frozen: what is under way is answered when it is back, all else refused meanwhile', async ({
    onTestFinished,
  }) => {
    const etcd = await own('frozen');
    onTestFinished(() => etcd.stop());
    const { store } = await open(etcdEndpoint({ url: etcd.url }));
    await put(store, '/a', '1');
    etcd.signal('SIGSTOP');
    try {
      const underWay = put(store, '/a', '2');
      await until(() => store.writeFailure() !== undefined);
      await expect(put(store, '/b', '1')).rejects.toBeInstanceOf(StoreUnavailableError);
      expect(store.writeFailure()?.message).toMatch(/no answer within/);
      await until(() =>
        store.get('/a').then(
          () => false,
          () => true,
        ),
      );
      etcd.signal('SIGCONT');
      expect(await underWay).toBe(2);
      const isDone = (work: Promise<unknown>) =>
        work.then(
          () => true,
          () => false,
        );
      await until(() => isDone(store.get('/a')));
      // On a busy machine etcd may be silent once more: then the write is refused again.
      await until(() => isDone(put(store, '/b', '1')));
      expect(text((await store.get('/b'))!.value)).toBe('1');
      expect(text((await store.get('/a'))!.value)).toBe('2');
    } finally {
      etcd.signal('SIGCONT');
      await store.close();
    }
  });

  test.concurrent('etcd is full: writes are refused as long as it is, nothing is lost, and all is well once there is room', async () => {
    const etcd = await own('full', '--quota-backend-bytes', '4000000');
    const post = async (path: string, body: object) =>
      (await fetch(`${etcd.url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
    try {
      const { store } = await open(etcdEndpoint({ url: etcd.url }));
      await put(store, '/kept', '1');
      const base64 = (value: string) => Buffer.from(value).toString('base64');
      const value = Buffer.alloc(500_000).toString('base64');
      // etcd measures what it has written to disk, some way behind what it took.
      const fill = (index: number) => post('kv/put', { key: base64(`/others/${index}`), value }) as Promise<object>;
      for (let index = 0; !('error' in (await fill(index))); index++) expect(index).toBeLessThan(200);
      await expect(put(store, '/kept', '2')).rejects.toBeInstanceOf(StoreUnavailableError);
      expect(store.writeFailure()?.message).toMatch(/etcd is full.*database space exceeded/);
      expect(text((await store.get('/kept'))!.value)).toBe('1');
      const range = { key: base64('/others/'), range_end: base64('/others0') };
      const { header } = (await post('kv/deleterange', range)) as { header: { revision: string } };
      await post('kv/compaction', { revision: header.revision, physical: true });
      await post('maintenance/defragment', {});
      const { alarms = [] } = (await post('maintenance/alarm', { action: 'GET' })) as { alarms?: object[] };
      for (const alarm of alarms) await post('maintenance/alarm', { ...alarm, action: 'DEACTIVATE' });
      await until(() => store.writeFailure() === undefined);
      await put(store, '/kept', '3');
      await store.close();
    } finally {
      await etcd.stop();
    }
  });
});
