import { describe, expect, test } from 'vitest';
import type { FederatedService } from '../kinds/federated-service.ts';
import {
  formatProblems,
  type MemberPlacement,
  parseProblems,
  placedClusters,
  placementCondition,
} from './placement.ts';

const template = { spec: { ports: [{ port: 80 }] } };

function federated(clusters?: string[]): FederatedService {
  const spec = { template, ...(clusters && { clusters }) };
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'FederatedService', metadata: { name: 'a.shop' }, spec };
}

function member(cluster: string, more: Partial<MemberPlacement> = {}): MemberPlacement {
  return { cluster, isAlive: true, hasShard: true, problem: undefined, ...more };
}

describe('placement', () => {
  test('placement: no clusters named -> one line per member, in their order', () => {
    const clusters = placedClusters(federated(), [member('east'), member('west', { hasShard: false })]);
    expect(clusters).toEqual([
      { cluster: 'east', state: 'Placed' },
      { cluster: 'west', state: 'Pending', message: 'not exported there yet' },
    ]);
    expect(placementCondition(clusters)).toMatchObject({
      status: 'False',
      reason: 'Pending',
      message: 'placed in 1 of 2 clusters; west: not exported there yet',
    });
  });

  test('placement: a member that says it refused -> refused, whatever it exports under that name', () => {
    const problem = { state: 'Refused', message: 'no' } as const;
    expect(placedClusters(federated(['east']), [member('east', { problem })])).toEqual([
      { cluster: 'east', ...problem },
    ]);
  });

  test('placement: a member whose lease ran out -> what it was when last heard of, and said so', () => {
    const clusters = placedClusters(federated(), [
      member('east', { isAlive: false }),
      member('west', { isAlive: false, hasShard: false }),
    ]);
    expect(clusters.map(({ state, message }) => `${state} ${message}`)).toEqual([
      'Placed its lease has expired; this is the last known state',
      'Pending its lease has run out',
    ]);
  });

  test('placement: a cluster that is no member -> pending, and why', () => {
    expect(placedClusters(federated(['mars']), [member('east')])).toEqual([
      { cluster: 'mars', state: 'Pending', message: 'no such cluster is a member of the clusterset' },
    ]);
  });

  test('placement: placed everywhere, or refused somewhere -> the condition counts and names the refusal first', () => {
    const placed = (cluster: string) => ({ cluster, state: 'Placed' }) as const;
    expect(placementCondition([placed('a'), placed('b')])).toMatchObject({
      status: 'True',
      reason: 'Placed',
      message: 'placed in 2 clusters',
    });
    const refused = { cluster: 'c', state: 'Refused', message: 'no' } as const;
    const pending = { cluster: 'b', state: 'Pending', message: 'soon' } as const;
    expect(placementCondition([placed('a'), pending, refused])).toMatchObject({
      status: 'False',
      reason: 'Refused',
      message: 'placed in 1 of 3 clusters; c: no (and 1 more)',
    });
  });

  test('problems: written and read -> the same; none -> nothing is written', () => {
    const problems = new Map([['a.shop', { state: 'Refused', message: 'because' } as const]]);
    expect(parseProblems(formatProblems(problems))).toEqual(problems);
    const longest = new Map([['a.shop', { state: 'Pending', message: 'x'.repeat(256) } as const]]);
    expect(parseProblems(formatProblems(longest))).toEqual(longest);
    expect(formatProblems(new Map())).toBeUndefined();
  });

  test.each([
    '',
    '[]',
    '7',
    'null',
    '{"a.shop":["Placed","lies"]}',
    '{"a.shop":["Refused",7]}',
    '{"a.shop":null}',
    '{',
  ])('problems: %s, written by another -> left out', (text) => {
    expect(parseProblems(text).size).toBe(0);
  });

  test('problems: a thousand long ones -> a lease stays small, written or read', () => {
    const many = Array.from({ length: 1000 }, (_, index) => [`s${index}.shop`, ['Refused', 'x'.repeat(999)]] as const);
    const problems = parseProblems(JSON.stringify(Object.fromEntries(many)));
    expect(problems.size).toBe(50);
    expect(formatProblems(problems)!.length).toBeLessThan(16 * 1024);
    expect(problems.get('s0.shop')!.message).toBe(`${'x'.repeat(253)}...`);
  });
});
