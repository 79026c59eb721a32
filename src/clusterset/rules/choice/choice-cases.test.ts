// The table of cases by the rule itself and by the model written apart from it. `npm run check:choice` runs it through every data plane.

import { describe, expect, test } from 'vitest';
import { oneNetwork } from '../networks/networks.ts';
import type { Answering } from './answering.ts';
import { type Candidate, choose } from './choose.ts';
import { tierOf } from './locality.ts';
import { type CaseEndpoints, type ChoiceCase, casePlaces, caseSelf, readChoiceCases } from './testing/choice-case.ts';
import { modelShares } from './testing/share-model.ts';

const cases = readChoiceCases();

interface Endpoint extends Candidate {
  readonly label: string;
  readonly id: string;
  readonly state: CaseEndpoints['state'];
}

function endpointsOf({ endpoints }: ChoiceCase): Endpoint[] {
  return endpoints.flatMap(({ label, cluster, zone, state, count }) =>
    Array.from({ length: state === 'port' ? 0 : count }, (_, index) => {
      return { label, cluster, state, id: `${label} ${index}`, ...(zone && { zone }) };
    }),
  );
}

const isReady = ({ state }: Endpoint) => state !== 'unready' && state !== 'draining';
const from = { cluster: caseSelf, ...casePlaces[caseSelf] };
const clusters = new Map(Object.entries(casePlaces));

function byRule(given: ChoiceCase, answering?: Answering<Endpoint>): Map<string, number> {
  const all = endpointsOf(given);
  const chooser = {
    ...{ from, networks: oneNetwork, gatewayProblem: () => undefined, routing: given.routing, answering },
    locality: { preference: given.isNearestFirst ? 'NearestFirst' : 'Spread', clusters } as const,
    trafficDistribution: undefined,
  };
  const unready = all.filter((each) => !isReady(each));
  return percents(
    choose(all.filter(isReady), chooser, unready).lots.flatMap(({ share, endpoints }) =>
      endpoints.map(({ label }) => [label, share / endpoints.length] as const),
    ),
  );
}

function percents(parts: Iterable<readonly [string, number]>): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [label, part] of parts) sums.set(label, (sums.get(label) ?? 0) + 100 * part);
  return new Map([...sums].map(([label, sum]) => [label, Math.round(10 * sum) / 10]));
}

const answering: Answering<Endpoint> = {
  silentSinceMs: ({ state }) => (state === 'dead' ? 1 : undefined),
  hasAnsweredLately: ({ state }) => state !== 'dead',
};

describe('table of choices', () => {
  test('it has the cases that were asked for, each once', () => {
    expect(cases.length).toBeGreaterThanOrEqual(120);
    expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length);
    for (const { wanted, wantedOfNames } of cases)
      for (const each of [wanted, wantedOfNames])
        expect([...each.values()].reduce((a, b) => a + b)).toBeCloseTo(100, 0);
  });

  test.each(cases.map((each) => [each.title, each] as const))('%s -> as wanted', (_title, given) => {
    expect(byRule(given, answering)).toEqual(given.wanted);
    expect(byRule(given)).toEqual(given.wantedOfNames);
  });

  test.each(
    cases
      .filter(({ endpoints }) => !endpoints.some(({ state }) => state === 'dead'))
      .map((each) => [each.title, each] as const),
  )('%s -> as the model says', (_title, given) => {
    const zoneOf = ({ cluster, zone }: Endpoint) => ({ ...clusters.get(cluster)!, ...(zone && { zone }) });
    const all = endpointsOf(given);
    const endpoints = all.map((each) => ({
      ...{ id: each.id, cluster: each.cluster, isReady: isReady(each) },
      tier: given.isNearestFirst ? tierOf(from, { cluster: each.cluster, ...zoneOf(each) }) : 0,
    }));
    const labels = new Map(all.map(({ id, label }) => [id, label]));
    const shares = modelShares(endpoints, given.routing);
    expect(percents([...shares].map(([id, share]) => [labels.get(id)!, share] as const))).toEqual(given.wanted);
  });
});
