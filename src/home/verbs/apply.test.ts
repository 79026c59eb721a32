// Server-side apply over the whole API. Cases were compared with a real API server; a sequence is written as who does what.

import { describe, expect, test } from 'vitest';
import { formatPath, parseFieldsV1, pathsOf } from '../fields/field-set.ts';
import { createTestApi, type Reply, type TestApi } from '../testing/test-api.ts';

const applyHeaders = { 'content-type': 'application/apply-patch+yaml' };
const merge = { 'content-type': 'application/merge-patch+json' };
const jsonPatch = { 'content-type': 'application/json-patch+json' };

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.ex.io' },
  spec: {
    group: 'ex.io',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  b: { type: 'string', default: 'dflt' },
                  set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
                  map: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['port', 'protocol'],
                    items: {
                      type: 'object',
                      required: ['port'],
                      properties: {
                        port: { type: 'integer' },
                        protocol: { type: 'string', default: 'TCP' },
                        note: { type: 'string' },
                      },
                    },
                  },
                  list: { type: 'array', items: { type: 'string' } },
                  labels: { type: 'object', additionalProperties: { type: 'string' } },
                  whole: {
                    type: 'object',
                    'x-kubernetes-map-type': 'atomic',
                    additionalProperties: { type: 'string' },
                  },
                  any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                },
              },
              status: {
                type: 'object',
                properties: {
                  phase: { type: 'string' },
                  conditions: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['type'],
                    items: {
                      type: 'object',
                      required: ['type'],
                      properties: { type: { type: 'string' }, status: { type: 'string' } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

class Cases {
  readonly api: TestApi;
  readonly path: string;
  readonly head: object;

  constructor(api: TestApi, path: string, head: object) {
    this.api = api;
    this.path = path;
    this.head = head;
  }

  apply(manager: string, body: object, query = '', part = ''): Promise<Reply> {
    const separator = query === '' ? '' : `&${query}`;
    return this.api.send(
      `PATCH ${this.path}/x${part}?fieldManager=${manager}${separator}`,
      { ...this.head, ...body },
      applyHeaders,
    );
  }

  async applied(manager: string, body: object, query = '', part = ''): Promise<Reply['body']> {
    const reply = await this.apply(manager, body, query, part);
    if (reply.status >= 300) throw new Error(`${manager}: ${reply.status} ${reply.body.message}`);
    return reply.body;
  }

  async put(manager: string, change: (object: Reply['body']) => void, part = ''): Promise<Reply['body']> {
    const object = await this.get();
    change(object);
    return this.api.ok(`PUT ${this.path}/x${part}?fieldManager=${manager}`, object);
  }

  get(): Promise<Reply['body']> {
    return this.api.ok(`GET ${this.path}/x`);
  }
}

async function maps(): Promise<Cases> {
  return new Cases(await createTestApi(), '/api/v1/namespaces/default/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
  });
}

async function things(): Promise<Cases> {
  const api = await createTestApi();
  await api.ok('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  await api.time.advance(1000);
  return new Cases(api, '/apis/ex.io/v1/namespaces/default/things', { apiVersion: 'ex.io/v1', kind: 'Thing' });
}

async function services(): Promise<Cases> {
  return new Cases(await createTestApi(), '/api/v1/namespaces/default/services', { apiVersion: 'v1', kind: 'Service' });
}

/** `a Apply: .data.x` for each manager. */
function owners(object: Reply['body']): string[] {
  return (object.metadata.managedFields ?? []).map(
    // biome-ignore lint/suspicious/noExplicitAny: an entry as it came over the wire.
    ({ manager, operation, subresource, fieldsV1 }: any) => {
      const part = subresource === undefined ? '' : `/${subresource}`;
      const paths = pathsOf(parseFieldsV1(fieldsV1)!).map(formatPath);
      return `${manager} ${operation}${part}: ${paths.join(' ')}`;
    },
  );
}

describe('apply: fields of a map', () => {
  test('a{x:1} twice -> 201, then 200 with the same revision and the same managers', async () => {
    const cm = await maps();
    const first = await cm.apply('a', { data: { x: '1' } });
    expect(first.status).toBe(201);
    expect(owners(first.body)).toEqual(['a Apply: .data.x']);
    await cm.api.time.advance(5000);
    const second = await cm.apply('a', { data: { x: '1' } });
    expect([second.status, second.body]).toEqual([200, first.body]);
  });

  test('a{x:1}; b{x:1} -> both own it, b without a time; b{x:2} -> 409 byte for byte as upstream', async () => {
    const cm = await maps();
    const before = await cm.applied('a', { data: { x: '1' } });
    const shared = await cm.applied('b', { data: { x: '1' } });
    expect(owners(shared)).toEqual(['b Apply: .data.x', 'a Apply: .data.x']);
    expect(shared.metadata.managedFields[0].time).toBeUndefined();
    expect(shared.metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
    const { status, body } = await cm.apply('b', { data: { x: '2' } });
    expect(status).toBe(409);
    expect(JSON.stringify(body)).toBe(
      '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Apply failed with 1 conflict: conflict with \\"a\\": .data.x","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \\"a\\"","field":".data.x"}]},"code":409}',
    );
    const forced = await cm.applied('b', { data: { x: '2' } }, 'force=true');
    expect([forced.data, owners(forced)]).toEqual([{ x: '2' }, ['b Apply: .data.x']]);
  });

  test('two own a field, one applies it no longer -> it stays; the last one does -> it goes', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1', y: '1' } });
    await cm.applied('b', { data: { x: '1' } });
    const left = await cm.applied('b', {});
    expect([left.data, owners(left)]).toEqual([{ x: '1', y: '1' }, ['a Apply: .data.x .data.y']]);
    const gone = await cm.applied('a', {});
    expect([gone.data, owners(gone)]).toEqual([undefined, []]);
  });

  test('an updater takes a field -> the applier is in conflict with it by version', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1' } });
    const put = await cm.put('u', (object) => {
      object.data.x = '9';
      object.data.z = '3';
    });
    expect(owners(put)).toEqual(['u Update: .data.x .data.z']);
    const { body } = await cm.apply('a', { data: { x: '1' } });
    expect(body.message).toBe('Apply failed with 1 conflict: conflict with "u" using v1: .data.x');
    const both = await cm.apply('a', { data: { x: '1', z: '1' } });
    expect(both.body.message).toBe('Apply failed with 2 conflicts: conflicts with "u" using v1:\n- .data.x\n- .data.z');
  });

  test('a field that an updater owns too -> stays when its applier leaves it', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { y: '1' } });
    await cm.put('u', (object) => {
      object.data.x = '5';
    });
    await cm.applied('b', { data: { x: '5' } });
    const left = await cm.applied('b', {});
    expect([left.data, owners(left)]).toEqual([{ x: '5', y: '1' }, ['a Apply: .data.y', 'u Update: .data.x']]);
  });

  test('created plainly, then applied and left -> nothing is deleted: an earlier writer owns it', async () => {
    const cm = await maps();
    await cm.api.ok(`POST ${cm.path}`, { ...cm.head, metadata: { name: 'x' }, data: { a: '1', b: '2' } });
    const applied = await cm.applied('a', { data: { a: '1' } });
    expect(owners(applied)).toEqual(['a Apply: .data.a', 'before-first-apply Update: .data .data.a .data.b']);
    expect((await cm.applied('a', {})).data).toEqual({ a: '1', b: '2' });
    const { body } = await cm.apply('a', { data: { a: '3' } });
    expect(body.message).toContain('conflict with "before-first-apply" using v1: .data.a');
  });

  test('an updater removes a field -> it leaves its applier, who may put it back', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1', y: '1' } });
    const removed = await cm.api.ok(`PATCH ${cm.path}/x?fieldManager=u`, { data: { x: null } }, merge);
    expect(owners(removed)).toEqual(['a Apply: .data.y']);
    expect((await cm.applied('a', { data: { x: '1', y: '1' } })).data).toEqual({ x: '1', y: '1' });
  });

  test('one name applies and updates -> two managers, which can be in conflict', async () => {
    const cm = await maps();
    await cm.applied('m', { data: { x: '1' } });
    await cm.put('m', (object) => {
      object.data.x = '2';
    });
    const { body } = await cm.apply('m', { data: { x: '1' } });
    expect(body.message).toBe('Apply failed with 1 conflict: conflict with "m" using v1: .data.x');
  });

  test('dry run with force -> answered as if done, nothing stored', async () => {
    const cm = await maps();
    const before = await cm.applied('a', { data: { x: '1' } });
    expect((await cm.applied('b', { data: { x: '2' } }, 'force=true&dryRun=All')).data).toEqual({ x: '2' });
    expect(await cm.get()).toEqual(before);
  });

  test('an update that changes nothing -> no owner moves and no revision', async () => {
    const cm = await maps();
    const before = await cm.applied('a', { data: { x: '1' } });
    expect(await cm.put('u', () => {})).toEqual(before);
  });

  test('fourteen updaters and twelve appliers -> nine updaters and one for the oldest, all appliers', async () => {
    const cm = await maps();
    for (let at = 0; at < 12; at++) await cm.applied(`a${at}`, { data: { [`a${at}`]: '1' } });
    for (let at = 0; at < 14; at++) {
      await cm.api.time.advance(1000);
      await cm.put(`u${String(at).padStart(2, '0')}`, (object) => {
        object.data[`u${at}`] = '1';
      });
    }
    const lines = owners(await cm.get());
    expect(lines.filter((line) => line.includes(' Apply'))).toHaveLength(12);
    const updaters = lines.filter((line) => line.includes(' Update'));
    expect(updaters).toHaveLength(10);
    expect(updaters[0]).toBe('ancient-changes Update: .data.u0 .data.u1 .data.u2 .data.u3 .data.u4');
  });
});

