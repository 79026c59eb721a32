import { expect, test } from 'vitest';
import { claimFor } from '../../addresses/claim.ts';
import { silentLog } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { ProxyState } from '../state.ts';
import { emptyViewInput, viewOf } from '../view.ts';
import { Judge } from './judge.ts';
import type { ProbeRequest, ProbeResult } from './paths.ts';

const numbers = { http: 8080, grpc: 9000 } as const;

/** A service of two ports with an endpoint in east, where the client is, and one in west. */
function stateOf(trafficDistribution?: string): ProxyState {
  const ranges = [parseRange('243.0.0.0/8')!];
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'east' }));
  const ports = [
    { name: 'http', port: 80 },
    { name: 'grpc', port: 81 },
  ];
  state.facts.upsertServiceImport({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.1'], ports, trafficDistribution },
  } as unknown as ServiceImport);
  for (const [index, cluster] of ['east', 'west'].entries())
    state.facts.upsertEndpointSlice({
      metadata: {
        name: `web-${cluster}`,
        namespace: 'shop',
        labels: {
          'multicluster.kubernetes.io/service-name': 'web',
          'multicluster.kubernetes.io/source-cluster': cluster,
        },
      },
      addressType: 'IPv4',
      ports: Object.entries(numbers).map(([name, port]) => ({ name, protocol: 'TCP', port })),
      endpoints: [{ addresses: [`10.${index + 1}.0.1`] }],
    } as unknown as EndpointSlice);
  state.addresses.upsertClaim(claimFor({ kind: 'ServiceImport', namespace: 'shop', name: 'web' }, '243.0.0.1'));
  state.takeDirty();
  return state;
}

function judgeOf(state: ProxyState, answer: (request: ProbeRequest) => ProbeResult) {
  let nowMs = 1_000;
  const probed: ProbeRequest[] = [];
  const judge = new Judge({
    world: {
      clock: { wallMs: () => nowMs, monotonicMs: () => nowMs },
      timers: { after: () => ({ cancel: () => {} }) },
    },
    log: silentLog,
    state,
    probe: async (request) => {
      probed.push(request);
      return answer(request);
    },
    lookSoon: () => {},
    onChange: () => {},
  });
  state.setAnswering(judge);
  const look = async (to: string, counts: { tried: number; answered: number; refused: number }) => {
    nowMs += 500;
    judge.counted(new Map([[`243.0.0.1 ${to}`, counts]]));
    await new Promise(setImmediate);
  };
  return { judge, look, probed };
}

const refused = { tried: 9, answered: 0, refused: 9 };
const clustersOf = (state: ProxyState) =>
  state.choiceOf('shop/web').ports.map(({ port, backends }) => `${port} ${backends.map(({ cluster }) => cluster)}`);

test('a near endpoint refuses on one of two ports, and nobody talks to the far one -> it is probed on that port, and takes over there', async () => {
  for (const [name, left] of [
    ['http', ['80 west', '81 east']],
    ['grpc', ['80 east', '81 west']],
  ] as const) {
    const state = stateOf('PreferClose');
    const dead = { address: '10.1.0.1', port: numbers[name] };
    const { look } = judgeOf(state, ({ address, port }) =>
      address === dead.address && port === dead.port ? 'unanswered' : { tookMs: 1, isSecond: false },
    );
    for (let i = 0; i < 6; i += 1) await look(`${dead.address} ${dead.port}`, refused);
    expect(clustersOf(state)).toEqual(left);
  }
});

test('an endpoint is left, then probed again -> for long, since its cluster may be farther away than it was', async () => {
  const state = stateOf();
  const { look, probed } = judgeOf(state, ({ address }) =>
    address === '10.2.0.1' ? 'unanswered' : { tookMs: 1, isSecond: false },
  );
  const silent = { tried: 9, answered: 0, refused: 0 };
  for (let i = 0; i < 12; i += 1) await look(`10.2.0.1 ${numbers.http}`, silent);
  expect(clustersOf(state)).toEqual(['80 east', '81 east,west']);
  const waits = probed.filter(({ address }) => address === '10.2.0.1').map(({ waitMs }) => waitMs);
  expect(waits.length).toBeGreaterThan(2);
  expect([waits[0], waits.at(-1)]).toEqual([2_000, 3_000]);
});
