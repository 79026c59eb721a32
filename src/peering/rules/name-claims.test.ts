import { expect, test } from 'vitest';
import { NameClaims } from './name-claims.ts';

test('names: two owners claim one name -> the older keeps it, the other has its alias, both are told', () => {
  const claims = new NameClaims();
  expect(claims.set({ key: 'a db', names: ['db.x', 'db.a.peers'], sinceMs: 1 })).toEqual([]);
  expect(claims.set({ key: 'b db', names: ['db.x', 'db.b.peers'], sinceMs: 2 })).toEqual(['a db']);
  expect(claims.verdict('a db')).toEqual({
    hostnames: ['db.x', 'db.a.peers'],
    lost: [],
    contested: [{ name: 'db.x', others: ['b db'] }],
  });
  expect(claims.verdict('b db')).toEqual({
    hostnames: ['db.b.peers'],
    lost: [{ name: 'db.x', holder: 'a db' }],
    contested: [],
  });
});

test('names: the older one goes, or changes its name -> the other gets it', () => {
  const claims = new NameClaims();
  claims.set({ key: 'a', names: ['n'], sinceMs: 1 });
  claims.set({ key: 'b', names: ['n'], sinceMs: 2 });
  expect(claims.set({ key: 'a', names: ['m'], sinceMs: 1 })).toEqual(['b']);
  expect(claims.verdict('b').hostnames).toEqual(['n']);
  claims.set({ key: 'a', names: ['n'], sinceMs: 1 });
  expect(claims.verdict('b').hostnames).toEqual([]);
  expect(claims.remove('a')).toEqual(['b']);
  expect(claims.verdict('b')).toEqual({ hostnames: ['n'], lost: [], contested: [] });
});

test('names: the order of arrival does not matter, age does', () => {
  const claims = new NameClaims();
  claims.set({ key: 'young', names: ['n'], sinceMs: 9 });
  expect(claims.set({ key: 'old', names: ['n'], sinceMs: 1 })).toEqual(['young']);
  expect(claims.verdict('old').hostnames).toEqual(['n']);
});
