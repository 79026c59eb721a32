import { expect, test } from 'vitest';
import type { Cluster, ClusterSpec } from '../../kinds/cluster.ts';
import { readHomeAccess } from './home-access.ts';
import { accessData, openAccess, readAccess, setAccessOf } from './set-access.ts';

const cluster = (name: string, spec: Partial<ClusterSpec> = {}): Cluster => {
  return { metadata: { name }, spec: { namespace: name, ...spec } } as Cluster;
};
const members = [
  cluster('east', { sourceRanges: ['10.1.0.0/16'] }),
  cluster('west', { sourceRanges: ['10.2.0.0/16'] }),
  cluster('north', { sourceRanges: null }),
  cluster('far', { network: 'other', sourceRanges: ['10.2.0.0/16'] }),
];
const input = { members, self: 'east', joinedPodRanges: ['10.1.0.0/17'] };

test.each([
  ['Open', {}, 'Open'],
  ['Open', { access: 'Exported' }, 'Exported'],
  ['Exported', { access: 'Open' }, 'Exported'],
  ['Audit', { access: 'Exported' }, 'Exported'],
  ['Exported', { access: 'Audit' }, 'Exported'],
  ['Open', { access: 'exported' }, 'Exported'],
] as const)('access: the set says %s and the home %j -> %s, the stricter one', (mode, data, expected) => {
  expect(setAccessOf({ ...input, mode, home: readHomeAccess({ data }) }).mode).toBe(expected);
});

test('access: members of this network -> their sources, also of one without; other networks and this cluster have none', () => {
  const { sources, podRanges } = setAccessOf({ ...input, mode: 'Exported', home: readHomeAccess(undefined) });
  expect([...sources]).toEqual([
    ['north', []],
    ['west', ['10.2.0.0/16']],
  ]);
  expect(podRanges).toEqual(['10.1.0.0/17']);
});

test('access: Pod ranges of the home -> those, whatever the broker has', () => {
  const home = readHomeAccess({ data: { podRanges: '10.9.0.0/16, fd09::/64,nonsense', closedRanges: '10.0.0.0/8' } });
  expect(setAccessOf({ ...input, mode: 'Exported', home })).toMatchObject({
    podRanges: ['10.9.0.0/16', 'fd09::/64'],
    closedRanges: ['10.0.0.0/8'],
  });
  expect(home.problems).toEqual(['ConfigMap portolan-access: podRanges "nonsense" is no range']);
});

test('access: written and read -> the same; open -> nothing is written', () => {
  const access = setAccessOf({ ...input, mode: 'Audit', home: readHomeAccess(undefined) });
  expect(readAccess({ data: accessData(access) })).toEqual(access);
  expect(accessData(openAccess)).toEqual({});
  expect(readAccess({ data: {} })).toEqual(openAccess);
});

test.each([
  [undefined],
  [{}],
  [{ data: { access: '{' } }],
  [{ data: { access: '[]' } }],
  [{ data: { access: '{"mode":"open","sources":{}}' } }],
  [{ data: { access: '{"mode":"Exported","sources":7}' } }],
])('access: %j -> not read, so that what was read before holds', (written) => {
  expect(readAccess(written)).toBeUndefined();
});

test('access: lists of other types -> empty', () => {
  const text = '{"mode":"Exported","sources":{"west":null,"south":[7,"10.3.0.0/16"]},"podRanges":3}';
  expect(readAccess({ data: { access: text } })).toMatchObject({
    sources: new Map([
      ['west', []],
      ['south', ['10.3.0.0/16']],
    ]),
    podRanges: [],
  });
});
