import { expect, test } from 'vitest';
import { seededRandom } from '../../../sim/virtual-world.ts';
import { absentOwner, type NamedSlice, type OwnerFacts } from '../../catalog/facts/facts.ts';
import { isExportedTo, type ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { makeEntry } from '../view/entry.ts';
import { gatewayResources, shardResource } from './gateway.ts';
import { type NamedWay, namedWaysOf, namedWaysResources } from './named-ways.ts';
import { authorityOf, memberDomain, nodeIdentities, shardOf } from './names.ts';
import { nearHealthResources } from './near-health.ts';
import { nearSideResources } from './near-side.ts';
import { authoritiesOf, type ExportedPort, portChains, portEndpoints, portName, portResources } from './service.ts';
import { callersTrust, gatewayTrust } from './trust.ts';
import { type NamedUdpWay, udpNearSideResources, udpWaysOf } from './udp-near-side.ts';

const members = { own: 'east', clusterSet: 'prod', callers: ['west', 'south'] };

function exported(changes: Partial<ExportedPort> = {}): ExportedPort {
  return {
    ...{ namespace: 'shop', service: 'web', port: 80, addresses: ['243.9.0.1', 'fdee::1'] },
    ...{ host: 'web.shop.svc.clusterset.local', exportTo: undefined, ...changes },
  };
}

const hostOf = (port: ExportedPort) =>
  JSON.stringify(portResources(port, { authorities: authoritiesOf(port), members })[1]!.body);

test('gateway: a service port -> found by each address and by name, all members admitted', () => {
  const port = exported();
  const [cluster, host] = portResources(port, { authorities: authoritiesOf(port), members });
  expect([cluster!.type, cluster!.name]).toEqual(['cluster', 'web.shop.svc.clusterset.local:80']);
  expect(host!.name).toBe('gateway/web.shop.svc.clusterset.local:80');
  expect(host!.body['domains']).toEqual(['243.9.0.1:80', '[fdee::1]:80', 'web.shop.svc.clusterset.local:80']);
  expect(hostOf(port)).toContain('"principals":[{"any":true}]');
});

test('gateway: exported to some -> those alone, by the slash at the end of their identities', () => {
  const limited = hostOf(exported({ exportTo: ['west', 'north'] }));
  expect(limited).toContain('spiffe://west.prod/node/');
  for (const other of ['south', 'north', '"any":true}]}']) expect(limited.split('principals')[1]).not.toContain(other);
  expect(hostOf(exported({ exportTo: [] }))).toContain('"policies":{}');
});

test('gateway: no authority leads to a port alone -> it has no virtual host', () => {
  expect(portResources(exported(), { authorities: [], members }).map(({ type }) => type)).toEqual(['cluster']);
  expect(portChains(exported(), { authorities: [], members }).matches).toEqual({});
});

test('gateway: 100,000 random callers, services and limits -> who may import may call, and nobody else', () => {
  const random = seededRandom(29);
  const ids = ['a', 'b', 'c', 'd', 'e'];
  const some = () => ids.filter(() => random() < 0.5);
  for (let round = 0; round < 100_000; round += 1) {
    const own = ids[Math.floor(random() * ids.length)]!;
    const exportTo = random() < 0.2 ? undefined : some();
    const callers = some().filter((id) => id !== own);
    const members = { own, clusterSet: 'prod', callers };
    const { chains } = portChains(exported({ exportTo }), { authorities: ['a:1'], members });
    const allowed = chains.map(({ name }) => String(name).split(' ').at(-1));
    const shard = { spec: { exportTo } } as ServiceShard;
    for (const reader of callers) {
      const isAllowed = allowed.includes('all') || allowed.includes(reader);
      if (isAllowed !== isExportedTo(shard, { exporter: own, reader }))
        throw new Error(`round ${round}: ${reader} of ${own}, exported to ${String(exportTo)}`);
    }
  }
});

test('gateway: chains -> one for each named caller of a service; leaving one out changes no other', () => {
  const of = (exportTo: readonly string[] | undefined) => {
    const port = exported({ exportTo });
    return portChains(port, { authorities: authoritiesOf(port), members });
  };
  const names = (port: ReturnType<typeof of>) => port.chains.map(({ name }) => name);
  expect(names(of(undefined))).toEqual(['web.shop.svc.clusterset.local:80 all']);
  expect(names(of(['south', 'west']))).toEqual([
    'web.shop.svc.clusterset.local:80 of south',
    'web.shop.svc.clusterset.local:80 of west',
  ]);
  expect(of(['south']).chains[0]).toEqual(of(['south', 'west']).chains[0]);
  expect(Object.keys(of(['west']).matches)).toContain(`243.9.0.1:80 ${nodeIdentities('west.prod')}`);
});

test('gateway: the order of members and services -> does not show in the bytes', () => {
  const versions = (callers: readonly string[], ports: readonly ExportedPort[]) =>
    [
      ...gatewayResources({ ...members, callers }),
      ...shardResource(
        3,
        ports.map((port) => portChains(port, { authorities: authoritiesOf(port), members })),
        [],
      ),
    ].map((each) => makeEntry(each).version);
  const other = exported({ service: 'api', host: 'api.shop.svc.clusterset.local', addresses: ['243.9.0.2'] });
  expect(versions(['south', 'west'], [other, exported()])).toEqual(versions(['west', 'south'], [exported(), other]));
});

test('gateway: a member comes or goes -> the chains of others stay as they are; nobody calls -> no listener', () => {
  const chains = (callers: readonly string[]) => {
    const [listener] = gatewayResources({ ...members, callers });
    const { filter_chains } = listener!.body as { filter_chains: { name: string }[] };
    return new Map(filter_chains.map((chain) => [chain.name, JSON.stringify(chain)]));
  };
  expect(chains(['west', 'south']).get('west.prod')).toBe(chains(['west']).get('west.prod'));
  expect(gatewayResources({ ...members, callers: [] })).toEqual([]);
  expect(shardResource(1, [], [])).toEqual([]);
});

test('gateway: trust -> roots are good for their own domain, proxies call and gateways answer', () => {
  const trust = { id: 'west', domain: memberDomain('west', 'prod'), roots: ['one', 'two'] };
  const text = JSON.stringify(callersTrust(trust).body);
  expect(text).toContain('"trust_domains":[{"name":"west.prod","trust_bundle":{"inline_string":"one\\ntwo\\n"}}]');
  expect(text).toContain('spiffe://west\\\\.prod/(ns/[a-z0-9-]+/)?node/[A-Za-z0-9._-]+');
  expect(JSON.stringify(gatewayTrust(trust).body)).toContain('"exact":"spiffe://west.prod/gateway"');
});

test('gateway: everything that is made -> can be encoded', () => {
  const port = exported({ exportTo: ['west'] });
  const with_ = { authorities: authoritiesOf(port), members };
  const remote = {
    ...{ id: 'east', gateways: [{ address: '203.0.113.1', port: 15_443 }], listenerPort: 15_101 },
    ownDomain: 'west.prod',
  };
  const all = [
    ...gatewayResources(members),
    ...portResources(port, with_),
    portEndpoints(port, [{ address: '10.0.0.1', port: 8080 }]),
    ...shardResource(shardOf(portName(port)), [portChains(port, with_)], []),
    ...nearSideResources(remote),
    ...nearHealthResources(['east', 'south']),
    ...namedWaysResources(remote, [way('243.9.0.7'), way('fdee::7')]),
    ...portResources(udpPort, { authorities: authoritiesOf(udpPort), members }),
    ...shardResource(0, [portChains(udpPort, { authorities: authoritiesOf(udpPort), members })], []),
    ...udpNearSideResources('east', [udpWay(53)]),
  ];
  for (const each of all) expect(makeEntry(each).any.length).toBeGreaterThan(0);
});

const udpPort = exported({ port: 53, isUdp: true, host: 'udp.dns.shop.svc.clusterset.local', addresses: [] });
const udpWay = (port: number, listenerPort = 15_000 + port): NamedUdpWay => ({
  ...{ cluster: 'east', port, listenerPort: listenerPort + 200, host: 'dns.shop.svc.clusterset.local' },
  cause: { at: 'home', kind: 'ServiceImport', namespace: 'shop', name: 'dns' },
});

test('gateway: a UDP port -> asked for by name and CONNECT-UDP alone, with the permissions and chains of its service', () => {
  const limited = { ...udpPort, exportTo: ['west'] };
  const [, host] = portResources(limited, { authorities: authoritiesOf(limited), members });
  expect(host!.body['domains']).toEqual(['udp.dns.shop.svc.clusterset.local:53']);
  const text = JSON.stringify(host!.body);
  expect(text).toContain('"headers":[{"name":"upgrade","string_match":{"exact":"connect-udp"}}]');
  expect(text).toContain('spiffe://west.prod/node/');
  expect(text).not.toContain('connect_config');
  const { chains, matches } = portChains(limited, { authorities: authoritiesOf(limited), members });
  expect(chains.map(({ name }) => name)).toEqual(['udp.dns.shop.svc.clusterset.local:53 of west']);
  expect(Object.keys(matches)[0]).toMatch(/^udp\.dns\.shop\.svc\.clusterset\.local:53 spiffe:\/\/west\.prod\/n/);
  const callers = gatewayResources(members).filter(({ name }) => name.startsWith('gateway-udp-caller/'));
  expect(callers.map(({ body }) => body['circuit_breakers'])).toEqual(
    members.callers.map(() => ({
      thresholds: [{ max_connections: 10_000, max_pending_requests: 1000, max_requests: 10_000 }],
    })),
  );
  // Other ports ask for no such streams, and the gateway gives none.
  expect(JSON.stringify(gatewayResources(members))).toContain('{"upgrade_type":"CONNECT-UDP","enabled":false}');
});

test('near side: UDP -> a bounded listener for each port, one for each port number; none, nothing', () => {
  expect(udpNearSideResources('east', [])).toEqual([]);
  const made = udpNearSideResources('east', [udpWay(123), udpWay(53)]);
  expect(made).toEqual(udpNearSideResources('east', [udpWay(53), udpWay(123)]));
  expect(made.map(({ type, name }) => `${type} ${name.slice(0, 25)}`)).toEqual([
    'listener gateway-udp/east',
    ...['cluster', 'listener', 'cluster', 'listener'].map((type) => `${type} gateway-udp/east/dns.shop`),
  ]);
  for (const { body } of made.filter(({ type }) => type === 'cluster'))
    expect(body['circuit_breakers']).toMatchObject({ thresholds: [{ max_connections: 2000 }] });
  expect(made[2]!.body['address']).toMatchObject({ socket_address: { protocol: 'UDP', ipv4_compat: true } });
  expect(udpNearSideResources('east', [udpWay(53, 15_000), udpWay(123, 15_000)])).toHaveLength(3);
});

test('near side: UDP ways on an import -> of UDP ports that it has, under its name in the clusterset', () => {
  const owner: OwnerFacts = {
    ...absentOwner,
    ...{ isPresent: true, routing: '{"u":[["east",53,15253],["east",80,15254]]}' },
    ports: [
      { name: 'dns', protocol: 'UDP', port: 53 },
      { name: 'http', protocol: 'TCP', port: 80 },
    ],
    traffic: { affinitySeconds: 0, isNodeLocalOnly: false, appProtocols: [], importedFrom: 'shop/dns', problems: [] },
  };
  const found = udpWaysOf('here/names', owner, 'clusterset.local');
  expect(found).toEqual([{ ...udpWay(53), cause: { ...udpWay(53).cause, namespace: 'here', name: 'names' } }]);
});

test('near side: a cluster behind gateways -> checked actively, never ejected for one dead service', () => {
  const remote = { id: 'east', gateways: [], listenerPort: 15_101, ownDomain: 'west.prod' };
  const [cluster, , listener] = nearSideResources(remote);
  expect(cluster!.body).toHaveProperty('health_checks');
  expect(cluster!.body).not.toHaveProperty('outlier_detection');
  expect(cluster!.body['ignore_health_on_host_removal']).toBe(true);
  expect(JSON.stringify(listener!.body)).toContain('"hostname":"%DOWNSTREAM_LOCAL_ADDRESS%"');
  expect(authorityOf('fdee::1', 80)).toBe('[fdee::1]:80');
});

const way = (address: string, more: Partial<NamedWay> = {}): NamedWay => ({
  ...{
    service: 'shop/web',
    cluster: 'east',
    address,
    port: 80,
    authority: 'web.shop.svc.clusterset.local:80',
    ...more,
  },
});

test('near side: ways by name -> a chain for each in a listener that has no others; none, no listener', () => {
  const east = { id: 'east', listenerPort: 15_101 };
  expect(namedWaysResources(east, [])).toEqual([]);
  const ways = [way('243.9.0.8'), way('243.9.0.7'), way('fdee::7'), way('243.9.0.7', { authority: 'a:80' })];
  const [listener] = namedWaysResources(east, ways);
  expect(listener).toEqual(namedWaysResources(east, ways.toReversed())[0]);
  expect(listener!.body['address']).toMatchObject({ socket_address: { port_value: 15_901 } });
  expect(listener!.body).not.toHaveProperty('default_filter_chain');
  const chains = listener!.body['filter_chains'] as { name: string; filter_chain_match: object }[];
  expect(chains.map(({ name }) => name).sort()).toEqual(['243.9.0.7:80', '243.9.0.8:80', '[fdee::7]:80']);
  for (const { filter_chain_match } of chains) expect(Object.keys(filter_chain_match)).toHaveLength(2);
});

test('near side: a name that is none, as foreign writers may put it into a slice -> no chain, and the others stay', () => {
  const hostile = ['%DOWNSTREAM_LOCAL_ADDRESS%', 'a%b', 'A.b', 'a b', 'a\r\nx'].map((name, index) =>
    way(`243.9.1.${index}`, { authority: `${name}:80` }),
  );
  const [listener] = namedWaysResources({ id: 'east', listenerPort: 15_101 }, [...hostile, way('243.9.0.7')]);
  expect(listener!.body['filter_chains']).toHaveLength(1);
});

test('near side: an import and its slices -> asked by name where the slices say so, under its name in the clusterset', () => {
  const owner = (importedFrom = ''): OwnerFacts => ({
    ...absentOwner,
    ...{ isPresent: true, ips: [Uint8Array.of(243, 9, 0, 7)] },
    ports: [
      { name: 'http', protocol: 'TCP', port: 80 },
      { name: 'dns', protocol: 'UDP', port: 53 },
    ],
    traffic: { affinitySeconds: 0, isNodeLocalOnly: false, appProtocols: [], importedFrom, problems: [] },
  });
  const slice = (cluster: string, behindGateway: 'IPv4' | 'IPv6', isAskedByName: boolean): NamedSlice => ({
    ...{ name: cluster, service: 'web', isImported: true, cluster, ports: [], resourceVersion: '', seenMs: 0 },
    endpoints: [{ address: new Uint8Array(), hostname: '', isReady: false, zone: '', behindGateway, isAskedByName }],
  });
  const slices = [slice('east', 'IPv4', true), slice('south', 'IPv4', false), slice('north', 'IPv6', true)];
  const named = { slices, domain: 'clusterset.local' };
  expect(namedWaysOf({ ...named, key: 'shop/web', owner: owner() })).toEqual([way('243.9.0.7')]);
  expect(namedWaysOf({ ...named, key: 'here/other', owner: owner('shop/web') })).toEqual([
    way('243.9.0.7', { service: 'here/other' }),
  ]);
});

test('near side: a headless service -> each endpoint with a virtual address by its own name, at the ports of its slice', () => {
  const owner = { ...absentOwner, isPresent: true, kind: 'Headless' as const };
  const ports = [{ name: 'sql', protocol: 'TCP' as const, port: 5433 }];
  const endpoint = { hostname: 'db-0', isReady: false, zone: '' };
  const address = Uint8Array.of(243, 9, 0, 8);
  const common = { service: 'db', isImported: true, ports, resourceVersion: '', seenMs: 0 };
  const slices: NamedSlice[] = [
    { ...common, name: 'a', cluster: 'east', endpoints: [{ ...endpoint, address, behindGateway: 'IPv4' }] },
    { ...common, name: 'b', cluster: 'west', endpoints: [{ ...endpoint, address: Uint8Array.of(10, 1, 0, 1) }] },
  ];
  expect(namedWaysOf({ key: 'shop/db', owner, slices, domain: 'clusterset.local' })).toEqual([
    way('243.9.0.8', { service: 'shop/db', port: 5433, authority: 'db-0.east.db.shop.svc.clusterset.local:5433' }),
  ]);
});

test('near side: health -> a path for each cluster on loopback, whatever their order; no cluster, no listener', () => {
  const [listener] = nearHealthResources(['south', 'east']);
  expect(listener).toEqual(nearHealthResources(['east', 'south'])[0]);
  expect(listener!.body['address']).toEqual({ socket_address: { address: '127.0.0.1', port_value: 15_100 } });
  const text = JSON.stringify(listener!.body);
  expect(text).toContain('"cluster_min_healthy_percentages":{"gateway/east":{"value":1}}');
  expect(text).toContain('{"exact":"/gateway/south"}');
  expect(nearHealthResources([])).toEqual([]);
});
