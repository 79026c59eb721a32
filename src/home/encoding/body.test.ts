import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, widgetDefinition } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const services = '/api/v1/namespaces/default/services';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';
const yaml = { 'content-type': 'application/yaml' };

describe('field validation', () => {
  const wrong =
    '{"metadata":{"name":"s","nope":1},"spec":{"ports":[{"port":80,"prot":"x"}],"ports":[{"port":81,"prot":"x"}]},"extra":{}}';
  const found = [
    'unknown field "metadata.nope"',
    'unknown field "spec.ports[0].prot"',
    'unknown field "extra"',
    'duplicate field "spec.ports"',
  ];

  test('Strict -> 400 that lists every unknown and every repeated field', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${services}?fieldValidation=Strict`, wrong);
    expect([status, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toMatch(/^Service in version "v1" cannot be handled as a Service: strict decoding error: /);
    for (const text of found) expect(body.message).toContain(text);
  });

  test.each(['', '?fieldValidation=Warn'])('Warn, also by default (%s) -> done, with a Warning each', async (query) => {
    const { send } = await createTestApi();
    const { status, headers, body } = await send(`POST ${services}${query}`, wrong);
    expect(status).toBe(201);
    for (const text of found) expect(headers['warning']).toContain(`299 - "${text.replaceAll('"', '\\"')}"`);
    expect(body.spec.ports[0]).toMatchObject({ port: 81 });
    expect(body).not.toHaveProperty('extra');
  });

  test('Ignore -> done without a word; anything else -> 422', async () => {
    const { send } = await createTestApi();
    const { status, headers } = await send(`POST ${services}?fieldValidation=Ignore`, wrong);
    expect([status, headers['warning']]).toEqual([201, undefined]);
    expect((await send(`POST ${services}?fieldValidation=Maybe`, wrong)).status).toBe(422);
  });

  test('of a custom kind, also in updates and patches', async () => {
    const { ok, send } = await createTestApi({ definitions: [widgetDefinition()] });
    const made = await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    const odd = { ...made, spec: { size: 2, weight: 3 } };
    expect((await send(`PUT ${widgets}/w?fieldValidation=Strict`, odd)).body.message).toContain(
      'unknown field "spec.weight"',
    );
    const merge = { 'content-type': 'application/merge-patch+json' };
    const patched = await send(`PATCH ${widgets}/w?fieldValidation=Strict`, { spec: { weight: 3 } }, merge);
    expect([patched.status, patched.body.message]).toEqual([
      400,
      expect.stringContaining('unknown field "spec.weight"'),
    ]);
  });
});

describe('content types', () => {
  test.each([
    ['a long list', `x:\n${'- a\n'.repeat(700_000)}`],
    ['a long list in brackets', `x: [${'a,'.repeat(1_400_000)}]`],
    ['many anchors and aliases', Array.from({ length: 5000 }, (_, at) => `- &a${at} x\n- *a${at}\n`).join('')],
  ])('YAML that takes long to read: %s -> 413 at once, and a word to use JSON', async (_, text) => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${maps}`, text, yaml);
    expect([status, body.reason]).toEqual([413, 'RequestEntityTooLarge']);
    expect(body.message).toContain('send it as JSON');
  });

  test('YAML with a long text in it -> taken, its lines are one value', async () => {
    const { ok } = await createTestApi();
    const text = `metadata: {name: long}\ndata:\n  a: |\n${'    one line of many\n'.repeat(20_000)}`;
    expect((await ok(`POST ${maps}`, text, yaml)).data.a.length).toBe(340_000);
  });

  test('YAML of two documents -> 400, one object is asked for', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${maps}`, 'metadata: {name: a}\n---\nmetadata: {name: b}\n', yaml);
    expect([status, body.message]).toEqual([400, expect.stringContaining('more than one document')]);
  });

  test('YAML nested without end -> 400', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${maps}`, `a: ${'['.repeat(100_000)}`, yaml);
    expect([status, body.message]).toEqual([400, expect.stringContaining('256 levels deep')]);
  });

  test('YAML -> the same as JSON', async () => {
    const { ok } = await createTestApi();
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  a: "1"\n  b: |\n    two\n    lines\n';
    expect((await ok(`POST ${maps}`, text, yaml)).data).toEqual({ a: '1', b: 'two\nlines\n' });
  });

  test('YAML with repeated keys -> told with the line', async () => {
    const { send } = await createTestApi();
    const { body } = await send(`POST ${maps}?fieldValidation=Strict`, 'metadata:\n  name: a\n  name: b\n', yaml);
    expect(body.message).toContain('line 3: key "name" already set in map');
  });

  test.each([
    ['broken YAML', 'a: [', 'not valid YAML'],
    ['aliases that multiply', bomb(), 'not valid YAML'],
    ['YAML that is no object', '- a', 'not an object'],
    ['an alias of itself', 'metadata: &a\n  name: x\n  annotations: *a\n', ''],
  ])('%s -> 400, in little time', async (_what, text, message) => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${maps}`, text, yaml);
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)]);
  });

  test.each([
    ['application/json; charset=utf-8', 201],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/cbor', 415],
  ])('%s -> %i', async (type, status) => {
    const { send } = await createTestApi();
    const reply = await send(`POST ${maps}`, configMap('a'), { 'content-type': type });
    expect(reply.status).toBe(status);
    if (status === 415) {
      expect(reply.body.message).toBe(
        'the media type of the body is not known here; accepted are application/json, application/yaml, application/vnd.kubernetes.protobuf',
      );
    }
  });

  test('protobuf -> taken for a built-in kind, 415 for a custom one, 400 if it is broken', async () => {
    const { send } = await createTestApi({ definitions: [widgetDefinition()] });
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' };
    const made = await send('POST /api/v1/namespaces', namespaceInProtobuf('team'), type);
    expect([made.status, made.body.metadata.name]).toEqual([201, 'team']);
    expect((await send(`POST ${widgets}`, namespaceInProtobuf('w'), type)).status).toBe(415);
    expect((await send(`POST ${maps}`, Buffer.from('k8s\0garbage'), type)).status).toBe(400);
  });

  test('too large -> 413', async () => {
    const { send } = await createTestApi({ limits: { bodyBytesMax: 1000 } });
    const { status, body } = await send(`POST ${maps}`, configMap('a', { k: 'x'.repeat(1000) }));
    expect([status, body.reason, body.message]).toEqual([
      413,
      'RequestEntityTooLarge',
      'Request entity too large: limit is 1000',
    ]);
  });

  test.each([
    ['lists', '['.repeat(200_000)],
    ['objects', '{"a":'.repeat(200_000)],
    ['closed lists', `{"data":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
  ])('nested too deeply: %s -> 400', async (_what, text) => {
    const { send } = await createTestApi();
    const { status, body } = await send(`POST ${maps}`, text);
    expect([status, body.message]).toEqual([400, expect.stringContaining('nested more than')]);
  });
});

function bomb(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let level = 1; level < 9; level++)
    lines.push(
      `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    );
  return lines.join('\n');
}

/** k8s\0, then runtime.Unknown { typeMeta { apiVersion, kind }, raw: Namespace { metadata { name } } }. */
function namespaceInProtobuf(name: string): Buffer {
  const field = (number: number, value: Buffer) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), value]);
  const text = (number: number, value: string) => field(number, Buffer.from(value));
  const typeMeta = Buffer.concat([text(1, 'v1'), text(2, 'Namespace')]);
  const raw = field(1, text(1, name));
  return Buffer.concat([Buffer.from('k8s\0'), field(1, typeMeta), field(2, raw)]);
}
