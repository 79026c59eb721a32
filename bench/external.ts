// `npm run bench:external`: overlaps among 50,000 ranges, and Envoy's resources of 1,000 external services before and after
// one more. Prints a table; --json FILE keeps it.

import { parseRange } from '../src/base/ip.ts';
import { findOverlaps } from '../src/external/rules/overlaps.ts';
import type { Rule } from '../src/external/rules/rule.ts';
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

const overlaps = measure(() => findOverlaps(ranges, []).length);
const added = measure(() => generate(1001));
report('external services', [
  {
    name: 'overlaps among 50,000 ranges, median',
    value: overlaps.medianMs,
    unit: 'ms',
    wanted: 'about a second',
    isMet: overlaps.medianMs < 1500,
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
