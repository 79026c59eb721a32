import { expect, test } from 'vitest';
import type { PairReach } from '../../clusterset/rules/networks/pairs.ts';
import type { TraceFacts } from './facts.ts';
import { traceSteps } from './steps.ts';

const mark = { at: undefined, detail: 'there' };
const exporter = (cluster: string) => ({
  ...{ cluster, home: { why: 'not asked' }, record: { ...mark, ready: 1 }, leftOut: '' },
});

function factsWith(pairs: readonly PairReach[]): TraceFacts {
  return {
    ...{ service: 'shop/web', from: 'west', exporters: [exporter('east')], merged: mark },
    importer: {
      value: {
        import: { ...mark, clusters: ['east'] },
        slices: new Map([['east', { ...mark, ready: 1 }]]),
        answers: [],
        pairs,
        carried: { ...mark, isReady: true },
        connections: [],
      },
    },
  };
}

const hopsIn = (pairs: readonly PairReach[]) => traceSteps(factsWith(pairs)).filter(({ step }) => step === 'hop');

test('trace: clusters in other networks -> a hop to each that exports the service, and to no other', () => {
  const pair = { way: 'gateway', text: 'through gateway 203.0.113.1:15443 of network aws', isWell: true } as const;
  expect(
    hopsIn([
      { ...pair, cluster: 'east' },
      { ...pair, cluster: 'south' },
    ]),
  ).toEqual([{ step: 'hop', where: 'west, to east', state: 'ok', at: undefined, detail: pair.text, next: '' }]);
  expect(hopsIn([])).toEqual([]);
});

test('trace: a cluster whose gateway does not answer -> the trace stops at the hop, and names the next step', () => {
  const text = 'not at all, it is in network aws: no answer';
  expect(hopsIn([{ cluster: 'east', way: 'none', text, isWell: false }])).toMatchObject([
    { state: 'stopped', detail: text, next: 'portolan doctor explains PTL0905' },
  ]);
});
