// A node leaves endpoints that are called ready and do not answer: network namespaces, real packets, three ways at the same time.
// Needs root. The long run is `npm run check:verdicts`.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { namespacesMissing } from './support/namespaces.ts';
import { SilentWorld, type Way } from './support/silent-clusters.ts';

const why = namespacesMissing();

describe.skipIf(why !== '')(`endpoints that do not answer${why}`, () => {
  let world: SilentWorld;

  beforeAll(async () => {
    world = new SilentWorld();
    await world.start();
  });

  afterAll(() => world?.stop());

  test.concurrent('clients that close early and a Pod whose egress is forbidden -> nothing is left', async () => {
    const { left, reports } = await world.calm(5);
    expect(left).toEqual([]);
    const [pod, early, barred] = reports;
    expect(pod!.failures).toEqual({});
    expect(Object.keys(early!.answers)).toContain('closed early');
    expect(Object.keys(barred!.failures)).toEqual(['timeout']);
  });

  test.concurrent.each([
    ['drop', [1, 2]],
    ['black hole', [1]],
    ['reset', [2]],
  ] as [Way, number[]][])('%s of endpoints %j -> left, and used again when they answer', async (way, failing) => {
    const { leftMs, backMs, report } = await world.fail(way, failing);
    console.log(
      `${way} of ${failing.length}: left after ${leftMs} ms, used again ${backMs} ms after, ${JSON.stringify(report)}`,
    );
    expect(leftMs).toBeLessThan(15_000);
    if (way !== 'reset') expect(report.failures).toEqual({});
  });
});
