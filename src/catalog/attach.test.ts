import { describe, expect, test } from 'vitest';
import { SimHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { addressClaimType } from '../addresses/address-claim.ts';
import { claimFor } from '../addresses/claim.ts';
import { recordType } from '../base/dns/codes.ts';
import type { HttpResponse } from '../base/http.ts';
import { silentLog } from '../base/log.ts';
import { formatAddress, parseRange } from '../base/net/ip.ts';
import type { Timers } from '../base/world.ts';
import { serviceImportType } from '../clusterset/kinds/service-import.ts';
import { Asker } from '../dns/testing/ask.ts';
import { createClient } from '../kube/client/client.ts';
import { keepPartLease } from '../kube/controller/part-lease.ts';
import { endpointSliceType } from '../kube/objects/endpoint-slice.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import type { AnyObject } from '../kube/objects/object.ts';
import { serviceType } from '../kube/objects/service.ts';
import { Attachment } from './attach.ts';
import { Catalog } from './catalog.ts';

const serviceImport = (name: string, ip: string): AnyObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceImport',
  metadata: { name, namespace: 'default' },
  spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
});

function failure(status: number, reason: string): HttpResponse {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason,
    code: status,
    message: reason,
  };
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) };
}

async function setUp() {
  const sim = new Simulation({ seed: 1 });
  const mood: { is: 'well' | 'down' | 'forgetful' | 'of older roles' } = { is: 'well' };
  const requests: string[] = [];
  const home = new SimHome({
    simulation: sim,
    name: 'west',
    serviceRanges: ['10.96.0.0/16'],
    mayDo: () => true,
    wrap: (handler) => (request) => {
      requests.push(request.path);
      if (mood.is === 'down') return Promise.resolve(failure(503, 'ServiceUnavailable'));
      if (mood.is === 'of older roles' && request.path.includes('addressclaims'))
        return Promise.resolve(failure(403, 'Forbidden'));
      const isWatch = request.path.includes('watch=');
      return mood.is === 'forgetful' && isWatch ? Promise.resolve(failure(410, 'Expired')) : handler(request);
    },
  });
  const world = sim.world('dns-west');
  const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id: 'west' } });
  const access = { server: home.url, bearerToken: async () => 'dns' };
  const client = createClient(world.network.http(access), { world, userAgent: 'dns' });
  const addressesOf = (name: string) =>
    catalog.table
      .get(name)
      ?.sets.filter(({ type }) => type === recordType.A)
      .flatMap(({ records }) => records.map(({ rdata }) => formatAddress(rdata)));
  const state = () => (catalog.table.isReady(catalog.clustersetZone.id) ? 'ready' : 'not ready');
  /** Called whenever something that waited goes on. */
  const turns = { onTurn: () => {} };
  const after: Timers['after'] = (delayMs, run) =>
    world.timers.after(delayMs, () => {
      turns.onTurn();
      run();
    });
  const attach = () => new Attachment({ catalog, client, world: { ...world, timers: { after } }, log: silentLog });
  return { sim, home, client, world, catalog, attach, addressesOf, state, mood, requests, turns };
}