describe('apply: lists and atomic values', () => {
  test('two appliers add ports to a Service -> two items, each owns its own', async () => {
    const svc = await services();
    await svc.applied('a', { spec: { ports: [{ port: 80, name: 'a' }] } });
    const both = await svc.applied('b', { spec: { ports: [{ port: 81, name: 'b' }] } });
    expect(both.spec.ports.map(({ port }: { port: number }) => port)).toEqual([80, 81]);
    expect(owners(both)).toEqual([
      'a Apply: .spec.ports[port=80,protocol="TCP"] .spec.ports[port=80,protocol="TCP"].name .spec.ports[port=80,protocol="TCP"].port',
      'b Apply: .spec.ports[port=81,protocol="TCP"] .spec.ports[port=81,protocol="TCP"].name .spec.ports[port=81,protocol="TCP"].port',
    ]);
    const left = await svc.applied('a', { spec: {} });
    expect(left.spec.ports.map(({ port }: { port: number }) => port)).toEqual([81]);
  });

  test('the protocol is a key with a default -> one item whether it is said or not', async () => {
    const svc = await services();
    await svc.applied('a', { spec: { ports: [{ port: 80 }] } });
    const one = await svc.applied(
      'b',
      { spec: { ports: [{ port: 80, protocol: 'TCP', targetPort: 9 }] } },
      'force=true',
    );
    expect(one.spec.ports).toEqual([{ port: 80, protocol: 'TCP', targetPort: 9 }]);
  });

  test('a selector is taken whole -> 409 on the selector', async () => {
    const svc = await services();
    await svc.applied('a', { spec: { ports: [{ port: 80 }], selector: { app: 'x' } } });
    const { body } = await svc.apply('b', { spec: { selector: { tier: 'y' } } });
    expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual(['.spec.selector']);
  });

  test('finalizers of two appliers -> a set that keeps what one of them still applies', async () => {
    const cm = await maps();
    await cm.applied('a', { metadata: { finalizers: ['e.io/x'] } });
    await cm.applied('b', { metadata: { finalizers: ['e.io/y', 'e.io/x'] } });
    const left = await cm.applied('a', {});
    expect([...left.metadata.finalizers].sort()).toEqual(['e.io/x', 'e.io/y']);
    expect(owners(left)).toEqual(['b Apply: .metadata.finalizers[="e.io/x"] .metadata.finalizers[="e.io/y"]']);
  });

  test('owner references -> by uid, each whole', async () => {
    const cm = await maps();
    const owner = async (name: string) => {
      const { metadata } = await cm.api.ok(`POST ${cm.path}`, { ...cm.head, metadata: { name } });
      return { ...cm.head, name, uid: metadata.uid };
    };
    const [one, other] = [await owner('one'), await owner('other')];
    await cm.applied('a', { metadata: { ownerReferences: [one] } });
    const both = await cm.applied('b', { metadata: { ownerReferences: [other] } });
    expect(both.metadata.ownerReferences.map(({ name }: { name: string }) => name)).toEqual(['one', 'other']);
    expect(owners(both)).toContain(`b Apply: .metadata.ownerReferences[uid="${other.uid}"]`);
  });

  test('sets of a custom kind -> the order of the applier, and what it does not name stays', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { set: ['p', 'q'] } });
    expect((await thing.applied('b', { spec: { set: ['r', 'p'] } })).spec.set).toEqual(['r', 'p', 'q']);
    const left = await thing.applied('a', { spec: { set: ['q'] } });
    expect(left.spec.set).toEqual(['r', 'p', 'q']);
    expect(owners(left)).toEqual(['a Apply: .spec.set[="q"]', 'b Apply: .spec.set[="p"] .spec.set[="r"]']);
  });

  test('a list by keys of a custom kind -> items of one applier go with it', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { map: [{ port: 1 }] } });
    await thing.applied('b', { spec: { map: [{ port: 1, protocol: 'UDP' }, { port: 2 }] } });
    const left = await thing.applied('a', { spec: {} });
    expect(left.spec.map).toEqual([
      { port: 1, protocol: 'UDP' },
      { port: 2, protocol: 'TCP' },
    ]);
    expect(owners(left)[0]).toBe('a Apply: .spec');
  });

  test('a default that was overridden -> comes back when its applier leaves it', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { list: ['1'] } });
    expect((await thing.applied('b', { spec: { b: 'other' } })).spec.b).toBe('other');
    expect((await thing.applied('b', { spec: {} })).spec.b).toBe('dflt');
  });

  test('atomic lists and maps of a custom kind -> whole or not at all', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { list: ['1'], whole: { k: 'v' }, labels: { k: 'v' } } });
    const { body } = await thing.apply('b', { spec: { list: ['2'], whole: { l: 'v' }, labels: { l: 'v' } } });
    expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual(['.spec.list', '.spec.whole']);
  });

  test('fields that the schema leaves open -> objects are merged, lists are whole', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { any: { o: { x: 1 }, l: [1] } } });
    const both = await thing.applied('b', { spec: { any: { o: { y: 2 } } } });
    expect(both.spec.any).toEqual({ o: { x: 1, y: 2 }, l: [1] });
  });

  test('everything an applier had is left -> an empty spec stays an object', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { set: ['p'] } });
    const left = await thing.applied('a', { spec: {} });
    expect([left.spec, owners(left)]).toEqual([{ b: 'dflt' }, ['a Apply: .spec']]);
    expect((await thing.applied('a', {})).spec).toBeUndefined();
  });

  test('stringData of a Secret -> owned as written, stored as data, and a repeat changes nothing', async () => {
    const secret = new Cases(await createTestApi(), '/api/v1/namespaces/default/secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
    });
    const first = await secret.applied('a', { stringData: { k: 'v' } });
    expect([first.data, owners(first)]).toEqual([{ k: 'dg==' }, ['a Apply: .stringData.k']]);
    await secret.api.time.advance(5000);
    expect(await secret.applied('a', { stringData: { k: 'v' } })).toEqual(first);
  });
});

