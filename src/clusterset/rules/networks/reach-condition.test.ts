import { describe, expect, test } from 'vitest';
import type { ClusterReach } from './networks.ts';
import { clustersReached, type ReachFacts } from './reach-condition.ts';

const open: ClusterReach = {
  network: 'aws',
  gateways: [{ address: '203.0.113.1', port: 15443 }],
  trustRoots: ['pem'],
  listenerPort: 15_200,
};
const facts = (more: Partial<ReachFacts> = {}, south: Partial<ClusterReach> = {}): ReachFacts => ({
  networks: { own: 'default', clusters: new Map([['south', { ...open, ...south }]]) },
  clusters: ['east', 'south'],
  ports: [{ port: 80, protocol: 'TCP' }],
  source: 'allocate',
  otherAddress: new Set(),
  unreachedFrom: new Map(),
  gatewayChecks: new Map(),
  ...more,
});

describe('clusters reached', () => {
  test('clusters reached: no cluster of the import is in another network -> no condition', () => {
    expect(clustersReached(facts({ clusters: ['east', 'north'] }))).toBeUndefined();
  });

  const cases: [situation: string, given: ReachFacts, status: string, message: string][] = [
    ['a gateway', facts(), 'True', 'east: directly; south: through a gateway of network aws'],
    [
      'no gateway',
      facts({}, { gateways: [], problem: 'no gateway published' }),
      'False',
      'east: directly; south: not reached, it is in network aws: no gateway published',
    ],
    [
      'no trust root',
      facts({}, { trustRoots: [], problem: 'no trust root published' }),
      'False',
      'east: directly; south: not reached, it is in network aws: no trust root published',
    ],
    [
      'a UDP port beside a TCP port',
      facts({
        ports: [
          { port: 53, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
      }),
      'False',
      'east: directly; south: through a gateway of network aws, UDP port 53 is not carried between networks, unless a ServiceImportPolicy has udp: Any',
    ],
    [
      'only UDP',
      facts({ ports: [{ port: 53, protocol: 'UDP' }] }),
      'False',
      'east: directly; south: not reached, it is in network aws: UDP port 53 is not carried between networks, unless a ServiceImportPolicy has udp: Any',
    ],
    [
      'UDP that a policy wants carried',
      facts({
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 123, protocol: 'UDP' },
        ],
        udp: [{ cluster: 'south', port: 53, listenerPort: 15_200 }],
      }),
      'False',
      'east: directly; south: through a gateway of network aws, UDP port 123 is not carried between networks: all 100 ways for UDP are taken',
    ],
    [
      'all UDP ports carried',
      facts({
        ports: [{ port: 53, protocol: 'UDP' }],
        udp: [{ cluster: 'south', port: 53, listenerPort: 15_200 }],
      }),
      'True',
      'east: directly; south: through a gateway of network aws',
    ],
    [
      'UDP of a headless service, and SCTP',
      facts({
        source: 'none',
        beyondBounds: new Map([['south', 0]]),
        ports: [
          { port: 53, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
          { port: 9, protocol: 'SCTP' },
        ],
        udp: [],
      }),
      'False',
      'east: directly; south: through a gateway of network aws, UDP port 53 is not carried between networks for headless services, SCTP port 9 is not carried between networks',
    ],
    [
      'headless, with endpoints there',
      facts({ source: 'none', endpoints: new Map([['south', 3]]) }),
      'False',
      'east: directly; south: not reached, it is in network aws: the import has no address, and the endpoints of another network have none here; 3 ready endpoints are not reached',
    ],
    [
      'a policy that wants direct connections alone',
      facts({ excluded: { clusters: new Set(['south']), by: 'ServiceImportPolicy near' } }),
      'True',
      'east: directly; south: not used, it is in network aws: left out by ServiceImportPolicy near',
    ],
    [
      'another clusterset address there',
      facts({ otherAddress: new Set(['south']) }),
      'True',
      'east: directly; south: through a gateway of network aws, asked by name: it has another clusterset address for this service',
    ],
    [
      'a headless service',
      facts({ source: 'none' }),
      'False',
      'east: directly; south: not reached, it is in network aws: the import has no address, and the endpoints of another network have none here',
    ],
    [
      'a headless service whose endpoints have addresses here',
      facts({ source: 'none', beyondBounds: new Map([['south', 0]]) }),
      'True',
      'east: directly; south: through a gateway of network aws',
    ],
    [
      'a headless service with more endpoints than have addresses here',
      facts({ source: 'none', beyondBounds: new Map([['south', 2]]) }),
      'False',
      'east: directly; south: through a gateway of network aws, 2 ready endpoints are not reached: 100 of a headless service in one cluster have addresses here, while the range has some',
    ],
    [
      'a headless service where no proxy runs',
      facts({ source: 'none', beyondBounds: new Map([['south', 0]]), isWithoutProxy: true }),
      'False',
      'east: directly; south: not reached, it is in network aws: its endpoints have virtual addresses here, and no portolan proxy carries them: run one on each node',
    ],
    [
      'a derived Service',
      facts({ source: 'derived' }),
      'False',
      'east: directly; south: not reached, it is in network aws: the address of the import is that of a derived Service, whose data plane does not use gateways',
    ],
    [
      'a gateway that answers when it is tried',
      facts({ gatewayChecks: new Map([['south', '']]) }),
      'True',
      'east: directly; south: through a gateway of network aws',
    ],
    [
      'a gateway that refuses us',
      facts({ gatewayChecks: new Map([['south', 'gateway 203.0.113.1:15443: it refuses our certificate']]) }),
      'False',
      'east: directly; south: not reached, it is in network aws: gateway 203.0.113.1:15443: it refuses our certificate',
    ],
    [
      'nodes without an Envoy',
      facts({ unreachedFrom: new Map([['south', ['n1', 'n2']]]) }),
      'False',
      'east: directly; south: through a gateway of network aws, not from nodes n1, n2, where no Envoy accepts connections to it',
    ],
  ];
  for (const [situation, given, status, message] of cases) {
    test(`clusters reached: ${situation} -> ${status}, and says so for each cluster`, () => {
      expect(clustersReached(given)).toMatchObject({ type: 'ClustersReached', status, message });
    });
  }

  test('clusters reached: hundreds of clusters and nodes -> a bounded message', () => {
    const clusters = Array.from({ length: 500 }, (_, i) => `c${i}`);
    const nodes = Array.from({ length: 5000 }, (_, i) => `node-${i}`);
    const networks = { own: 'default', clusters: new Map(clusters.map((id) => [id, open])) };
    const unreachedFrom = new Map(clusters.map((id) => [id, nodes]));
    expect(clustersReached(facts({ clusters, networks, unreachedFrom }))!.message.length).toBeLessThan(32_768);
  });
});
