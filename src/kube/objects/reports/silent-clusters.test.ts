import { describe, expect, test } from 'vitest';
import type { Lease } from '../lease.ts';
import { partAnnotations } from '../part-lease.ts';
import { formatSilent, readSilent, silentAnnotation, silentFrom } from './silent-clusters.ts';

const lease = (node: string, text?: string) =>
  ({
    metadata: {
      name: node,
      annotations: { [partAnnotations.node]: node, ...(text === undefined ? {} : { [silentAnnotation]: text }) },
    },
  }) as unknown as Lease;

describe('silent clusters', () => {
  test('written and read -> the same', () => {
    const report = new Map([['shop/web', new Map([['east', { left: 1, of: 2, sinceMs: 1_700_000_000_000 }]])]]);
    expect(readSilent(formatSilent(report))).toEqual(report);
  });

  test.each([
    '',
    'null',
    '[]',
    '{"a":null}',
    '{"a":{"b":[1,2]}}',
    '{"a":{"b":[2,1,3]}}',
    '{"a":{"b":[1,1,1e300]}}',
    '{"a":{"b":["1",1,1]}}',
  ])('nonsense %s -> nothing', (text) => expect(readSilent(text).size).toBe(0));

  test('all nodes have left a cluster as a whole -> all; one of two -> its own view; single endpoints -> nothing', () => {
    const whole = '{"shop/web":{"east":[2,2,100]}}';
    const agreed = silentFrom([lease('b', whole), lease('a', '{"shop/web":{"east":[2,2,160]}}')]);
    expect(agreed.get('shop/web')!.get('east')).toEqual({ nodes: ['a', 'b'], isAll: true, sinceMs: 160_000 });
    expect(
      silentFrom([lease('a', whole), lease('b')])
        .get('shop/web')!
        .get('east'),
    ).toMatchObject({ isAll: false });
    expect(silentFrom([lease('a', '{"shop/web":{"east":[1,2,100]}}')]).size).toBe(0);
  });
});
