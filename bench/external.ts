// `npm run bench:external`: overlaps among 50,000 ranges, one change of a service among 1,000 and among 10,000, and Envoy's
// resources of 1,000 external services before and after one more. Prints a table; --json FILE keeps it.

import { parseRange } from '../src/base/net/ip.ts';
import { OverlapIndex } from '../src/external/rules/overlaps.ts';
import type { Rule } from '../src/external/rules/rule.ts';
import { ServiceIndex } from '../src/external/rules/service-index.ts';
import { externalService } from '../src/external/testing/services.ts';
import { externalResources } from '../src/xds/external/generate.ts';
import { testInput } from '../src/xds/external/testing/agreement.ts';
import { makeEntry } from '../src/xds/view/entry.ts';
import { report } from './report.ts';

const ranges = Array.from({ length: 50_000 }, (_, i): Rule => {
  const cidr = `${10 + (i % 40)}.${(i >> 3) % 256}.${(i >> 7) % 256}.${(i % 16) * 16}/${i % 100 === 0 ? 16 : 28}`;
  const resource = { origin: 'home', name: `s${i}`, createdMs: i } as const;
  return { resource, index: 0, port: 443, protocol: 'tls', match: { kind: 'range', range: parseRange(cidr)! } };
});

const services = Array.from({ length: 1001 }, (_, i) =>
  externalService(
    `{ match: [{ type: Domain, value: s${i}.example.com, port: 443, protocol: tls }, { type: CIDR, value: 10.${i >> 8}.${i % 256}.0/24, port: 9000 }] }`,
    { name: `s${i}` },
  ),
);

function generate(count: number): number {
  const resources = externalResources({ ...testInput, services: services.slice(0, count) });
  const listeners = resources.filter(({ type }) => type === 'listener').map(makeEntry);
  return listeners.reduce((bytes, { any }) => bytes + any.length, 0);
}

function measure(work: () => number): { medianMs: number; worstMs: number; result: number } {
  const times: number[] = [];
  let result = 0;
  for (let round = 0; round < 12; round += 1) {
    const startMs = performance.now();
    result = work();
    if (round >= 2) times.push(performance.now() - startMs);
  }
  times.sort((a, b) => a - b);
  return { medianMs: times[5]!, worstMs: times.at(-1)!, result };
}

const overlaps = measure(() => {
  const index = new OverlapIndex();
  index.add(ranges);
  return [...index.texts()].length;
});
/** Milliseconds of one change each: its names, its overlaps, and the status of it and of those that it touches. */
function changes(total: number): { p50: number; p99: number } {
  const match = (i: number, range: string) =>
    `{ match: [{ type: InternalVIP, value: s${i}.ext.local, port: 80, protocol: http }, { type: CIDR, value: ${range}, port: 9000 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`;
  const rangeOf = (i: number) => `10.${i >> 8}.${i % 256}.0/24`;
  const index = new ServiceIndex({
    ...{ generators: [], zones: ['cluster.local'], othersAt: () => [], pools: [] },
    ...{ place: testInput.place, plugins: testInput.plugins, secrets: testInput.secrets },
  });
  const ips = new Map(Array.from({ length: total }, (_, i) => [`s${i}.ext.local`, [`242.0.${i >> 8}.${i % 256}`]]));
  const held = { ips, exhausted: new Map() };
  const change = (i: number, range: string) => {
    const { services: touched } = index.set(`s${i}`, externalService(match(i, range), { name: `s${i}` }));
    for (const key of [`s${i}`, ...touched]) {
      index.hold(key, held);
      index.statusOf(key, held, { nowMs: 0, plane: { kind: 'unknown' } });
    }
  };
  for (let i = 0; i < total; i += 1) change(i, rangeOf(i));
  const times = Array.from({ length: 600 }, (_, round) => {
    const i = (round * 37) % total;
    const startMs = performance.now();
    // Into a neighbour's range, and back.
    change(i, round % 2 === 0 ? `10.${i >> 8}.${(i + 1) % 256}.0/25` : rangeOf(i));
    return performance.now() - startMs;
  });
  times.splice(0, 100);
  times.sort((a, b) => a - b);
  return { p50: times[250]!, p99: times[495]! };
}

const [few, many] = [changes(1000), changes(10_000)];
const added = measure(() => generate(1001));
report('external services', [
  {
    name: 'overlaps among 50,000 ranges, median',
    value: overlaps.medianMs,
    unit: 'ms',
    wanted: 'about a second',
    isMet: overlaps.medianMs < 1500,
  },
  { name: 'one change among 1,000 services, p50', value: few.p50, unit: 'ms' },
  { name: 'one change among 1,000 services, p99', value: few.p99, unit: 'ms' },
  { name: 'one change among 10,000 services, p50', value: many.p50, unit: 'ms' },
  { name: 'one change among 10,000 services, p99', value: many.p99, unit: 'ms' },
  {
    name: 'one change, p50 at 10,000 / at 1,000',
    value: many.p50 / few.p50,
    unit: '',
    wanted: 'independent of the total',
    isMet: many.p50 / few.p50 < 2,
  },
  { name: 'overlaps found', value: overlaps.result, unit: '' },
  {
    name: 'a rule added to 1,000 services, worst of 10',
    value: added.worstMs,
    unit: 'ms',
    wanted: 'under 500 ms',
    isMet: added.worstMs < 500,
  },
  { name: 'bytes of both listeners', value: added.result, unit: 'B' },
]);
