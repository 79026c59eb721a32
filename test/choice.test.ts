// A few cases of the table of choices by names, a real kernel, a real Envoy and real gRPC clients; `npm run check:choice` runs all of them
// with 20,000 connections each. Needs root.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readChoiceCases } from '../src/clusterset/rules/choice/testing/choice-case.ts';
import { placeCase } from './choice/objects.ts';
import { compare, planeNames, planeOf } from './choice/planes.ts';
import { Stage } from './choice/stage.ts';
import { pathOf } from './support/counterparts.ts';
import { namespacesMissing } from './support/namespaces.ts';

const titles = [
  'weights: three groups, other endpoints',
  'fallback: for the old one',
  'rest: the nearest have it',
  'shift: over weights',
  'port: the group does not have it',
  'dead: the first of an order',
  'dead: one of two, another cluster',
];
const count = 1500;
/** The one in Python is left to the command. */
const planes = planeNames.filter((name) => name !== 'grpcio');
/** Six deviations of a half of so many. */
const pointsMax = 8;

const why = namespacesMissing() || (pathOf('envoy') === undefined ? ' (needs envoy)' : '');

describe.skipIf(why !== '')(`one choice by every data plane${why}`, () => {
  const cases = readChoiceCases()
    .map(placeCase)
    .filter(({ title }) => titles.includes(title));
  let stage: Stage;

  beforeAll(async () => {
    stage = new Stage();
    await stage.start(cases);
  }, 200_000);

  afterAll(() => stage?.stop());

  test('names, kernel, Envoy and gRPC -> the same endpoints, and parts as in the table', async () => {
    expect(cases).toHaveLength(titles.length);
    const found = await Promise.all(
      planes.map(async (name) => {
        const plane = planeOf(name, stage);
        const bad: string[] = [];
        for (const placed of cases.filter((each) => plane.knows?.(each) !== false)) {
          const counts = await plane.ask(placed, count);
          const { wrong, points } = compare(placed, counts, plane);
          if (wrong.length > 0 || points > pointsMax)
            bad.push(`${plane.name}, ${placed.title}: ${wrong.join(', ')} ${JSON.stringify(counts)}`);
        }
        return bad;
      }),
    );
    expect(found.flat()).toEqual([]);
  }, 400_000);
});
