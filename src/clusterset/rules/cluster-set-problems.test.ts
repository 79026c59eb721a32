import { describe, expect, test } from 'vitest';
import { clusterSetProblems, clusterSetWarnings } from './cluster-set-problems.ts';

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