describe('apply: status', () => {
  test('controllers apply to /status -> merged by type, in conflict by subresource, spec untouched', async () => {
    const thing = await things();
    await thing.applied('a', { spec: { set: ['p'] }, status: { phase: 'ignored' } });
    await thing.applied('ctl', { status: { phase: 'Up', conditions: [{ type: 'A', status: 'True' }] } }, '', '/status');
    const body = { spec: { set: ['ignored'] }, status: { conditions: [{ type: 'B', status: 'True' }] } };
    const both = await thing.applied('ctl2', body, '', '/status');
    expect(both.status).toEqual({
      phase: 'Up',
      conditions: [
        { type: 'A', status: 'True' },
        { type: 'B', status: 'True' },
      ],
    });
    expect(both.spec.set).toEqual(['p']);
    const refused = await thing.apply(
      'ctl2',
      { status: { conditions: [{ type: 'A', status: 'False' }] } },
      '',
      '/status',
    );
    expect(refused.body.message).toBe(
      'Apply failed with 1 conflict: conflict with "ctl" with subresource "status": .status.conditions[type="A"].status',
    );
  });

  test('/status of an object that is not there -> 404', async () => {
    const thing = await things();
    expect((await thing.apply('ctl', { status: { phase: 'Up' } }, '', '/status')).status).toBe(404);
  });
});

