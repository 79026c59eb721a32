import { describe, expect, test } from 'vitest';
import { endpointSliceType } from '../objects/endpoint-slice.ts';
import type { KubernetesObject } from '../objects/object.ts';
import { parseWithoutNulls, withLists } from './foreign.ts';

describe('foreign objects', () => {
  test.each([
    ['{"a":1}', { a: 1 }],
    ['{"ports":null,"spec":{"x":null,"y":[{"z": null,"w":1}]}}', { spec: { y: [{ w: 1 }] } }],
    ['{"text":"a:null b"}', { text: 'a:null b' }],
    ['{"list":[null,1]}', { list: [null, 1] }],
    ['null', null],
  ])('foreign objects: %s -> null is absent', (text, value) => expect(parseWithoutNulls(text)).toEqual(value));

  test('foreign objects: a slice without its lists -> empty ones; a kind without such lists -> as it is', () => {
    const slice = parseWithoutNulls('{"metadata":{"name":"a"},"endpoints":null,"ports":null}') as KubernetesObject;
    expect(withLists(endpointSliceType, slice)).toMatchObject({ endpoints: [], ports: [] });
    const { lists: _lists, ...plain } = endpointSliceType;
    expect(withLists(plain, { apiVersion: 'v1', kind: 'X', metadata: { name: 'a' } })).not.toHaveProperty('endpoints');
  });
});
