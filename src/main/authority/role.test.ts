// Work of a federation's leading authority, against a simulated broker and resolvers whose stub-zone endpoints are
// the real ones.

import { describe, expect, test } from 'vitest';
import { SimHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { decodeMessage, encodeMessage } from '../../base/dns/message.ts';
import { signMessage, verifyMessage } from '../../base/dns/tsig.ts';
import { silentLog } from '../../base/log.ts';
import type { Clock } from '../../base/world.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../../clusterset/rules/broker-layout.ts';
import type { StubZone, TrustConfig } from '../../dns/config/config.ts';
import { encodeSource } from '../../dns/source/source-option.ts';
import { Federations, fileStore } from '../../dns/stub-zones/federations.ts';
import { AuthorityAsker } from '../../dns/testing/authority.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import type { DnsConnection } from '../../federation/public/rfc2136.ts';
import { createClient } from '../../kube/client/client.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type AuthorityRole, type AuthoritySetup, startAuthorityRole } from './role.ts';

const portolan = 'portolan.dev/v1alpha1';

function object(apiVersion: string, kind: string, namespace: string | undefined, name: string, rest: object = {}) {
  return { apiVersion, kind, metadata: { name, ...(namespace ? { namespace } : {}) }, ...rest } as AnyObject;
}

async function setUp() {
  const sim = new Simulation({ seed: 1 });
  const broker = new SimHome({ simulation: sim, name: 'broker', serviceRanges: ['10.96.0.0/16'], mayDo: () => true });
  await broker.start();
  const { admin } = broker;
  await admin.create(namespaceType, object('v1', 'Namespace', undefined, 'prod'));
  const resolvers = new Map<string, { zones: readonly StubZone[]; posts: number }>();

  /** A member's resolver with the real endpoint; who calls is a matter of TLS, which is not simulated. */
  async function startResolver(id: string): Promise<void> {
    const state = { zones: [] as readonly StubZone[], posts: 0 };
    const federations = new Federations({
      store: fileStore(sim.world(`${id}-resolver`).disk, 'stub-zones.json'),
      path: 'stub-zones.json',
      log: silentLog,
      allowed: ['federation'],
      onChange: (zones) => (state.zones = zones),
    });
    await federations.load();
    sim.network.listen(`https://${id}-resolver`, (request) => {
      if (request.method === 'POST') state.posts += 1;
      return federations.handle(request, 'federation');
    });
    resolvers.set(id, state);
  }

  async function join(id: string, endpoint: string | undefined = `https://${id}-resolver`): Promise<void> {
    const namespace = `prod-m-${id}`;
    await admin.create(namespaceType, object('v1', 'Namespace', undefined, namespace));
    const resolver = endpoint === '' ? {} : { resolver: { endpoint } };
    await admin.create(clusterType, object(portolan, 'Cluster', 'prod', id, { spec: { namespace, ...resolver } }));
    const spec = { holderIdentity: id };
    await admin.create(heartbeatType, object(portolan, 'Heartbeat', namespace, memberLeaseName, { spec }));
  }

  const share = (id: string, service: string) =>
    admin.create(
      serviceShardType,
      object(portolan, 'ServiceShard', `prod-m-${id}`, `${service}.shop`, {
        spec: {
          type: 'ClusterSetIP',
          exportedAt: '2026-01-01T00:00:00Z',
          clusterIPs: ['10.0.0.1'],
          loadBalancer: [{ ip: '104.0.0.1' }],
          readyEndpoints: 1,
        },
      }),
    );

  const trusts: TrustConfig[] = [];
  const written: Buffer[] = [];
  const zones: string[] = [];
  const tables: FederationTable[] = [];
  function start(name: string, more: Pick<AuthoritySetup, 'fixed'> = {}): AuthorityRole {
    const world = sim.world(name);
    const access = { server: broker.url, bearerToken: async () => name };
    const client = createClient(world.network.http(access), { world, userAgent: name });
    const table = new FederationTable({ table: new NameTable({ serial: 1 }) });
    tables.push(table);
    return startAuthorityRole({
      ...more,
      world,
      log: silentLog,
      table,
      federation: 'world',
      broker: { client, clusterset: 'prod' },
      trust: { trusted: { ranges: ['192.0.2.1/32'], identities: [] }, keys: [] },
      identity: { certificate: 'certificate', key: 'key' },
      setTrust: (trust) => trusts.push(trust),
      onZone: ({ sourceOption }) => zones.push(`${table.zone.name} ${table.zone.ttlSeconds} ${sourceOption}`),
      connect: () => publicServer(sim.world(name).clock, written),
    });
  }

  const federation = () => admin.get<Federation>(federationType, { namespace: 'prod', name: 'world' });
  const change = async (spec: Federation['spec']) =>
    admin.update(federationType, { ...(await federation()), spec } as Federation);
  const serversOf = (id: string) => resolvers.get(id)?.zones[0]?.nameservers.join() ?? '';
  const statusIs = (check: (status: Federation['status']) => boolean) => {
    let last: Federation['status'];
    const look = () => void federation().then(({ status }) => (last = status));
    return sim.time.until(
      () => {
        look();
        return check(last);
      },
      { withinMs: 30_000 },
    );
  };
  await admin.create(
    federationType,
    object(portolan, 'Federation', 'prod', 'world', { spec: { nameservers: ['10.0.0.53'] } }),
  );
  return {
    sim,
    admin,
    startResolver,
    join,
    share,
    start,
    change,
    serversOf,
    resolvers,
    federation,
    statusIs,
    trusts,
    zones,
    tables,
    written,
  };
}

/** A public DNS server whose zone is empty; records the updates it receives. */
function publicServer(clock: Clock, written: Buffer[]): DnsConnection {
  const timeSeconds = Math.floor(clock.wallMs() / 1000);
  const keys = [{ name: 'public', algorithm: 'hmac-sha256' as const, secret: new Uint8Array(32).fill(1) }];
  return {
    exchange: async (message, onMessage) => {
      const verdict = verifyMessage(message, { keys, timeSeconds });
      if (verdict.kind !== 'good') throw new Error('not signed as it should be');
      const { id, questions } = decodeMessage(verdict.message);
      const isUpdate = (message[2]! & 0x78) !== 0;
      if (isUpdate) written.push(Buffer.from(message));
      const soa = { name: questions[0]!.name, type: 6, class: 1, ttl: 1, rdata: new Uint8Array(22) };
      const answers = isUpdate ? [] : [soa, soa];
      const flags = isUpdate ? 0xa800 : 0x8400;
      const reply = encodeMessage({ id, flags, questions: [], answers, authorities: [], additionals: [] });
      onMessage(signMessage(reply, keys[0]!, { timeSeconds, requestMac: verdict.mac }).message);
    },
  };
}

describe('stub zones of a federation', () => {
  test('a member joins -> posted to its resolver; nameservers change -> posted again; it leaves -> deleted [001-16]', async () => {
    const { sim, admin, startResolver, join, start, change, serversOf } = await setUp();
    await startResolver('east');
    await startResolver('west');
    await join('east');
    start('authority');
    await sim.time.until(() => serversOf('east') === '10.0.0.53', { withinMs: 10_000 });
    await join('west');
    await sim.time.until(() => serversOf('west') === '10.0.0.53', { withinMs: 5000 });
    await change({ nameservers: ['10.0.0.53', '10.0.0.54:5353'] });
    await sim.time.until(() => serversOf('east') === '10.0.0.53,10.0.0.54:5353', { withinMs: 5000 });
    await admin.delete(clusterType, { namespace: 'prod', name: 'east' });
    await sim.time.until(() => serversOf('east') === '', { withinMs: 5000 });
    expect(serversOf('west')).toBe('10.0.0.53,10.0.0.54:5353');
  });

  test('the suffix changes -> resolvers are told, and ask for the names that are there now', async () => {
    const { sim, startResolver, join, start, change, resolvers } = await setUp();
    await startResolver('east');
    await join('east');
    start('authority');
    const zone = () =>
      resolvers
        .get('east')
        ?.zones.map((stub) => stub.zone)
        .join();
    await sim.time.until(() => zone() === 'world.svc.federation', { withinMs: 10_000 });
    await change({ nameservers: ['10.0.0.53'], suffix: 'fed.example.org' });
    await sim.time.until(() => zone() === 'world.svc.fed.example.org', { withinMs: 5000 });
  });

  test('services come and go, and the status with them -> no post to a resolver that has the zone; again after five minutes', async () => {
    const { sim, admin, startResolver, join, share, start, resolvers, statusIs } = await setUp();
    await startResolver('east');
    await join('east');
    start('authority');
    await statusIs((status) => status?.stubZones?.[0]?.state === 'Posted');
    await sim.time.advance(5_000);
    const posts = () => resolvers.get('east')!.posts;
    const before = posts();
    for (let service = 0; service < 5; service += 1) {
      await share('east', `s${service}`);
      await statusIs((status) => status?.services === service + 1);
    }
    await admin.delete(serviceShardType, { namespace: 'prod-m-east', name: 's0.shop' });
    await sim.time.advance(100_000);
    expect(posts()).toBe(before);
    await sim.time.advance(300_000);
    expect(posts()).toBe(before + 1);
  });

  test('a member leaves while no authority runs -> deleted when one does [001-16]', async () => {
    const { sim, admin, startResolver, join, start, serversOf } = await setUp();
    await startResolver('east');
    await join('east');
    const first = start('authority');
    await sim.time.until(() => serversOf('east') !== '', { withinMs: 10_000 });
    let isStopped = false;
    void first.stop().then(() => (isStopped = true));
    await sim.time.until(() => isStopped, { withinMs: 30_000 });
    await admin.delete(clusterType, { namespace: 'prod', name: 'east' });
    start('authority');
    await sim.time.until(() => serversOf('east') === '', { withinMs: 30_000 });
  });

  test('a resolver is away -> Failed in the status, and told when it is back [001-17]', async () => {
    const { sim, startResolver, join, start, serversOf, statusIs } = await setUp();
    await join('east');
    start('authority');
    await statusIs((status) => status?.stubZones?.[0]?.state === 'Failed');
    await startResolver('east');
    await sim.time.until(() => serversOf('east') !== '', { withinMs: 120_000 });
    await statusIs((status) => status?.stubZones?.[0]?.state === 'Posted');
    await statusIs((status) => status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True');
  });

  test('a member outside the federation, or without an endpoint -> left alone, and the status says so', async () => {
    const { sim, startResolver, join, start, change, serversOf, statusIs } = await setUp();
    await startResolver('east');
    await startResolver('west');
    await change({ nameservers: ['10.0.0.53'], clusters: ['east', 'south'] });
    await join('east');
    await join('west');
    await join('south', '');
    start('authority');
    await sim.time.until(() => serversOf('east') !== '', { withinMs: 10_000 });
    await statusIs((status) => status?.stubZones?.length === 2);
    expect(serversOf('west')).toBe('');
    await statusIs((status) =>
      (status?.stubZones?.[1]?.message ?? '').includes('no resolver of it has reported an endpoint'),
    );
    await statusIs((status) => {
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      return ready?.status === 'False' && ready.reason === 'StubZonesPending' && ready.message.includes('south');
    });
  });
});

describe('an authority that leads', () => {
  test('two authorities -> one leads; the leader dies -> the other takes over [001-14]', async () => {
    const { sim, startResolver, join, start, serversOf, change } = await setUp();
    await startResolver('east');
    await join('east');
    const first = start('first');
    await sim.time.until(() => first.isLeading(), { withinMs: 10_000 });
    const second = start('second');
    await sim.time.advance(20_000);
    expect([first.isLeading(), second.isLeading()]).toEqual([true, false]);
    sim.network.setLink('first', 'https://broker', 'refused');
    await sim.time.until(() => second.isLeading(), { withinMs: 60_000 });
    expect(first.isLeading()).toBe(false);
    await change({ nameservers: ['10.0.0.99'] });
    await sim.time.until(() => serversOf('east') === '10.0.0.99', { withinMs: 5000 });
  });

  test('the leader hangs, no home of ours is the broker -> the one that waits says Unknown within 15 s, takes over and says Ready', async () => {
    const { sim, startResolver, join, start, federation, statusIs } = await setUp();
    await startResolver('east');
    await join('east');
    start('first');
    await statusIs((status) => status?.conditions?.[0]?.status === 'True');
    const second = start('second');
    const ready = async () => {
      const { status, reason } = (await federation()).status!.conditions![0]!;
      return status === 'Unknown' ? reason : status;
    };
    for (let second = 0; second < 60; second += 1) {
      await sim.time.advance(1_000);
      expect(await ready()).toBe('True');
    }
    sim.network.setLink('first', 'https://broker', 'silent');
    await sim.time.advance(14_000);
    expect([await ready(), second.isLeading()]).toEqual(['AuthoritySilent', false]);
    await sim.time.until(() => second.isLeading(), { withinMs: 10_000 });
    await statusIs((status) => status?.conditions?.[0]?.status === 'True');
  });

  test('services come and go -> counted in the status; nothing changes -> nothing but the time is written', async () => {
    const { sim, join, share, start, federation, statusIs, startResolver } = await setUp();
    await startResolver('east');
    await join('east');
    await share('east', 'web');
    start('authority');
    await statusIs((status) => status?.services === 1 && status.conditions?.[0]?.status === 'True');
    await share('east', 'cart');
    await statusIs((status) => status?.services === 2);
    const before = await federation();
    await sim.time.advance(60_000);
    const { status, metadata } = await federation();
    const agoMs = Date.parse('2026-01-01T00:00:00Z') + sim.time.nowMs - Date.parse(status?.authority?.renewTime ?? '');
    expect(agoMs).toBeLessThanOrEqual(7_000);
    expect({ ...status, authority: undefined }).toEqual({ ...before.status, authority: undefined });
    // Its Lease as the leader is renewed every two seconds too.
    const writes = Number(metadata.resourceVersion) - Number(before.metadata.resourceVersion);
    expect(writes).toBeLessThanOrEqual(60 / 5 + 60 / 2 + 2);
  });

  const keySecret = (name: string, key: string, fill: number) => {
    const data = { name: key, secret: Buffer.alloc(32, fill).toString('base64') };
    const inBase64 = Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
    return object('v1', 'Secret', 'prod', name, { data: inBase64 });
  };
  const readiness = (status: Federation['status']) =>
    status?.conditions?.map(({ status: is, reason, message }) => `${is} ${reason}: ${message}`).join() ?? '';

  test('the federation names whom to believe -> believed besides those given at start', async () => {
    const { sim, admin, start, change, trusts } = await setUp();
    await admin.create(secretType, keySecret('peer-key', 'peer', 1));
    start('authority');
    await change({ source: { ranges: ['10.0.0.0/8'], certificateNames: ['east'], tsigKeys: [{ name: 'peer-key' }] } });
    await sim.time.until(() => trusts.at(-1)?.keys.length === 1, { withinMs: 5000 });
    expect(trusts.at(-1)).toMatchObject({
      trusted: { ranges: ['192.0.2.1/32', '10.0.0.0/8'], identities: ['east'] },
      keys: [{ name: 'peer', algorithm: 'hmac-sha256' }],
    });
    const count = trusts.length;
    await sim.time.advance(120_000);
    expect(trusts).toHaveLength(count);
  });

  test('a key of the federation is missing -> the rest is in force and the condition says which; it comes -> believed', async () => {
    const { sim, admin, start, change, trusts, statusIs } = await setUp();
    await admin.create(secretType, keySecret('one', 'one', 1));
    await change({ source: { ranges: ['10.0.0.0/8'], tsigKeys: [{ name: 'one' }, { name: 'two' }] } });
    start('authority');
    await sim.time.until(() => trusts.at(-1)?.keys.length === 1, { withinMs: 10_000 });
    expect(trusts.at(-1)?.trusted.ranges).toEqual(['192.0.2.1/32', '10.0.0.0/8']);
    await statusIs((status) => /^False KeysMissing: .*secret prod\/two: there is none$/.test(readiness(status)));
    await admin.create(secretType, keySecret('two', 'two', 2));
    await sim.time.until(() => trusts.at(-1)?.keys.length === 2, { withinMs: 10_000 });
    await statusIs((status) => /^True Ready/.test(readiness(status)));
  });

  test('a key of the federation is renewed, then taken away -> the new one counts, then none', async () => {
    const { sim, admin, start, change, trusts } = await setUp();
    await admin.create(secretType, keySecret('one', 'one', 1));
    await change({ source: { tsigKeys: [{ name: 'one' }] } });
    start('authority');
    const firstByte = () => trusts.at(-1)?.keys[0]?.secret[0];
    await sim.time.until(() => firstByte() === 1, { withinMs: 10_000 });
    const before = await admin.get<AnyObject>(secretType, { namespace: 'prod', name: 'one' });
    await admin.update(secretType, {
      ...before,
      ...keySecret('one', 'one', 2),
      metadata: before.metadata,
    } as AnyObject);
    await sim.time.until(() => firstByte() === 2, { withinMs: 20_000 });
    sim.network.setLink('authority', 'https://broker', 'refused');
    await sim.time.advance(60_000);
    expect(firstByte()).toBe(2);
    sim.network.setLink('authority', 'https://broker', 'up');
    await admin.delete(secretType, { namespace: 'prod', name: 'one' });
    await sim.time.until(() => trusts.at(-1)?.keys.length === 0, { withinMs: 60_000 });
  });

  test('the suffix is given at start -> public names end in it too, whatever the federation says', async () => {
    const { sim, admin, join, share, start, change, written } = await setUp();
    await admin.create(secretType, keySecret('public', 'public', 1));
    await join('east');
    await share('east', 'web');
    const provider = { type: 'RFC2136' as const, rfc2136: { server: '192.0.2.53', tsigSecret: { name: 'public' } } };
    await change({ suffix: 'said', public: { domain: 'example.org', provider } });
    start('authority', { fixed: { suffix: 'given.example' } });
    const wrote = (name: string) => written.some((message) => message.includes(`name=${name}`));
    await sim.time.until(() => wrote('web.shop.world.svc.given.example.example.org'), { withinMs: 30_000 });
    expect(wrote('web.shop.world.svc.said.example.org')).toBe(false);
  });

  test('the policy of the federation changes -> answers follow, without a restart', async () => {
    const { sim, join, share, start, change, tables } = await setUp();
    await join('east');
    await join('west');
    await share('east', 'web');
    await share('west', 'web');
    start('authority');
    await sim.time.advance(5000);
    const source = encodeSource({ cluster: 'east', hops: 1 });
    const ask = () => new AuthorityAsker(tables[0]!).ask('web.shop.world.svc.federation A', { source });
    expect(await ask()).toBe('10.0.0.1, 104.0.0.1');
    await change({ policy: 'nearest-only' });
    await sim.time.advance(2000);
    expect(await ask()).toBe('10.0.0.1');
    await change({ policy: 'ordered' });
    await sim.time.advance(2000);
    expect(await ask()).toBe('10.0.0.1, 104.0.0.1');
  });

  test('suffix, TTL or option of the federation change -> taken over at once; what was given at start stays', async () => {
    const { sim, start, change, zones } = await setUp();
    start('follows');
    await sim.time.advance(2000);
    await change({ suffix: 'fed.example.org', ttlSeconds: 15 });
    await sim.time.until(() => zones.at(-1) === 'fed.example.org 15 65001', { withinMs: 5000 });
    await change({ suffix: 'fed.example.org', ttlSeconds: 15, source: { optionCode: 65_100 } });
    await sim.time.until(() => zones.at(-1) === 'fed.example.org 15 65100', { withinMs: 5000 });
    const count = zones.length;
    await change({ suffix: 'fed.example.org', ttlSeconds: 15, source: { optionCode: 65_100 }, policy: 'nearest-only' });
    await sim.time.advance(5000);
    expect(zones).toHaveLength(count);
    start('fixed', { fixed: { suffix: 'here.example', ttlSeconds: 1, sourceOption: 65_200 } });
    await sim.time.advance(5000);
    await change({});
    await sim.time.until(() => zones.at(-1) === 'federation 30 65001', { withinMs: 5000 });
    expect(zones.filter((zone) => zone.includes('here.example'))).toEqual(['here.example 1 65200']);
  });
});
