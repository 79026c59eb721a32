import { describe, expect, test } from 'vitest';
import { type IpRange, parseRange } from '../../../base/net/ip.ts';
import type { Service } from '../../../kube/objects/service.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { refusal } from '../endpoint-address.ts';
import { readGatewayReport, reportedGateways } from './gateway-report.ts';
import { assignListenerPorts } from './listener-ports.ts';
import { listenerPortsIn, networksData, readNetworks } from './networks.ts';
import { networksOf } from './reach.ts';

const root = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';

interface Given {
  readonly network?: string;
  readonly gateways?: string;
  readonly accepted?: string;
  readonly created?: string;
  readonly roots?: string[] | null;
}

function cluster(name: string, { network, gateways, accepted, created, roots = [root] }: Given = {}): Cluster {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Cluster',
    metadata: { name, ...(created ? { creationTimestamp: created } : {}) },
    spec: {
      namespace: `prod-m-${name}`,
      ...(network ? { network } : {}),
      ...(accepted ? { gatewayRanges: accepted.split(' ') } : {}),
    },
    status: {
      ...(gateways ? { gateways: [...readGatewayReport({ data: { gateways } }).gateways] } : {}),
      trustRoots: roots,
    },
  };
}

const west = cluster('west');
const rules = { virtualRanges: [parseRange('243.0.0.0/12')!], readerRanges: [parseRange('10.1.0.0/16')!] };
const fromWest = (address: string, allowedRanges: readonly IpRange[]) => refusal(address, { ...rules, allowedRanges });
const seenByWest = (...others: Cluster[]) =>
  networksOf({ members: [west, ...others], self: 'west', refusal: fromWest, ports: new Map() });

describe('networks of the set', () => {
  test('networks: all members in one network -> nothing is written, and nothing read', () => {
    const networks = seenByWest(cluster('east', { network: 'default', gateways: '203.0.113.1:15443' }));
    expect(networksData(networks)).toEqual({});
    expect(readNetworks({ data: {} })).toEqual(networks);
  });

  test('networks: written and read -> the same', () => {
    const networks = seenByWest(
      cluster('east', {
        network: 'aws',
        gateways: '203.0.113.1:15443,[2001:db9::1]:443',
        accepted: '203.0.113.0/24 2001:db9::/64',
      }),
      cluster('south', { network: 'lab' }),
    );
    expect(readNetworks({ data: networksData(networks) })).toEqual(networks);
    expect(networks.clusters.get('east')).toEqual({
      network: 'aws',
      gateways: [
        { address: '203.0.113.1', port: 15443 },
        { address: '2001:db9::1', port: 443 },
      ],
      trustRoots: [root],
      listenerPort: expect.any(Number),
    });
    expect(networks.clusters.get('south')).toEqual({
      network: 'lab',
      gateways: [],
      trustRoots: [root],
      problem: 'no gateway published',
    });
  });

  const nonsense = ['', '7', 'null', '[]', '{', '{"east":7}', '{"east":{"gateways":[null,{"address":"x","port":1}]}}'];
  for (const networks of nonsense) {
    test(`networks: the entry is ${networks} -> no gateway of east is used`, () => {
      const read = readNetworks({ data: { networks, trustRoots: networks } });
      expect(read.own).toBe('default');
      expect(read.clusters.get('east')?.gateways ?? []).toEqual([]);
    });
  }

  test('networks: a list of a member is null -> it has no gateway and no roots', () => {
    const east = cluster('east', { network: 'aws', accepted: '203.0.113.0/24', roots: null });
    east.status!.gateways = null;
    expect(seenByWest(east).clusters.get('east')).toEqual({
      network: 'aws',
      gateways: [],
      trustRoots: [],
      problem: 'no gateway published',
    });
  });
});

