import { describe, expect, test } from 'vitest';
import { createTestApi, type TestApi } from '../testing/test-api.ts';

const text = { type: 'string' };
const short = { type: 'string', maxLength: 40 };
const whole = { type: 'integer' };

function definition(spec: object, root: object = {}): object {
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', ...spec } }, ...root };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const things = '/apis/example.com/v1/namespaces/default/things';
const merge = { 'content-type': 'application/merge-patch+json' };

async function withRules(spec: object, root?: object): Promise<TestApi> {
  const api = await createTestApi();
  await api.ok(`POST ${definitions}`, definition(spec, root));
  await api.api.whenIdle();
  return api;
}

function thing(spec: object): object {
  return { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a' }, spec };
}

/** `ok`, or what is wrong with the object. */
async function written(api: TestApi, spec: object): Promise<string> {
  const { status, body } = await api.send(`POST ${things}`, thing(spec));
  return status === 201 ? 'ok' : body.message.replace('Thing.example.com "a" is invalid: ', '');
}

async function refused(spec: object): Promise<string> {
  const { send } = await createTestApi();
  const { status, body } = await send(`POST ${definitions}`, definition(spec));
  if (status === 201) return 'ok';
  const before = 'CustomResourceDefinition.apiextensions.k8s.io "things.example.com" is invalid: ';
  return body.message.replace(before, '').replaceAll('spec.versions[0].schema.openAPIV3Schema.properties[spec]', '~');
}

const limits = {
  properties: {
    min: whole,
    max: whole,
    name: short,
    tags: { type: 'array', maxItems: 10, items: short },
    list: { type: 'array', maxItems: 10, items: { type: 'object', properties: { name: short } } },
  },
};

describe('cel: rules of a definition', () => {
  test.each<[string, object, object, string]>([
    ['self.min <= self.max', {}, { min: 1, max: 2 }, 'ok'],
    [
      'self.min <= self.max',
      {},
      { min: 3, max: 2 },
      'spec: Invalid value: "object": failed rule: self.min <= self.max',
    ],
    [
      'self.min <= self.max',
      { message: 'min is above max' },
      { min: 3, max: 2 },
      'spec: Invalid value: "object": min is above max',
    ],
    [
      'self.min <= self.max',
      { message: 'm', messageExpression: '"min is " + string(self.min)' },
      { min: 3, max: 2 },
      'spec: Invalid value: "object": min is 3',
    ],
    [
      'self.min <= self.max',
      { message: 'm', messageExpression: 'self.name' },
      { min: 3, max: 2 },
      'spec: Invalid value: "object": m',
    ],
    [
      'self.min <= self.max',
      { message: 'm', reason: 'FieldValueForbidden', fieldPath: '.min' },
      { min: 3, max: 2 },
      'spec.min: Forbidden: m',
    ],
    [
      'has(self.name)',
      { message: 'name it', reason: 'FieldValueRequired', fieldPath: '.name' },
      {},
      'spec.name: Required value: name it',
    ],
    ['self.min > 0', {}, {}, 'spec: Invalid value: "object": No such key: min evaluating rule: self.min > 0'],
    ['!has(self.name) || self.name.matches("^[a-z]+$")', {}, { name: 'ok' }, 'ok'],
    [
      '!has(self.name) || self.name.matches("^[a-z]+$")',
      {},
      { name: 'NO' },
      expect.stringContaining('failed rule') as never,
    ],
    ['self.tags.all(t, t.startsWith("x")) && self.tags.isSorted()', {}, { tags: ['xa', 'xb'] }, 'ok'],
    [
      'self.tags.all(t, t.startsWith("x")) && self.tags.isSorted()',
      {},
      { tags: ['xb', 'xa'] },
      expect.stringContaining('failed rule') as never,
    ],
    ['self.?name.orValue("none") == "none"', {}, {}, 'ok'],
    ['has(self.list[0].name) && !has(self.list[self.list.size() - 1].name)', {}, { list: [{ name: 'a' }, {}] }, 'ok'],
    ['size(self.tags) == 2 && self.tags.exists_one(t, t == "a")', {}, { tags: ['a', 'b'] }, 'ok'],
  ])('%s %j with %j -> %s', async (rule, more, spec, outcome) => {
    const api = await withRules({ ...limits, 'x-kubernetes-validations': [{ rule, ...more }] });
    expect(await written(api, spec)).toEqual(outcome);
  });

  test('rules of several fields -> all errors at once, each at its field', async () => {
    const item = {
      type: 'object',
      properties: { port: whole },
      'x-kubernetes-validations': [{ rule: 'self.port > 0', message: 'positive' }],
    };
    const named = {
      type: 'object',
      maxProperties: 5,
      additionalProperties: { ...short, 'x-kubernetes-validations': [{ rule: 'self != "no"' }] },
    };
    const api = await withRules({ properties: { ports: { type: 'array', maxItems: 10, items: item }, named } });
    expect(await written(api, { ports: [{ port: 1 }, { port: 0 }], named: { a: 'no' } })).toBe(
      '[spec.ports[1]: Invalid value: "object": positive, spec.named[a]: Invalid value: "string": failed rule: self != "no"]',
    );
  });

  test('a rule of the whole object -> sees its kind and its name, no other metadata', async () => {
    const rule = { rule: 'self.kind == "Thing" && self.metadata.name == self.spec.name', message: 'named otherwise' };
    const api = await withRules({ properties: { name: short } }, { 'x-kubernetes-validations': [rule] });
    expect(await written(api, { name: 'b' })).toBe('<nil>: Invalid value: "object": named otherwise');
    expect(await written(api, { name: 'a' })).toBe('ok');
    const hidden = { 'x-kubernetes-validations': [{ rule: 'self.metadata.labels.size() > 0' }] };
    const { send } = await createTestApi();
    const { body } = await send(`POST ${definitions}`, definition({ properties: { name: short } }, hidden));
    expect(body.message).toContain("compilation failed: undefined field 'labels'");
  });

  test('oldSelf -> run on updates alone; items are found by their keys; optionalOldSelf -> on creates too', async () => {
    const item = {
      type: 'object',
      required: ['name'],
      properties: { name: short, size: whole },
      'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'must not shrink' }],
    };
    const keyed = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };
    const api = await withRules({
      properties: {
        fixed: { ...short, 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }] },
        list: { type: 'array', maxItems: 5, items: item, ...keyed },
        first: {
          ...whole,
          'x-kubernetes-validations': [{ rule: 'oldSelf.hasValue() || self == 1', optionalOldSelf: true }],
        },
      },
    });
    const list = [
      { name: 'x', size: 3 },
      { name: 'y', size: 1 },
    ];
    expect(await written(api, { first: 2 })).toContain('spec.first: Invalid value: "integer": failed rule');
    expect(await written(api, { fixed: 'a', list, first: 1 })).toBe('ok');
    const change = async (spec: object) => (await api.send(`PATCH ${things}/a`, { spec }, merge)).body;
    expect((await change({ first: 7 })).spec.first).toBe(7);
    expect((await change({ fixed: 'b' })).message).toContain('spec.fixed: Invalid value: "string": is immutable');
    const turned = [
      { name: 'y', size: 2 },
      { name: 'x', size: 2 },
    ];
    const { message } = await change({ list: turned });
    expect(message).toContain('spec.list[1]: Invalid value: "object": must not shrink');
    expect(message).not.toContain('spec.list[0]');
  });

  test('an object older than a rule that it breaks -> may change elsewhere', async () => {
    const api = await withRules({ properties: { a: whole, b: whole } });
    expect(await written(api, { a: 1, b: 1 })).toBe('ok');
    const a = { ...whole, 'x-kubernetes-validations': [{ rule: 'self > 5' }] };
    const schema = (definition({ properties: { a, b: whole } }) as { spec: object }).spec;
    await api.ok(`PATCH ${definitions}/things.example.com`, { spec: schema }, merge);
    await api.api.whenIdle();
    const change = (spec: object) => api.send(`PATCH ${things}/a`, { spec }, merge);
    expect((await change({ b: 2 })).status).toBe(200);
    expect((await change({ a: 2 })).body.message).toContain('spec.a: Invalid value: "integer": failed rule: self > 5');
  });
});

