import { describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { shardAddresses } from '../../clusterset/rules/shard-record.ts';
import type { Federation } from '../kinds/federation.ts';
import { federatedShard } from '../rules/record.ts';
import { differenceOf, type NameChange, ownerNameOf, ownerText, type ZoneSet } from './difference.ts';
import { servicesOf } from './follow.ts';
import { type Provider, runOnce } from './publisher.ts';
import { type PublicService, type PublicShard, wantedZone } from './wanted.ts';

const options = { domain: 'ubernetes.io', suffix: 'federation', hasPlaceNames: false, places: [] };

function shard(cluster: string, ip: string | undefined, more: Partial<PublicShard> = {}): PublicShard {
  return { cluster, externalIPs: ip ? [ip] : [], hostnames: [], isHealthy: true, ...more };
}

function service(name: string, shards: PublicShard[]): PublicService {
  return { federation: 'myfederation', namespace: 'myns', service: name, shards };
}

const text = (services: PublicService[], more: Partial<Parameters<typeof wantedZone>[1]> = {}) =>
  wantedZone(services, { ...options, ...more }).sets.map((set) => `${set.name} ${set.type} ${set.values.join(' ')}`);

describe('wanted public zone', () => {
  test("the seed's example -> exactly its external record [001-36, 001-39]", () => {
    const shards = [shard('foo', '104.32.64.128'), shard('bar', '104.32.64.130'), shard('baz', '108.120.45.12')];
    expect(text([service('myservice', shards)])).toEqual([
      'myservice.myns.myfederation.svc.federation.ubernetes.io A 104.32.64.128 104.32.64.130 108.120.45.12',
    ]);
  });

  test('one address in two spellings -> once, as the zone will show it', () => {
    const shards = [shard('foo', '2001:DB8:0:0::1'), shard('bar', '2001:db8::1')];
    expect(text([service('a', shards)])).toEqual(['a.myns.myfederation.svc.federation.ubernetes.io AAAA 2001:db8::1']);
  });

  test('unhealthy shards -> left out; none healthy -> no name', () => {
    const sick = { isHealthy: false };
    expect(text([service('a', [shard('foo', '1.0.0.1'), shard('bar', '1.0.0.2', sick)])])).toEqual([
      'a.myns.myfederation.svc.federation.ubernetes.io A 1.0.0.1',
    ]);
    expect(text([service('a', [shard('bar', '1.0.0.2', sick)])])).toEqual([]);
  });

  test('a load balancer with a name -> CNAME if it is alone, left out beside addresses [001-53]', () => {
    const named = shard('foo', undefined, { hostnames: ['LB.example.'] });
    expect(text([service('a', [named])])).toEqual(['a.myns.myfederation.svc.federation.ubernetes.io CNAME lb.example']);
    const wanted = wantedZone([service('a', [named, shard('bar', '1.0.0.2')])], options);
    expect(wanted.sets).toMatchObject([{ type: 'A', values: ['1.0.0.2'] }]);
    expect(wanted.leftOut).toMatchObject([{ what: expect.stringContaining('lb.example') }]);
  });

  test('zone and region names -> their own shards, or an alias one level up when a level is empty', () => {
    const places = [
      { zone: 'a', region: 'eu' },
      { zone: 'b', region: 'eu' },
      { zone: 'a', region: 'us' },
    ];
    const shards = [shard('foo', '1.0.0.1', { zone: 'a', region: 'eu' })];
    const base = 'svc1.myns.myfederation.svc';
    expect(text([service('svc1', shards)], { hasPlaceNames: true, places })).toEqual([
      `${base}.a.eu.federation.ubernetes.io A 1.0.0.1`,
      `${base}.a.us.federation.ubernetes.io CNAME ${base}.us.federation.ubernetes.io`,
      `${base}.b.eu.federation.ubernetes.io CNAME ${base}.eu.federation.ubernetes.io`,
      `${base}.eu.federation.ubernetes.io A 1.0.0.1`,
      `${base}.federation.ubernetes.io A 1.0.0.1`,
      `${base}.us.federation.ubernetes.io CNAME ${base}.federation.ubernetes.io`,
    ]);
  });

  test('IPv6 -> AAAA; what is no address -> left out', () => {
    const both = shard('foo', undefined, { externalIPs: ['2001:db8::1', '1.0.0.1', 'pending'] });
    expect(wantedZone([service('a', [both])], options).sets.map(({ type }) => type)).toEqual(['A', 'AAAA']);
  });
});

test('public zone: a service changed back from LoadBalancer, its old status still there -> nothing of it is wanted', () => {
  const wantedOf = (type: 'LoadBalancer' | 'ClusterIP') => {
    const status = { loadBalancer: { ingress: [{ ip: '104.32.64.128' }] } };
    const metadata = { name: 'myservice', namespace: 'myns' };
    const spec = { type, clusterIP: '10.0.3.64', clusterIPs: ['10.0.3.64'] };
    const rules = { virtualRanges: [], allowedRanges: [] };
    const addresses = shardAddresses({ apiVersion: 'v1', kind: 'Service', metadata, spec, status }, rules);
    const { clusterIPs, loadBalancer } = addresses;
    const record = { name: 'myservice.myns', namespace: 'prod-m-foo' };
    const exported = { clusterIPs: [...clusterIPs], loadBalancer: [...loadBalancer], readyEndpoints: 1 };
    const shard = { metadata: record, spec: exported } as unknown as ServiceShard;
    const cluster = { metadata: { name: 'foo' }, spec: { namespace: 'prod-m-foo' } } as Cluster;
    const federation = { metadata: { name: 'myfederation' } } as Federation;
    const federated = federatedShard({ shard, cluster, virtualRanges: [] }, federation)!;
    return text(servicesOf({ values: () => [federated].values() }));
  };
  expect(wantedOf('LoadBalancer')).toEqual(['myservice.myns.myfederation.svc.federation.ubernetes.io A 104.32.64.128']);
  expect(wantedOf('ClusterIP')).toEqual([]);
});

describe('difference of public zones', () => {
  const name = 'a.myns.fed.svc.federation.example';
  const wanted = [{ name, type: 'A' as const, values: ['1.0.0.1'] }];
  const owned = (owner: string): ZoneSet => ({
    name: ownerNameOf(name),
    type: 'TXT',
    ttl: 60,
    values: [ownerText(owner, name)],
  });
  const there = (values: string[], ttl = 60): ZoneSet => ({ name, type: 'A', ttl, values });
  const difference = (current: ZoneSet[], want = wanted) =>
    differenceOf({ owner: 'us', ttlSeconds: 60, wanted: want, current });
  const kinds = (changes: readonly NameChange[]) => changes.map(({ kind }) => kind);

  test.each([
    ['nothing there', [], ['create'], []],
    ['already right', [owned('us'), there(['1.0.0.1'])], [], []],
    ['another address', [owned('us'), there(['1.0.0.2'])], ['update'], []],
    ['another TTL', [owned('us'), there(['1.0.0.1'], 300)], ['update'], []],
    ['the records gone, the owner left', [owned('us')], ['update'], []],
    ["somebody's record without an owner", [there(['9.9.9.9'])], [], [name]],
    ['another owner', [owned('them'), there(['1.0.0.1'])], [], [name]],
    ['some other type there', [{ name, type: 'other', ttl: 1, values: ['00'] } as ZoneSet], [], [name]],
  ])('%s -> %j, conflicts %j', (_what, current, expected, conflicts) => {
    const result = difference(current);
    expect(kinds(result.changes)).toEqual(expected);
    expect(result.conflicts).toEqual(conflicts);
  });

  test('no longer wanted -> deleted if ours, left alone if not', () => {
    expect(kinds(difference([owned('us'), there(['1.0.0.1'])], []).changes)).toEqual(['delete']);
    expect(difference([owned('them'), there(['1.0.0.1'])], []).changes).toEqual([]);
  });

  test('an owner text beside another name -> proves nothing', () => {
    const stray: ZoneSet = { name: 'elsewhere.example', type: 'TXT', ttl: 60, values: [ownerText('us', name)] };
    expect(difference([stray, there(['1.0.0.1'])], []).changes).toEqual([]);
  });

  test("a label too long to repeat -> the owner's name is still a valid one, and different for different names", () => {
    const long = (last: string) => `${'a'.repeat(62)}${last}.example`;
    expect(ownerNameOf(long('b')).split('.')[0]!.length).toBeLessThanOrEqual(63);
    expect(ownerNameOf(long('b'))).not.toBe(ownerNameOf(long('c')));
  });
});

test('publisher: a second run -> writes nothing', async () => {
  const zone = new Map<string, ZoneSet>();
  const provider: Provider = {
    read: async () => [...zone.values()],
    apply: async (changes) =>
      changes.map((change) => {
        for (const set of change.sets) zone.set(`${set.name} ${set.type}`, { ...set, ttl: 60 });
        const values = [ownerText('us', change.name)];
        zone.set(`${change.ownerName} TXT`, { name: change.ownerName, type: 'TXT', ttl: 60, values });
        return { kind: 'done' as const };
      }),
  };
  const wanted = wantedZone([service('a', [shard('foo', '1.0.0.1')])], options).sets;
  const run = () => runOnce({ log: silentLog, provider, owner: 'us', ttlSeconds: 60, wanted: () => wanted });
  expect(await run()).toMatchObject({ written: 1, failed: 0 });
  expect(await run()).toMatchObject({ written: 0, failed: 0 });
});
