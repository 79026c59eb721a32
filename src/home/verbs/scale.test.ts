// The scale subresource over the whole API: of built-in workloads, and of kinds whose definition declares it.

import { describe, expect, test } from 'vitest';
import { formatPath, parseFieldsV1, pathsOf } from '../fields/field-set.ts';
import { createTestApi, type Reply, type TestApi } from '../testing/test-api.ts';

const apply = { 'content-type': 'application/apply-patch+yaml' };
const merge = { 'content-type': 'application/merge-patch+json' };
const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
const head = { apiVersion: 'autoscaling/v1', kind: 'Scale' };

const deployments = '/apis/apps/v1/namespaces/default/deployments';
const web = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] },
    template: { metadata: { labels: { app: 'web', tier: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
};

const flocks = '/apis/ex.io/v1/namespaces/default/flocks';
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'flocks.ex.io' },
  spec: {
    group: 'ex.io',
    names: { plural: 'flocks', kind: 'Flock' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.wanted.birds',
            statusReplicasPath: '.status.birds',
            labelSelectorPath: '.status.selector',
          },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  color: { type: 'string' },
                  wanted: { type: 'object', properties: { birds: { type: 'integer', maximum: 100 } } },
                },
              },
              status: { type: 'object', properties: { birds: { type: 'integer' }, selector: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
};

async function withFlocks(): Promise<TestApi> {
  const api = await createTestApi();
  await api.ok('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  await api.time.advance(1000);
  return api;
}

/** `a Apply/scale: .spec.replicas` for each manager. */
function owners(object: Reply['body']): string[] {
  return (object.metadata.managedFields ?? []).map(
    // biome-ignore lint/suspicious/noExplicitAny: an entry as it came over the wire.
    ({ manager, operation, subresource, fieldsV1 }: any) =>
      `${manager} ${operation}${subresource ? `/${subresource}` : ''}: ${pathsOf(parseFieldsV1(fieldsV1)!)
        .map(formatPath)
        .filter((path) => !path.includes('.template') && !path.includes('.selector'))
        .join(' ')}`,
  );
}

describe('scale: of a Deployment', () => {
  test('read -> its numbers and its selector as text', async () => {
    const api = await createTestApi();
    const { metadata } = await api.ok(`POST ${deployments}`, web);
    await api.ok(`PATCH ${deployments}/web/status`, { status: { replicas: 4 } }, merge);
    const scale = await api.ok(`GET ${deployments}/web/scale`);
    const { uid, creationTimestamp } = metadata;
    expect(scale).toEqual({
      ...head,
      metadata: { name: 'web', namespace: 'default', uid, creationTimestamp, resourceVersion: expect.any(String) },
      spec: { replicas: 1 },
      status: { replicas: 4, selector: 'app=web,tier in (a,b)' },
    });
  });

  test.each([
    ['PUT', { ...head, metadata: { name: 'web' }, spec: { replicas: 3 } }, {}],
    ['PATCH', { spec: { replicas: 3 } }, merge],
    ['PATCH', { spec: { replicas: 3 } }, strategic],
    ['PATCH', [{ op: 'replace', path: '/spec/replicas', value: 3 }], { 'content-type': 'application/json-patch+json' }],
    ['PATCH', { ...head, spec: { replicas: 3 } }, apply],
  ])('%s -> the Deployment has as many, a new generation, and the rest as it was', async (verb, body, headers) => {
    const api = await createTestApi();
    const before = await api.ok(`POST ${deployments}`, web);
    const query = headers === apply ? '?fieldManager=m&force=true' : '';
    const scale = await api.ok(`${verb} ${deployments}/web/scale${query}`, body, headers);
    expect([scale.kind, scale.spec]).toEqual(['Scale', { replicas: 3 }]);
    const after = await api.ok(`GET ${deployments}/web`);
    expect(after.spec).toEqual({ ...before.spec, replicas: 3 });
    expect([after.metadata.generation, scale.metadata.resourceVersion]).toEqual([2, after.metadata.resourceVersion]);
  });

  test('bad requests -> refused, and nothing changes', async () => {
    const api = await createTestApi();
    const before = await api.ok(`POST ${deployments}`, web);
    const put = (object: object) => api.send(`PUT ${deployments}/web/scale`, { ...head, ...object });
    const spec = { replicas: 3 };
    const negative = await put({ metadata: { name: 'web' }, spec: { replicas: -1 } });
    expect([negative.status, negative.body.message]).toEqual([
      422,
      'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ]);
    const wrong = await Promise.all([
      put({ metadata: { name: 'web' }, spec: { replicas: 'three' } }),
      put({ metadata: { name: 'other' }, spec }),
      put({ metadata: { name: 'web', resourceVersion: '1' }, spec }),
      put({ metadata: { name: 'web', uid: 'other' }, spec }),
      api.send(`PUT ${deployments}/web/scale`, web),
      api.send(`PUT ${deployments}/none/scale`, { ...head, metadata: { name: 'none' }, spec }),
      api.send(`DELETE ${deployments}/web/scale`),
      api.send(`PATCH ${deployments}/none/scale?fieldManager=m`, { ...head, spec }, apply),
      api.send('GET /api/v1/namespaces/default/scale'),
    ]);
    expect(wrong.map(({ status }) => status)).toEqual([422, 400, 409, 409, 400, 404, 405, 404, 404]);
    expect(await api.ok(`GET ${deployments}/web`)).toEqual(before);
  });

  test('dry run -> answered as if done, nothing stored', async () => {
    const api = await createTestApi();
    const before = await api.ok(`POST ${deployments}`, web);
    const { spec } = await api.ok(`PATCH ${deployments}/web/scale?dryRun=All`, { spec: { replicas: 9 } }, merge);
    expect(spec).toEqual({ replicas: 9 });
    expect(await api.ok(`GET ${deployments}/web`)).toEqual(before);
  });

  test('a applies replicas, kubectl scales, a applies again -> 409 by subresource; without replicas no change', async () => {
    const api = await createTestApi();
    const applied = (body: object) => api.send(`PATCH ${deployments}/web?fieldManager=a`, body, apply);
    await applied(web);
    const agent = { ...merge, 'user-agent': 'kubectl/v1.36.4' };
    await api.ok(`PATCH ${deployments}/web/scale`, { spec: { replicas: 3 } }, agent);
    const scaled = await api.ok(`GET ${deployments}/web`);
    expect(owners(scaled)).toEqual(['a Apply: ', 'kubectl Update/scale: .spec.replicas']);
    expect(scaled.metadata.managedFields[1]).not.toHaveProperty('time');
    const { status, body } = await applied(web);
    expect([status, body.message]).toEqual([
      409,
      'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas',
    ]);
    const { replicas: _replicas, ...spec } = web.spec;
    expect((await applied({ ...web, spec })).body).toEqual(scaled);
  });

  test('applied on scale -> a manager of its own; in conflict with the one before; let go, the number stays', async () => {
    const api = await createTestApi();
    await api.ok(`PATCH ${deployments}/web?fieldManager=a`, web, apply);
    const scale = (replicas: number | undefined, query = '') =>
      api.send(`PATCH ${deployments}/web/scale?fieldManager=s${query}`, { ...head, spec: { replicas } }, apply);
    const refused = await scale(5);
    expect(refused.body.message).toBe('Apply failed with 1 conflict: conflict with "a": .spec.replicas');
    expect((await scale(5, '&force=true')).body.spec).toEqual({ replicas: 5 });
    const taken = await api.ok(`GET ${deployments}/web`);
    expect(owners(taken)).toEqual(['s Apply/scale: .spec.replicas', 'a Apply: ']);
    expect((await scale(5)).body.metadata.resourceVersion).toBe(taken.metadata.resourceVersion);
    expect((await scale(undefined)).body.spec).toEqual({ replicas: 5 });
    const left = await api.ok(`GET ${deployments}/web`);
    expect([left.spec.replicas, owners(left)]).toEqual([5, ['a Apply: ']]);
  });
});

describe('scale: of a defined kind', () => {
  test('declared -> read and written at the paths of its definition', async () => {
    const api = await withFlocks();
    await api.ok(`POST ${flocks}`, { apiVersion: 'ex.io/v1', kind: 'Flock', metadata: { name: 'x' }, spec: {} });
    const unset = await api.send(`GET ${flocks}/x/scale`);
    expect([unset.status, unset.body.message]).toEqual([
      422,
      'the spec replicas field ".spec.wanted.birds" does not exist',
    ]);
    await api.ok(`PATCH ${flocks}/x/status`, { status: { birds: 2, selector: 'kind=gull' } }, merge);
    const scale = await api.ok(`PUT ${flocks}/x/scale`, { ...head, metadata: { name: 'x' }, spec: { replicas: 7 } });
    expect([scale.spec, scale.status]).toEqual([{ replicas: 7 }, { replicas: 2, selector: 'kind=gull' }]);
    expect((await api.ok(`GET ${flocks}/x`)).spec).toEqual({ wanted: { birds: 7 } });
  });

  test('more than its schema allows -> refused by the rules of the kind', async () => {
    const api = await withFlocks();
    await api.ok(`POST ${flocks}`, { apiVersion: 'ex.io/v1', kind: 'Flock', metadata: { name: 'x' } });
    const { status, body } = await api.send(`PATCH ${flocks}/x/scale`, { spec: { replicas: 101 } }, merge);
    expect([status, body.message]).toEqual([
      422,
      expect.stringContaining('Flock.ex.io "x" is invalid: spec.wanted.birds'),
    ]);
  });

  test('applied on scale -> owned at the path of the object; conflicts are told in terms of the Scale', async () => {
    const api = await withFlocks();
    const object = { apiVersion: 'ex.io/v1', kind: 'Flock', metadata: { name: 'x' } };
    await api.ok(`PATCH ${flocks}/x?fieldManager=a`, { ...object, spec: { color: 'white' } }, apply);
    await api.ok(`PATCH ${flocks}/x/scale?fieldManager=s`, { ...head, spec: { replicas: 3 } }, apply);
    expect(owners(await api.ok(`GET ${flocks}/x`))).toEqual([
      's Apply/scale: .spec.wanted.birds',
      'a Apply: .spec.color',
    ]);
    const { body } = await api.send(
      `PATCH ${flocks}/x/scale?fieldManager=t`,
      { ...head, spec: { replicas: 4 } },
      apply,
    );
    expect(body.message).toBe(
      'Apply failed with 1 conflict: conflict with "s" with subresource "scale": .spec.replicas',
    );
  });

  test('discovery and OpenAPI -> name the subresource with its kind', async () => {
    const api = await withFlocks();
    const { resources } = await api.ok('GET /apis/ex.io/v1');
    expect(resources).toContainEqual({
      name: 'flocks/scale',
      singularName: '',
      namespaced: true,
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
      verbs: ['get', 'patch', 'update'],
    });
    const document = await api.ok('GET /openapi/v3/apis/apps/v1');
    expect(document.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale'].put).toMatchObject({
      'x-kubernetes-group-version-kind': { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    });
    expect(document.components.schemas).toHaveProperty([
      'io.k8s.api.autoscaling.v1.ScaleSpec',
      'properties',
      'replicas',
    ]);
  });
});