describe('catalog attached to a home', () => {
  const name = 'checkout.default.svc.clusterset.local';

  test('not ready until everything a zone needs has been listed, then names come, change and go', async () => {
    const { sim, home, attach, addressesOf, state } = await setUp();
    const attachment = attach();
    await sim.time.advance(5000);
    expect(state()).toBe('not ready');
    await home.start();
    await home.admin.create(serviceImportType, serviceImport('checkout', '243.0.0.7'));
    await sim.time.until(() => state() === 'ready', { withinMs: 60_000 });
    expect(addressesOf(name)).toEqual(['243.0.0.7']);
    await home.admin.create(serviceImportType, serviceImport('later', '243.0.0.8'));
    await sim.time.until(() => addressesOf('later.default.svc.clusterset.local') !== undefined, { withinMs: 1000 });
    await home.admin.delete(serviceImportType, { namespace: 'default', name: 'checkout' });
    await sim.time.until(() => addressesOf(name) === undefined, { withinMs: 1000 });
    attachment.stop();
  });

  test('a namespace without a service -> its name exists, and goes with it', async () => {
    const { sim, home, attach, catalog, state } = await setUp();
    await home.start();
    const attachment = attach();
    await sim.time.until(() => state() === 'ready', { withinMs: 60_000 });
    const isThere = () => catalog.table.has('empty.svc.cluster.local');
    expect(isThere()).toBe(false);
    await home.admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'empty' } });
    await sim.time.until(isThere, { withinMs: 5000 });
    await home.admin.delete(namespaceType, { name: 'empty' });
    await sim.time.until(() => !isThere(), { withinMs: 60_000 });
    attachment.stop();
  });

  test('the home goes away -> stale; something vanishes unseen -> gone after the next list', async () => {
    const { sim, home, attach, addressesOf, catalog, mood } = await setUp();
    await home.start();
    await home.admin.create(serviceImportType, serviceImport('checkout', '243.0.0.7'));
    await home.admin.create(serviceImportType, serviceImport('other', '243.0.0.8'));
    const attachment = attach();
    await sim.time.until(() => addressesOf(name) !== undefined, { withinMs: 10_000 });
    const isStale = () => ((new Int32Array(catalog.table.memory.state)[1] ?? 0) & 2) !== 0;
    mood.is = 'down';
    sim.network.breakStreams({ server: home.url });
    await sim.time.until(isStale, { withinMs: 60_000 });
    await home.admin.delete(serviceImportType, { namespace: 'default', name: 'checkout' });
    expect(addressesOf(name)).toEqual(['243.0.0.7']);
    // The revision we know is gone: the next list brings the rest, and what it does not bring has vanished.
    mood.is = 'forgetful';
    await sim.time.until(() => addressesOf(name) === undefined, { withinMs: 120_000 });
    mood.is = 'well';
    await sim.time.until(() => !isStale(), { withinMs: 120_000 });
    expect(addressesOf('other.default.svc.clusterset.local')).toEqual(['243.0.0.8']);
    attachment.stop();
  });

  test('AddressClaims cannot be read -> names are answered all the same, not as stale; readable again -> by the claims', async () => {
    const { sim, home, attach, addressesOf, catalog, mood, state } = await setUp();
    await home.start();
    mood.is = 'of older roles';
    await home.admin.create(serviceImportType, serviceImport('checkout', '243.0.0.7'));
    await home.admin.create(
      addressClaimType,
      claimFor({ kind: 'ServiceImport', namespace: 'other', name: 'owner' }, '243.0.0.7'),
    );
    catalog.setAllocatedRanges([parseRange('243.0.0.0/12')!]);
    const attachment = attach();
    await sim.time.until(() => state() === 'ready', { withinMs: 10_000 });
    const isStale = () => ((new Int32Array(catalog.table.memory.state)[1] ?? 0) & 2) !== 0;
    expect([addressesOf(name), isStale()]).toEqual([['243.0.0.7'], false]);
    mood.is = 'well';
    await sim.time.until(() => addressesOf(name)?.length === 0, { withinMs: 60_000 });
    attachment.stop();
  });

  test('Services and slices -> cluster.local [001-09]', async () => {
    const { sim, home, attach, addressesOf } = await setUp();
    await home.start();
    await home.admin.create(serviceType, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'db', namespace: 'default' },
      spec: { clusterIP: 'None', ports: [{ name: 'sql', port: 5432 }] },
    } as AnyObject);
    await home.admin.create(endpointSliceType, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'db-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'db' } },
      addressType: 'IPv4',
      ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready: true }, hostname: 'db-0' }],
    } as AnyObject);
    const attachment = attach();
    await sim.time.until(() => addressesOf('db-0.db.default.svc.cluster.local') !== undefined, { withinMs: 10_000 });
    expect(addressesOf('db.default.svc.cluster.local')).toEqual(['10.1.0.1']);
    attachment.stop();
  });

  test('the home was away, and has forgotten when anything was written -> nothing is listed anew', async () => {
    const { sim, home, client, world, attach, addressesOf, mood, requests } = await setUp();
    await home.start();
    await home.admin.create(serviceImportType, serviceImport('checkout', '243.0.0.7'));
    keepPartLease({ client, world, log: silentLog, part: 'dns', id: 'node-1' });
    const attachment = attach();
    await sim.time.until(() => addressesOf(name) !== undefined, { withinMs: 10_000 });
    // Homes keep their history for five minutes.
    await sim.time.advance(900_000);
    mood.is = 'down';
    sim.network.breakStreams({ server: home.url });
    await sim.time.advance(20_000);
    mood.is = 'well';
    const since = requests.length;
    await sim.time.advance(60_000);
    const again = requests.slice(since).filter((path) => /\/(endpointslices|serviceimports)\?/.test(path));
    expect(again.filter((path) => path.includes('watch='))).toHaveLength(2);
    expect(again.filter((path) => path.includes('limit='))).toEqual([]);
    attachment.stop();
  });

  test('a list of many pages -> SERVFAIL through reading and making names, never NXDOMAIN, then every name', async () => {
    const { sim, home, attach, addressesOf, catalog, state, turns } = await setUp();
    await home.start();
    const names = Array.from({ length: 1200 }, (_, i) => `svc-${i}.default.svc.clusterset.local`);
    for (const [i, name] of names.entries()) {
      await home.admin.create(serviceImportType, serviceImport(name.split('.')[0]!, `243.0.${i >> 8}.${i & 255}`));
    }
    const asker = new Asker(catalog);
    const answers: Promise<string>[] = [];
    const ask = () => {
      for (const name of [names[0]!, names[600]!, names[1199]!]) answers.push(asker.ask(`${name} A`));
    };
    const madeAtTurns = new Set<number>();
    turns.onTurn = () => {
      if (state() === 'ready') return;
      madeAtTurns.add(names.filter((name) => addressesOf(name) !== undefined).length);
      ask();
    };
    const attachment = attach();
    await sim.time.until(() => state() === 'ready', { withinMs: 60_000 });
    turns.onTurn = () => {};
    expect([...madeAtTurns].some((count) => count > 0 && count < names.length)).toBe(true);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['SERVFAIL']));
    expect(names.filter((name) => addressesOf(name) === undefined)).toEqual([]);
    expect(await asker.ask(`${names[1199]} A`)).toBe('243.0.4.175');
    attachment.stop();
  });
});
