import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseIp } from '../../../base/net/ip.ts';
import { problemsOfSources, sourceProblemsOf } from './source-problems.ts';
import { formatSpan, judgeSources } from './sources.ts';

const texts = (input: Parameters<typeof judgeSources>[0]) =>
  judgeSources(input).spans.map((span) => `${formatSpan(span)} ${span.cluster || '?'}`);

test.each<[what: string, sources: Record<string, string[]>, own: string[], expected: string[]]>([
  [
    'one range each',
    { west: ['10.2.0.0/16'], south: ['10.3.0.0/16', 'fd03::/64'] },
    [],
    ['10.2.0.0-10.2.255.255 west', '10.3.0.0-10.3.255.255 south', 'fd03::-fd03::ffff:ffff:ffff:ffff south'],
  ],
  ['a single address', { west: ['192.0.2.7/32'] }, [], ['192.0.2.7 west']],
  [
    'a range inside that of another -> the shared part belongs to neither',
    { west: ['10.2.0.0/16'], south: ['10.2.128.0/17'] },
    [],
    ['10.2.0.0-10.2.127.255 west', '10.2.128.0-10.2.255.255 ?'],
  ],
  [
    'a range around our own Pods -> those stay our own',
    { west: ['10.0.0.0/14'] },
    ['10.1.0.0/16'],
    ['10.0.0.0-10.0.255.255 west', '10.2.0.0-10.3.255.255 west'],
  ],
  ['the same range twice', { west: ['10.2.0.0/16', '10.2.0.0/17', '10.2.0.0/16'] }, [], ['10.2.0.0-10.2.255.255 west']],
  ['neighbours of one cluster', { west: ['10.2.0.0/17', '10.2.128.0/17'] }, [], ['10.2.0.0-10.2.255.255 west']],
  [
    'everything',
    { west: ['0.0.0.0/0', '::/0'] },
    [],
    ['0.0.0.0-255.255.255.255 west', '::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff west'],
  ],
])('sources: %s -> disjoint spans', (_what, sources, own, expected) => {
  expect(texts({ sources: new Map(Object.entries(sources)), own })).toEqual(expected);
});

test('sources: a cluster without ranges, one with none that is valid, and overlaps -> each is named', () => {
  const sources = new Map([
    ['north', []],
    ['odd', ['10.300.0.0/16']],
    ['west', ['10.2.0.0/16']],
    ['south', ['10.2.1.0/24']],
  ]);
  const judged = judgeSources({ sources, own: ['10.2.1.0/25'] });
  expect([judged.withoutRanges, judged.invalid]).toEqual([['north', 'odd'], ['odd 10.300.0.0/16']]);
  const problems = problemsOfSources(judged).map(({ reason, message }) => `${reason}: ${message}`);
  expect(problems[0]).toContain('NoSourceRanges: no source ranges of north, odd');
  expect(problems[1]).toContain('10.2.1.0-10.2.1.127 of south, west lies in the Pod ranges of this cluster');
  expect(problems[2]).toContain('10.2.1.128-10.2.1.255 belongs to south, west');
  expect(problems[3]).toContain('InvalidRanges: no range: odd 10.300.0.0/16');
});

test('sources: the same ranges in two networks -> no overlap; a null list -> none', () => {
  const cluster = (name: string, network: string, sourceRanges: string[] | null) => {
    return { apiVersion: '', kind: '', metadata: { name }, spec: { namespace: name, network, sourceRanges } };
  };
  expect(sourceProblemsOf([cluster('a', 'x', ['10.0.0.0/8']), cluster('b', 'y', ['10.0.0.0/8'])])).toEqual([]);
  const reasons = (clusters: ReturnType<typeof cluster>[]) => sourceProblemsOf(clusters).map(({ reason }) => reason);
  expect(reasons([cluster('a', 'x', ['10.0.0.0/8']), cluster('b', 'x', ['10.0.0.0/8'])])).toEqual([
    'OverlappingRanges',
  ]);
  expect(reasons([cluster('a', 'x', null)])).toEqual(['NoSourceRanges']);
});

test('sources: random ranges -> every address belongs to the one cluster that claims it, to none of several', () => {
  const range = fc
    .tuple(fc.nat(255), fc.nat(255), fc.integer({ min: 20, max: 32 }))
    .map(([c, d, len]) => `10.0.${c}.${d}/${len}`);
  const ranges = fc.array(range, { maxLength: 4 });
  fc.assert(
    fc.property(
      ranges,
      ranges,
      ranges,
      fc.array(fc.tuple(fc.nat(255), fc.nat(255)), { maxLength: 30 }),
      (a, b, own, at) => {
        const { spans } = judgeSources({
          sources: new Map([
            ['a', a],
            ['b', b],
          ]),
          own,
        });
        for (const [c, d] of at) {
          const value = parseIp(`10.0.${c}.${d}`)!.value;
          const claims = (texts: readonly string[]) =>
            texts.some((text) => {
              const [base, length] = text.split('/') as [string, string];
              const shift = 32n - BigInt(length);
              return parseIp(base)!.value >> shift === value >> shift;
            });
          const found = spans.filter((span) => span.family === 'IPv4' && span.first <= value && value <= span.last);
          const [inA, inB] = [claims(a), claims(b)];
          const expected = claims(own) || (!inA && !inB) ? [] : [inA && inB ? '' : inA ? 'a' : 'b'];
          expect(found.map(({ cluster }) => cluster)).toEqual(expected);
        }
      },
    ),
    { numRuns: 300 },
  );
});
