import { expect, test } from 'vitest';
import { Totals } from './totals.ts';
import { RateWindow, trafficPage } from './traffic-page.ts';

const place = { cluster: 'west', region: 'eu', zone: 'eu-1' };

test('traffic: connections come for a while and end -> rates of the last ten seconds, then none; sums stay', () => {
  const totals = new Totals();
  const window = new RateWindow(totals, 0);
  let nowMs = 0;
  // The wall clock is set back meanwhile: rates do not depend on it.
  const clock = { monotonicMs: () => nowMs, wallMs: () => 1_000_000 - nowMs };
  const state = { view: { self: { cluster: 'east', zone: 'eu-9' } } } as never;
  const denied = [
    { from: 'far', service: 'shop/secret', packets: 2, port: '80/tcp' },
    { from: 'far', service: 'shop/secret', packets: 3, port: '81/tcp' },
  ];
  const page = () => trafficPage({ node: 'n1', state, totals, window, clock, sinceMs: 0, denied });
  for (nowMs = 2_000; nowMs <= 20_000; nowMs += 2_000) {
    totals.add('shop/web', place, { tried: 10, answered: 10, sent: 500, received: 1000 });
    window.note(nowMs);
  }
  nowMs = 20_000;
  expect(page()).toMatchObject({
    ...{ node: 'n1', from: 'east', region: '', zone: 'eu-9', sinceMs: 0 },
    rows: [
      { service: 'shop/web', cluster: 'west', tried: 100, rates: { tried: 5, refused: 0, sent: 250, received: 500 } },
    ],
    places: [{ ...place, sent: 5_000, received: 10_000 }],
    denied: [{ from: 'far', service: 'shop/secret', packets: 5 }],
  });
  for (; nowMs < 40_000; nowMs += 2_000) window.note(nowMs);
  expect(page().rows[0]).toMatchObject({ tried: 100 });
  expect(page().rows[0]!.rates).toBeUndefined();
});
