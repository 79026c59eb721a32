import { describe, expect, test } from 'vitest';
import { clusterIdProblem, clusterSetNameProblem, memberNamespace } from './broker-layout.ts';

describe('broker layout', () => {
  test.each([
    ['east', 'prod-m-east'],
    ['east.eu', 'prod-m-east-eu-x33c45e95bf'],
  ])('layout: the namespace of %s -> %s', (id, namespace) => {
    expect(memberNamespace('prod', id)).toBe(namespace);
  });

  test('layout: ids that differ by dots, dashes or their end -> different namespaces of at most 63 characters', () => {
    const ids = [
      'a.b',
      'a-b',
      'a--b',
      'a.b-x',
      'a-b.x',
      ...['x', 'y'].map((end) => `${'n'.repeat(60)}.${'m'.repeat(60)}${end}`),
    ];
    const names = ids.map((id) => memberNamespace('a-set-with-a-rather-long-name-of-forty-ch', id));
    expect(new Set(names).size).toBe(ids.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
  });

  test.each([
    ['east', undefined],
    ['east.eu-west', undefined],
    ['', 'must not be empty'],
    ['a.b.c', 'has more than two labels; write NAME or NAME.CONTEXT'],
    [`${'a'.repeat(31)}.${'b'.repeat(31)}`, undefined],
    [`${'a'.repeat(32)}.${'b'.repeat(31)}`, 'must be no more than 63 characters'],
    ['a'.repeat(64), 'must be no more than 63 characters'],
  ])('layout: cluster id %j -> %s', (id, problem) => {
    expect(clusterIdProblem(id)).toBe(problem);
  });

  test.each(['East', '-east', 'east.', 'ea_st', 'ea st', 'east/..'])('layout: cluster id %j -> refused', (id) => {
    expect(clusterIdProblem(id)).toBeTypeOf('string');
  });

  test('layout: a clusterset name that leaves no room for its members -> refused', () => {
    expect(clusterSetNameProblem('prod')).toBeUndefined();
    expect(clusterSetNameProblem('a'.repeat(41))).toBe('must be no more than 40 characters');
    expect(clusterSetNameProblem('a.b')).toBeTypeOf('string');
  });

  test.each(['default', 'kube-system', 'kube-public', 'portolan-system', 'prod-members', 'prod-m-east', 'prod-m'])(
    'layout: a clusterset called %s, a namespace of somebody else -> refused',
    (name) => {
      expect(clusterSetNameProblem(name)).toBeTypeOf('string');
    },
  );

  test.each(['m', 'm-1', 'prod-main', 'team-members-2', 'kubernetes'])(
    'layout: a clusterset called %s -> fine',
    (name) => {
      expect(clusterSetNameProblem(name)).toBeUndefined();
    },
  );
});
