// Names that every JavaScript object answers to are names like any other: as keys, as types, as methods, in paths.

import { describe, expect, test } from 'vitest';
import { createTestApi, widgetDefinition } from './testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const secrets = '/api/v1/namespaces/default/secrets';

describe.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('the name %s', (name) => {
  const one = (value: unknown) => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`);

  test('as a key of data -> kept, also by a patch', async () => {
    const { ok } = await createTestApi();
    const made = await ok(`POST ${maps}`, { metadata: { name: 'm' }, data: one('x') });
    expect(JSON.stringify(made.data)).toBe(JSON.stringify(one('x')));
    const patch = { 'content-type': 'application/merge-patch+json' };
    const patched = await ok(`PATCH ${maps}/m`, JSON.stringify({ data: one('y') }), patch);
    expect(JSON.stringify(patched.data)).toBe(JSON.stringify(one('y')));
  });

  test('as a key of stringData, beside others -> kept', async () => {
    const { ok } = await createTestApi();
    const body = { metadata: { name: 's' }, data: { a: 'YQ==' }, stringData: one('x') };
    const made = await ok(`POST ${secrets}`, body);
    expect(Object.entries(made.data)).toEqual([
      ['a', 'YQ=='],
      [name, 'eA=='],
    ]);
  });

  test('as the type of a Secret, a method, a subresource, a field selector -> known for what it is', async () => {
    const { ok, send } = await createTestApi({ definitions: [widgetDefinition()] });
    expect((await ok(`POST ${secrets}`, { metadata: { name: 's' }, type: name })).type).toBe(name);
    expect((await send(`${name} ${maps}`)).status).toBe(405);
    await ok(`POST ${maps}`, { metadata: { name: 'm' } });
    expect((await send(`POST ${maps}/m/${name}`, {})).status).toBe(404);
    expect((await send(`GET ${maps}?fieldSelector=${name}=x`)).status).toBe(400);
    expect((await ok(`GET ${maps}?labelSelector=app,!nope`)).items).toEqual([]);
  });
});