describe('gateways of a member', () => {
  const refusals: readonly (readonly [gateway: string, accepted: string, why: RegExp])[] = [
    ['203.0.113.1:15443', '', /accepted no gateway ranges/],
    ['203.0.114.1:15443', '203.0.113.0/24', /outside the accepted gateway ranges/],
    ['127.0.0.1:15443', '0.0.0.0/0', /lead nowhere/],
    ['169.254.169.254:80', '0.0.0.0/0', /lead nowhere/],
    ['[::ffff:127.0.0.1]:443', '::/0', /lead nowhere/],
    ['243.0.0.7:443', '0.0.0.0/0', /virtual address/],
    ['10.1.2.3:443', '10.0.0.0/8', /range of the cluster that reads it/],
    ['198.51.100.9:443', '198.51.0.0/16', /in a gateway range of cluster south/],
  ];
  for (const [gateways, accepted, why] of refusals) {
    test(`gateways: ${gateways} with accepted ranges ${accepted || 'none'} -> refused: ${why.source}`, () => {
      const south = cluster('south', { network: 'lab', accepted: '198.51.100.0/24' });
      const reach = seenByWest(cluster('east', { network: 'aws', gateways, accepted }), south).clusters.get('east')!;
      expect(reach.gateways).toEqual([]);
      expect(reach.listenerPort).toBeUndefined();
      expect(reach.problem).toMatch(why);
    });
  }

  test('gateways: one of two is outside -> the other is used, and the problem said', () => {
    const east = cluster('east', {
      network: 'aws',
      gateways: '203.0.113.1:443,10.9.9.9:443',
      accepted: '203.0.113.0/24',
    });
    const reach = seenByWest(east).clusters.get('east')!;
    expect(reach.gateways).toEqual([{ address: '203.0.113.1', port: 443 }]);
    expect(reach.problem).toMatch(/gateway 10.9.9.9 port 443 is refused/);
  });

  test('gateways: two members publish one address in equal ranges -> that of the older one', () => {
    const given = { network: 'aws', gateways: '203.0.113.1:443', accepted: '203.0.113.0/24' };
    const older = cluster('z', { ...given, created: '2026-01-01T00:00:00Z' });
    const younger = cluster('a', { ...given, created: '2026-02-01T00:00:00Z' });
    const { clusters } = seenByWest(younger, older);
    expect(clusters.get('z')?.gateways).toHaveLength(1);
    expect(clusters.get('a')?.gateways).toHaveLength(0);
    expect(clusters.get('a')?.problem).toMatch(/it is a gateway of cluster z/);
  });

  test('gateways: two members behind one address with ports of their own -> both', () => {
    const at = (id: string, port: number) =>
      cluster(id, { network: 'aws', gateways: `203.0.113.1:${port}`, accepted: '203.0.113.1/32' });
    const { clusters } = seenByWest(at('a', 443), at('b', 444));
    expect([...clusters.values()].map(({ gateways }) => gateways.length)).toEqual([1, 1]);
  });

  test('gateways: a member that publishes thousands -> a bounded number is read', () => {
    const gateways = Array.from({ length: 5000 }, (_, i) => `203.0.${i >> 8}.${i & 255}:443`).join(',');
    const reach = seenByWest(cluster('east', { network: 'aws', gateways, accepted: '203.0.0.0/16' })).clusters.get(
      'east',
    )!;
    expect(reach.gateways).toHaveLength(16);
  });

  test('gateways: no trust root -> said, and nothing else of the cluster changes', () => {
    const given = { network: 'aws', gateways: '203.0.113.1:443', accepted: '203.0.113.0/24', roots: [] };
    expect(seenByWest(cluster('east', given)).clusters.get('east')?.problem).toBe('no trust root published');
  });
});

describe('ports of clusters behind gateways', () => {
  const ids = Array.from({ length: 300 }, (_, i) => `cluster-${i}`);

  test('listener ports: 300 clusters -> each its own, the same from any order', () => {
    const ports = assignListenerPorts(ids, new Map());
    expect(new Set(ports.values()).size).toBe(300);
    expect(new Map([...assignListenerPorts([...ids].reverse(), new Map())].sort())).toEqual(new Map([...ports].sort()));
  });

  test('listener ports: clusters leave and others come -> those that stay keep theirs', () => {
    const before = assignListenerPorts(ids, new Map());
    const stay = ids.filter((_, i) => i % 3 !== 0);
    const after = assignListenerPorts(['aaa', ...stay, 'zzz'], before);
    for (const id of stay) expect(after.get(id)).toBe(before.get(id));
    expect(new Set(after.values()).size).toBe(after.size);
  });

  test('listener ports: more clusters than ports, or nonsense in the table -> bounded, none twice', () => {
    const many = Array.from({ length: 1000 }, (_, i) => `c${i}`);
    expect(assignListenerPorts(many, new Map()).size).toBe(800);
    const mended = assignListenerPorts(
      ['a', 'b', 'c'],
      new Map([
        ['a', 22],
        ['b', 15_200],
        ['c', 15_200],
      ]),
    );
    expect(mended.get('b')).toBe(15_200);
    expect(new Set(mended.values()).size).toBe(3);
    for (const port of mended.values()) expect(port).toBeGreaterThan(15_100);
  });

  test('listener ports: written by the agent -> read back by it', () => {
    const networks = seenByWest(
      cluster('east', { network: 'aws', gateways: '203.0.113.1:443', accepted: '203.0.113.0/24' }),
    );
    const written = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: networksData(networks) };
    expect([...listenerPortsIn(written)]).toEqual([['east', networks.clusters.get('east')!.listenerPort]]);
  });
});

test('gateway report: addresses with ports and two roots in one text -> each of them; what makes no sense is left out', () => {
  const data = {
    gateways: '203.0.113.7:15443, [2001:db9::7]:443,lb.example:443,10.0.0.1,10.0.0.1:0',
    trustRoots: `${root}\n${root}\n`,
  };
  expect(readGatewayReport({ data })).toEqual({
    gateways: [
      { address: '203.0.113.7', port: 15443 },
      { address: '2001:db9::7', port: 443 },
    ],
    trustRoots: [root, root],
  });
});

describe('reported gateways', () => {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'portolan-gateway' },
    spec: { type: 'LoadBalancer', ports: [{ port: 15443 }] },
    status: { loadBalancer: { ingress: [{ ip: '203.0.113.9' }, { hostname: 'lb.example' }, { ip: '203.0.113.8' }] } },
  } as Service;
  const given = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x' },
    data: { gateways: '198.51.100.1:443' },
  };

  test('reported gateways: a LoadBalancer Service -> its addresses, no names', () => {
    expect(reportedGateways(undefined, service).gateways).toEqual([
      { address: '203.0.113.8', port: 15443 },
      { address: '203.0.113.9', port: 15443 },
    ]);
  });

  test('reported gateways: people gave some -> those alone', () => {
    expect(reportedGateways(given, service).gateways).toEqual([{ address: '198.51.100.1', port: 443 }]);
  });

  test('reported gateways: a Service of another type, or none -> none', () => {
    const other = { ...service, spec: { ...service.spec, type: 'ClusterIP' } } as Service;
    expect(reportedGateways(undefined, other).gateways).toEqual([]);
    expect(reportedGateways(undefined, undefined)).toEqual({ gateways: [], trustRoots: [] });
  });
});
