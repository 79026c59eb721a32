import { describe, expect, test } from 'vitest';
import type { ClusterReach } from './networks.ts';
import { type PairFacts, pairsFrom } from './pairs.ts';

const open: ClusterReach = {
  network: 'aws',
  gateways: [{ address: '203.0.113.1', port: 15443 }],
  trustRoots: ['pem'],
  listenerPort: 15_200,
};
const facts = (more: Partial<PairFacts> = {}, south: Partial<ClusterReach> = {}): PairFacts => ({
  self: 'west',
  clusters: ['east', 'south', 'west'],
  networks: { own: 'lab', clusters: new Map([['south', { ...open, ...south }]]) },
  gatewayChecks: new Map([['south', '']]),
  unreachedFrom: new Map(),
  ...more,
});

describe('pairs', () => {
  test('pairs: all clusters share one network -> nothing to say', () => {
    expect(pairsFrom(facts({ networks: { own: 'default', clusters: new Map() } }))).toEqual([]);
  });

  test('pairs: one cluster here and one elsewhere -> one directly, one through its gateway, never itself', () => {
    expect(pairsFrom(facts())).toEqual([
      { cluster: 'east', way: 'directly', text: 'directly, both are in network lab', isWell: true },
      { cluster: 'south', way: 'gateway', text: 'through gateway 203.0.113.1:15443 of network aws', isWell: true },
    ]);
  });

  test.each<[string, PairFacts, 'gateway' | 'none', boolean, string]>([
    [
      'no gateway published',
      facts({}, { gateways: [], problem: 'no gateway published' }),
      ...(['none', false, 'not at all, it is in network aws: no gateway published'] as const),
    ],
    [
      'tried, and refused',
      facts({ gatewayChecks: new Map([['south', 'gateway 203.0.113.1:15443: it refuses our certificate']]) }),
      ...([
        'none',
        false,
        'not at all, it is in network aws: gateway 203.0.113.1:15443: it refuses our certificate',
      ] as const),
    ],
    [
      'an agent that knows no networks',
      facts({ older: new Set(['south']) }, { gateways: [], problem: 'no gateway published' }),
      ...([
        'none',
        false,
        'not at all, it is in network aws: no gateway published; its agent is of a release that knows no networks: upgrade it',
      ] as const),
    ],
    [
      'nodes without an Envoy',
      facts({ unreachedFrom: new Map([['south', ['n1', 'n2']]]) }),
      ...([
        'gateway',
        false,
        'through gateway 203.0.113.1:15443 of network aws, but not from n1, n2: no Envoy there carries connections to it',
      ] as const),
    ],
    [
      'nobody has tried',
      facts({ gatewayChecks: new Map() }),
      ...([
        'gateway',
        true,
        'through gateway 203.0.113.1:15443 of network aws (no xDS server of this cluster has tried it)',
      ] as const),
    ],
  ])('pairs: %s -> said so', (_situation, given, way, isWell, text) => {
    expect(pairsFrom(given).find(({ cluster }) => cluster === 'south')).toEqual({
      cluster: 'south',
      way,
      text,
      isWell,
    });
  });
});