describe('apply: managers that clients write', () => {
  test('a PUT without the list keeps the owners, one with [] ends tracking, one with another list replaces it', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1' } });
    const kept = await cm.put('u', (object) => delete object.metadata.managedFields);
    expect(owners(kept)).toEqual(['a Apply: .data.x']);
    const renamed = await cm.put('u', (object) => {
      object.metadata.managedFields[0].manager = 'b';
    });
    expect(owners(renamed)).toEqual(['b Apply: .data.x']);
    const ignored = await cm.put('u', (object) => {
      object.metadata.managedFields = [{ manager: 'c', operation: 'Nonsense' }];
    });
    expect(owners(ignored)).toEqual(['b Apply: .data.x']);
    const cleared = await cm.put('u', (object) => {
      object.metadata.managedFields = [];
    });
    expect(owners(cleared)).toEqual([]);
    await cm.put('u', (object) => {
      object.data.y = '1';
    });
    expect(owners(await cm.get())).toEqual([]);
  });

  test('a JSON patch that replaces the list -> taken, as kubectl and Helm do when they migrate', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1' } });
    const list = (await cm.get()).metadata.managedFields.map((entry: object) => ({ ...entry, manager: 'kubectl' }));
    const operations = [{ op: 'replace', path: '/metadata/managedFields', value: list }];
    const patched = await cm.api.ok(`PATCH ${cm.path}/x?fieldManager=u`, operations, jsonPatch);
    expect(owners(patched)).toEqual(['kubectl Apply: .data.x']);
  });

  test('a merge patch with [{}] -> the list is cleared', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1' } });
    const patched = await cm.api.ok(`PATCH ${cm.path}/x`, { metadata: { managedFields: [{}] } }, merge);
    expect(patched.metadata.managedFields).toBeUndefined();
  });

  test('managers of plain writes -> the name before the first slash of the user agent', async () => {
    const cm = await maps();
    await cm.applied('a', { data: { x: '1' } });
    const agent = { 'user-agent': 'Mozilla/5.0 (X11)', ...merge };
    expect(owners(await cm.api.ok(`PATCH ${cm.path}/x`, { data: { y: '1' } }, agent))).toContain(
      'Mozilla Update: .data.y',
    );
    expect(owners(await cm.api.ok(`PATCH ${cm.path}/x`, { data: { z: '1' } }, merge))).toContain(
      'unknown Update: .data.z',
    );
  });
});

