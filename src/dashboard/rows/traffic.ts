// What the map and the totals show of traffic: a row for each cluster whose proxies are asked. Pure.

import type { RateRow, TrafficRow } from '../wire/rows.ts';
import type { Traffic } from '../wire/views.ts';

const targetsShownMax = 200;
const servicesShownMax = 30;

/** `why` has the clusters that were asked, each with the reason for which not all of it is known. */
export function trafficRows(all: Iterable<Traffic>, why: ReadonlyMap<string, string>): TrafficRow[] {
  const sums = new Map<string, Sum>([...why.keys()].map((id) => [id, newSum()]));
  for (const one of all) {
    const sum = sums.get(one.from) ?? newSum();
    sums.set(one.from, sum);
    sum.connections += one.tried;
    sum.failed += Math.max(0, one.tried - one.answered);
    for (const rates of [sum.rates, rateOf(sum.to, one.to), rateOf(sum.services, one.service)]) {
      rates.perSecond += one.perSecond;
      rates.failedPerSecond += one.failedPerSecond;
    }
  }
  return [...sums].map(([id, { connections, failed, rates, to, services }]) => ({
    id,
    why: why.get(id) ?? '',
    connections,
    failed,
    ...rounded(rates),
    to: busiest(to, targetsShownMax),
    services: busiest(services, servicesShownMax),
  }));
}

interface Rates {
  perSecond: number;
  failedPerSecond: number;
}

interface Sum {
  connections: number;
  failed: number;
  readonly rates: Rates;
  readonly to: Map<string, Rates>;
  readonly services: Map<string, Rates>;
}

function newSum(): Sum {
  return { connections: 0, failed: 0, rates: newRates(), to: new Map(), services: new Map() };
}

function newRates(): Rates {
  return { perSecond: 0, failedPerSecond: 0 };
}

function rateOf(rates: Map<string, Rates>, id: string): Rates {
  const found = rates.get(id) ?? newRates();
  rates.set(id, found);
  return found;
}

function busiest(rates: ReadonlyMap<string, Rates>, shownMax: number): RateRow[] {
  return [...rates]
    .filter(([, { perSecond }]) => perSecond >= 0.05)
    .sort(([a, x], [b, y]) => y.perSecond - x.perSecond || (a < b ? -1 : 1))
    .slice(0, shownMax)
    .map(([id, one]) => ({ id, ...rounded(one) }));
}

/** A digit that says nothing would be a message to every page. */
export function rounded({ perSecond, failedPerSecond }: Rates): Rates {
  return { perSecond: round(perSecond), failedPerSecond: round(failedPerSecond) };
}

function round(value: number): number {
  if (value < 0.05) return 0;
  const step = value < 10 ? 0.1 : value < 1_000 ? 1 : 10 ** (Math.floor(Math.log10(value)) - 2);
  return Number((Math.round(value / step) * step).toFixed(1));
}
