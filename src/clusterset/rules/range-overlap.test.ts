import { describe, expect, test } from 'vitest';
import { clusterSetProblems, clusterSetWarnings, findOutside, findOverlaps, type NamedRange } from './range-overlap.ts';

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
    // The same beginning, and longer; another family; no range at all.
    const odd = ['10.0.0.0/15', 'fd00::/64', 'no range'].map((cidr) => range(`pods ${cidr} a`));
    expect(findOutside(odd, ['10.0.0.0/16', 'no range'])).toEqual(odd);
    expect(findOutside([range('pods fd00::/64 a')], ['10.0.0.0/8', 'fd00::/48'])).toEqual([]);
  });
});

const problemsOf = (clusterSet: string[]) => clusterSetProblems({ addressRanges: { clusterSet } }).join('\n');

describe('clusterset problems', () => {
  test('clusterset problems: defaults, and other sensible ranges -> none', () => {
    expect([...clusterSetProblems({}), ...clusterSetWarnings({})]).toEqual([]);
    expect(problemsOf(['198.18.0.0/15', 'fd00:9::/64'])).toBe('');
  });

  test.each([
    ['127.0.0.0/8', 'loopback'],
    ['0.0.0.0/0', 'unspecified'],
    ['169.254.1.0/24', 'link-local'],
    ['224.0.0.0/8', 'multicast'],
    ['::1/128', 'loopback'],
    ['fe80::/64', 'link-local'],
  ])('clusterset problems: clusterset IPs from %s -> refused as %s', (range, what) => {
    expect(problemsOf([range])).toContain(`range of clusterset IPs ${range} holds ${what} addresses; give another`);
  });

  test('clusterset problems: a part of loopback without localhost -> taken, with a note that it is for one machine', () => {
    expect(problemsOf(['127.100.0.0/16'])).toBe('');
    expect(problemsOf(['127.0.0.0/16'])).toContain('holds loopback addresses');
    const spec = { addressRanges: { clusterSet: ['127.100.0.0/16'] } };
    expect(clusterSetWarnings(spec)).toEqual([expect.stringContaining('only proxies in userspace mode serve them')]);
  });

  test('clusterset problems: two ranges of one family -> refused with both', () => {
    expect(problemsOf(['243.0.0.0/12', 'fd00:9::/64', '198.18.0.0/15'])).toBe(
      'range of clusterset IPs: 243.0.0.0/12 and 198.18.0.0/15 are both IPv4; give one of each family at most',
    );
  });

  test('clusterset problems: a lease shorter than two renewals -> refused with what would do; a short one -> a note', () => {
    const lease = (renewSeconds: number, durationSeconds: number) => ({ lease: { renewSeconds, durationSeconds } });
    expect(clusterSetProblems(lease(30, 10)).join()).toContain('let it last 60 s or more, better 90');
    expect(clusterSetProblems({ lease: { renewSeconds: 20 } }).join()).toContain('a lease of 30 s');
    expect(clusterSetProblems(lease(1, 4))).toEqual([]);
    expect(clusterSetWarnings(lease(1, 4)).join()).toContain('a lease of 4 s is shorter than it takes another replica');
    expect(clusterSetWarnings(lease(5, 16))).toEqual([]);
  });
});