describe('apply: from kubectl apply and back', () => {
  const last = (data: object) => ({
    'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x' },
      data,
    }),
  });

  test('fields as last applied -> no conflict for kubectl, one for others; the annotation follows', async () => {
    const cm = await maps();
    const metadata = { name: 'x', annotations: last({ a: '1', b: '2' }) };
    await cm.api.ok(`POST ${cm.path}`, { ...cm.head, metadata, data: { a: '1', b: '2', c: '3' } });
    expect((await cm.apply('other', { data: { a: '9' } })).status).toBe(409);
    expect((await cm.apply('kubectl', { data: { c: '9' } })).status).toBe(409);
    const taken = await cm.applied('kubectl', { data: { a: '9', b: '2' } });
    expect(taken.data).toEqual({ a: '9', b: '2', c: '3' });
    const text = taken.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'];
    expect(JSON.parse(text).data).toEqual({ a: '9', b: '2' });
  });
});

describe('apply: refused', () => {
  const invalid = async (query: string, body: unknown, headers = applyHeaders) => {
    const cm = await maps();
    const { status, body: answer } = await cm.api.send(`PATCH ${cm.path}/x?${query}`, body, headers);
    return `${status} ${answer.message}`;
  };
  const map = { apiVersion: 'v1', kind: 'ConfigMap' };
  const cases: [string, string, unknown, string][] = [
    [
      'no manager',
      '',
      map,
      '422 PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    ],
    [
      'a manager of 129 bytes',
      `fieldManager=${'m'.repeat(129)}`,
      map,
      '422 PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
    ],
    ['another kind', 'fieldManager=a', { ...map, kind: 'Secret' }, '400 invalid object type: /v1, Kind=Secret'],
    [
      'another name',
      'fieldManager=a',
      { ...map, metadata: { name: 'b' } },
      '400 the name of the object (b) does not match the name on the URL (x)',
    ],
    [
      'managers in the body',
      'fieldManager=a',
      { ...map, metadata: { managedFields: [] } },
      '400 metadata.managedFields must be nil',
    ],
    [
      'an unknown field',
      'fieldManager=a',
      { ...map, nope: 1 },
      '400 failed to create typed patch object (default/x; v1, Kind=ConfigMap): .nope: field not declared in schema',
    ],
    [
      'a list for a map',
      'fieldManager=a',
      { ...map, data: [] },
      '400 failed to create typed patch object (default/x; v1, Kind=ConfigMap): .data: expected map, got list',
    ],
    [
      'a text',
      'fieldManager=a',
      'just text',
      '400 the object provided is not an object: a JSON or YAML object is expected',
    ],
  ];
  for (const [what, query, body, answer] of cases) {
    test(`${what} -> ${answer.slice(0, 60)}`, async () => expect(await invalid(query, body)).toBe(answer));
  }

  test('force on another kind of patch -> 422', async () => {
    expect(await invalid('force=true', {}, merge)).toBe(
      '422 PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    );
  });

  test('an item twice -> 400 that names it', async () => {
    const svc = await services();
    const { body } = await svc.apply('a', { spec: { ports: [{ port: 82 }, { port: 82, protocol: 'TCP' }] } });
    expect(body.message).toContain('.spec.ports: duplicate entries for key [port=82,protocol="TCP"]');
  });

  test('an old resourceVersion -> 409; on an object that is not there it is ignored, a uid is not', async () => {
    const cm = await maps();
    expect((await cm.apply('a', { metadata: { uid: 'u' } })).status).toBe(409);
    expect((await cm.apply('a', { metadata: { resourceVersion: '1' }, data: { x: '1' } })).status).toBe(201);
    expect((await cm.apply('a', { metadata: { resourceVersion: '1' }, data: { x: '2' } })).status).toBe(409);
  });

  test('an object that the configuration makes invalid -> 422 and nothing is stored', async () => {
    const cm = await maps();
    const before = await cm.applied('a', { data: { x: '1' } });
    expect((await cm.apply('a', { data: { 'no/key': '1' } })).status).toBe(422);
    expect(await cm.get()).toEqual(before);
  });

  test('who may patch and not create -> 403 for a new object', async () => {
    const api = await createTestApi({
      access: {
        authenticate: async () => ({ name: 'tester', groups: [] }),
        authorize: (_user, { verb }) => ({ isAllowed: verb !== 'create', reason: '' }),
      },
    });
    const cm = new Cases(api, '/api/v1/namespaces/default/configmaps', map);
    const { status, body } = await cm.apply('a', { data: { x: '1' } });
    expect([status, body.message]).toEqual([403, expect.stringContaining('cannot create resource "configmaps"')]);
  });

  test('YAML as people write it -> applied', async () => {
    const cm = await maps();
    const text = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  x: "1"\n';
    const { status, body } = await cm.api.send(`PATCH ${cm.path}/x?fieldManager=a`, text, applyHeaders);
    expect([status, body.data]).toEqual([201, { x: '1' }]);
  });

  test('braces with what YAML allows and JSON does not -> applied; what neither allows -> 400', async () => {
    const cm = await maps();
    const send = (text: string) => cm.api.send(`PATCH ${cm.path}/x?fieldManager=a`, text, applyHeaders);
    const { status, body } = await send(
      '{\n\t"apiVersion": "v1", "kind": "ConfigMap",\n\t"data": {\n\t\t"x": "1",\n\t},\n}',
    );
    expect([status, body.data]).toEqual([201, { x: '1' }]);
    const wrong = await send('{"apiVersion": "v1", "kind": ]');
    expect([wrong.status, wrong.body.message]).toEqual([400, expect.stringContaining('not valid YAML')]);
  });
});

describe('apply: objects that were created plainly by a writer that names itself', () => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: '1', b: '2' } };

  test('created, then applied and left -> the creator owns it, and nothing is deleted', async () => {
    const cm = await maps();
    const created = await cm.api.ok(`POST ${cm.path}?fieldManager=kubectl-create`, body);
    expect(created.metadata.managedFields).toEqual([
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'v1',
        time: created.metadata.creationTimestamp,
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { '.': {}, 'f:a': {}, 'f:b': {} } },
      },
    ]);
    const { body: refused } = await cm.apply('a', { data: { a: '3' } });
    expect(refused.message).toBe('Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.a');
    await cm.applied('a', { data: { a: '1' } });
    const left = await cm.applied('a', {});
    expect([left.data, owners(left)]).toEqual([{ a: '1', b: '2' }, ['kubectl-create Update: .data .data.a .data.b']]);
  });

  test('written by others afterwards -> each owns what it changed, under the name of its program if it has no other', async () => {
    const cm = await maps();
    await cm.api.ok(`POST ${cm.path}?fieldManager=c`, body);
    await cm.api.ok(`PATCH ${cm.path}/x`, { data: { a: '9' } }, { ...merge, 'user-agent': 'loop/v1 (linux)' });
    const put = await cm.put('u', (object) => {
      delete object.data.b;
      object.metadata.labels = { l: '1' };
    });
    expect(owners(put)).toEqual([
      'c Update: .data',
      'loop Update: .data.a',
      'u Update: .metadata.labels .metadata.labels.l',
    ]);
  });

  test('a Service -> defaults are its creator’s, addresses that the server chose are nobody’s', async () => {
    const { api, path } = await services();
    const created = await api.ok(`POST ${path}?fieldManager=c`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x' },
      spec: { ports: [{ port: 80 }], selector: { app: 'x' } },
    });
    expect(created.spec.clusterIP).toBeDefined();
    expect(created.metadata.managedFields[0].fieldsV1).toEqual({
      'f:spec': {
        'f:internalTrafficPolicy': {},
        'f:ports': {
          '.': {},
          'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:protocol': {}, 'f:targetPort': {} },
        },
        'f:selector': {},
        'f:sessionAffinity': {},
        'f:type': {},
      },
    });
  });

  test('its status, and a list of managers in the body -> no part of what the creator owns', async () => {
    const thing = await things();
    const created = await thing.api.ok(`POST ${thing.path}?fieldManager=c`, {
      ...thing.head,
      metadata: { name: 'x', managedFields: [{ manager: 'other', operation: 'Update', apiVersion: 'v1' }] },
      spec: { set: ['p'] },
      status: { phase: 'Up' },
    });
    expect(owners(created)).toEqual(['c Update: .spec .spec.b .spec.set .spec.set[="p"]']);
    const status = await thing.api.ok(
      `PATCH ${thing.path}/x/status?fieldManager=s`,
      { status: { phase: 'Up' } },
      merge,
    );
    expect(owners(status)).toEqual([
      'c Update: .spec .spec.b .spec.set .spec.set[="p"]',
      's Update/status: .status .status.phase',
    ]);
  });

  test('a Namespace -> the phase that the server sets is nobody’s', async () => {
    const { api } = await maps();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } };
    expect(owners(await api.ok('POST /api/v1/namespaces?fieldManager=c', namespace))).toEqual([
      'c Update: .metadata.labels .metadata.labels.kubernetes.io/metadata.name',
    ]);
  });

  test('applied with nothing but a name, or created without a name for its manager -> nobody owns anything', async () => {
    const cm = await maps();
    expect(owners(await cm.applied('a', {}))).toEqual([]);
    const plain = await cm.api.ok(`POST ${cm.path}`, { ...body, metadata: { name: 'y' } }, { 'user-agent': 'loop/1' });
    expect(plain.metadata).not.toHaveProperty('managedFields');
  });
});
