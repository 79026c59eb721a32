import { describe, expect, test } from 'vitest';
import { findOutside, findOverlaps, type NamedRange } from './range-overlap.ts';

const range = (text: string): NamedRange => {
  const [kind, cidr, cluster] = text.split(' ') as [NamedRange['kind'], string, string];
  return { kind, cidr, whose: `${kind} of ${cluster}` };
};

describe('ranges at join', () => {
  const cases: [string, string, boolean, boolean][] = [
    ['pods 10.1.0.0/16 a', 'pods 10.1.128.0/17 b', false, true],
    ['pods 10.1.0.0/16 a', 'pods 10.2.0.0/16 b', false, false],
    ['pods 10.1.0.0/16 a', 'services 10.1.0.0/24 b', false, true],
    ['services 10.96.0.0/12 a', 'services 10.96.0.0/12 b', false, false],
    ['services 10.96.0.0/12 a', 'services 10.96.0.0/12 b', true, true],
    ['services 10.96.0.0/12 a', 'allowed 10.96.0.0/12 b', false, false],
    ['services 10.96.0.0/12 a', 'allowed 10.96.0.0/12 b', true, true],
    ['pods 10.1.0.0/16 a', 'allowed 10.0.0.0/8 b', false, true],
    ['services 243.1.0.0/16 a', 'virtual 243.0.0.0/12 set', false, true],
    ['pods fd00:1::/64 a', 'pods fd00::/16 b', false, true],
    ['pods ::/0 a', 'pods 10.0.0.0/8 b', false, false],
  ];
  test.each(cases)(
    'ranges: %s beside %s, services published %s -> overlap %s',
    (one, other, areServicesPublished, isRefused) => {
      const problems = findOverlaps({ own: [range(one)], others: [range(other)], areServicesPublished });
      expect(problems.length > 0).toBe(isRefused);
    },
  );

  test('ranges: what overlaps -> both are named', () => {
    const own = [range('pods 10.1.0.0/16 a'), range('services 10.1.2.0/24 a')];
    const others = [range('pods 10.0.0.0/8 b')];
    expect(findOverlaps({ own, others, areServicesPublished: false })).toEqual([
      '10.1.0.0/16 (pods of a) overlaps 10.1.2.0/24 (services of a)',
      '10.1.0.0/16 (pods of a) overlaps 10.0.0.0/8 (pods of b)',
      '10.1.2.0/24 (services of a) overlaps 10.0.0.0/8 (pods of b)',
    ]);
  });

  test('ranges: those that lie in no allowed range -> named; nothing said is everything allowed', () => {
    const own = [range('pods 10.1.0.0/16 a'), range('pods 10.2.0.0/16 a'), range('pods 10.0.0.0/8 a')];
    expect(findOutside(own, ['10.1.0.0/16', '10.2.0.0/15']).map(({ cidr }) => cidr)).toEqual(['10.0.0.0/8']);
    expect(findOutside(own, [])).toEqual([]);
  });
});