describe('cel: what is refused with the definition', () => {
  const at = '~.x-kubernetes-validations[0]';
  const list = { type: 'array', items: { type: 'object', properties: { a: text } } };

  test.each<[string, object, string]>([
    [
      'an unknown field',
      { rule: 'self.nope == 1' },
      `${at}.rule: Invalid value: "self.nope == 1": compilation failed: undefined field 'nope'`,
    ],
    [
      'other types',
      { rule: 'self.min > "a"' },
      `${at}.rule: Invalid value: "self.min > \\"a\\"": compilation failed: no such overload: int > string`,
    ],
    [
      'no expression',
      { rule: 'self.min >' },
      expect.stringContaining(`${at}.rule: Invalid value: "self.min >": compilation failed: Syntax error: `) as never,
    ],
    ['no bool', { rule: 'self.min' }, `${at}.rule: Invalid value: "self.min": must evaluate to a bool`],
    ['nothing', { rule: ' ' }, `${at}.rule: Required value: rule is not specified`],
    [
      'a pattern that is none',
      { rule: 'self.name.matches("(")' },
      expect.stringContaining('compilation failed: error parsing regexp') as never,
    ],
    [
      'a message that is no text',
      { rule: 'true', messageExpression: 'self.min' },
      `${at}.messageExpression: Invalid value: "self.min": must evaluate to a string`,
    ],
    [
      'a message in two lines',
      { rule: 'true', message: 'a\nb' },
      `${at}.message: Invalid value: "a\\nb": message must not contain line breaks`,
    ],
    [
      'an unknown reason',
      { rule: 'true', reason: 'Why' },
      expect.stringContaining(`${at}.reason: Unsupported value: "Why"`) as never,
    ],
    [
      'a path that leads nowhere',
      { rule: 'true', fieldPath: '.x' },
      `${at}.fieldPath: Invalid value: ".x": fieldPath must be a valid path: does not refer to a valid field`,
    ],
    [
      'optionalOldSelf without oldSelf',
      { rule: 'true', optionalOldSelf: true },
      `${at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
    ],
  ])('%s -> said with its field', async (_what, rule, outcome) => {
    expect(await refused({ ...limits, 'x-kubernetes-validations': [rule] })).toEqual(outcome);
  });

  test('no expression, where the schema leaves open what the value is -> refused as well', async () => {
    const open = { type: 'object', 'x-kubernetes-validations': [{ rule: 'self = 42' }] };
    expect(await refused({ properties: { open } })).toContain('compilation failed: Syntax error: ');
  });

  test('oldSelf where items cannot be found again -> refused', async () => {
    const items = {
      type: 'object',
      properties: { a: whole },
      'x-kubernetes-validations': [{ rule: 'self.a == oldSelf.a' }],
    };
    expect(await refused({ properties: { list: { type: 'array', maxItems: 3, items } } })).toContain(
      'oldSelf cannot be used on the uncorrelatable portion of the schema',
    );
  });

  test('a loop in a loop over lists without bounds -> too costly; with bounds -> taken', async () => {
    const rule = { rule: 'self.list.all(x, self.list.exists(y, y.a == x.a))' };
    expect(await refused({ properties: { list }, 'x-kubernetes-validations': [rule] })).toBe(
      `${at}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
    );
    const bounded = { type: 'array', maxItems: 20, items: { type: 'object', properties: { a: short } } };
    expect(await refused({ properties: { list: bounded }, 'x-kubernetes-validations': [rule] })).toBe('ok');
  });

  test('texts without bounds that are times -> taken; compared in a loop -> too costly', async () => {
    const two = { properties: { one: text, other: text, tags: { type: 'array', maxItems: 100, items: text } } };
    const times = { rule: 'duration(self.one) <= duration(self.other)' };
    expect(await refused({ ...two, 'x-kubernetes-validations': [times] })).toBe('ok');
    const api = await withRules({ ...two, 'x-kubernetes-validations': [times] });
    expect(await written(api, { one: '2h', other: '1h' })).toContain('failed rule');
    const loop = { rule: 'self.tags.all(t, t.contains(self.one))' };
    expect(await refused({ ...two, 'x-kubernetes-validations': [loop] })).toContain(
      'estimated rule cost exceeds budget',
    );
  });

  test('a text that doubles again and again -> too costly', async () => {
    let ordered = 'x30.size() > 0';
    for (let n = 30; n > 1; n--) ordered = `cel.bind(x${n}, x${n - 1} + x${n - 1}, ${ordered})`;
    ordered = `cel.bind(x1, self.name + self.name, ${ordered})`;
    expect(await refused({ ...limits, 'x-kubernetes-validations': [{ rule: ordered }] })).toContain(
      'estimated rule cost exceeds budget',
    );
  });

  test('an object larger than a rule may cost -> refused in short time, with the rule', async () => {
    const many = { type: 'array', maxItems: 2000, items: short };
    const rule = { rule: 'self.many.all(x, self.many.exists(y, y == x))', message: 'all in all' };
    const { send } = await createTestApi();
    const { status } = await send(
      `POST ${definitions}`,
      definition({ properties: { many }, 'x-kubernetes-validations': [rule] }),
    );
    expect(status).toBe(422);
    const api = await withRules({
      properties: { many: { ...many, maxItems: 800 } },
      'x-kubernetes-validations': [rule],
    });
    const values = Array.from({ length: 800 }, (_, n) => `value-${n}`);
    expect(await written(api, { many: values })).toBe(
      'spec: Invalid value: "object": call cost exceeds limit: all in all',
    );
    expect(await written(api, { many: values.slice(0, 20) })).toBe('ok');
  });

  test('a function of Kubernetes that is not here -> taken with a warning that says where', async () => {
    const { send } = await createTestApi();
    const spec = { ...limits, 'x-kubernetes-validations': [{ rule: 'isIP(self.name)' }] };
    const { status, headers } = await send(`POST ${definitions}`, definition(spec));
    expect(status).toBe(201);
    expect(headers['warning']).toContain('not enforced by this server: isIP() in');
  });

  test('a pattern that makes others search without end -> answered at once', async () => {
    const name = { type: 'string', maxLength: 4000 };
    const api = await withRules({
      properties: { name },
      'x-kubernetes-validations': [{ rule: '!self.name.matches("^(a+)+$")' }],
    });
    expect(await written(api, { name: `${'a'.repeat(3000)}!` })).toBe('ok');
  });
});
