// The official client library for Node against a home: list, watch, create, patch, delete, and its informer.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ApiException,
  AuthorizationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { until } from './support/kubectl.ts';

const namespace = 'default';
const directory = mkdtempSync(join(tmpdir(), 'portolan-client-node-'));
const config = new KubeConfig();
let api: ApiProcess;
let core: CoreV1Api;

beforeAll(async () => {
  api = await startApi({ data: join(directory, 'home') });
  config.loadFromFile(api.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
});
afterAll(async () => {
  await api.stop();
  rmSync(directory, { recursive: true, force: true });
});

const configMap = (name: string, labels: Record<string, string> = {}): V1ConfigMap => ({
  metadata: { name, labels },
  data: { color: 'blue' },
});

describe('@kubernetes/client-node', () => {
  test('server-side apply -> created, repeated without a change, and refused where another manager owns a field', async () => {
    const client = KubernetesObjectApi.makeApiClient(config);
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', namespace }, data: { x: '1' } };
    const apply = (manager: string, object: V1ConfigMap & typeof body): Promise<V1ConfigMap> =>
      client.patch(object, undefined, undefined, manager, false, PatchStrategy.ServerSideApply);
    const first = await apply('a', body);
    expect((await apply('a', body)).metadata?.resourceVersion).toBe(first.metadata?.resourceVersion);
    const refused = await apply('b', { ...body, data: { x: '2' } }).catch((error: unknown) => error);
    expect((refused as ApiException<unknown>).code).toBe(409);
  });

  test('create, read, replace, delete -> typed objects with what the server adds', async () => {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('made') });
    expect(made.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(made.metadata?.creationTimestamp).toBeInstanceOf(Date);
    const replaced = await core.replaceNamespacedConfigMap({
      name: 'made',
      namespace,
      body: { ...made, data: { color: 'red' } },
    });
    expect(replaced.data).toEqual({ color: 'red' });
    await core.deleteNamespacedConfigMap({ name: 'made', namespace });
    const gone = await core.readNamespacedConfigMap({ name: 'made', namespace }).catch((error: unknown) => error);
    expect(gone).toBeInstanceOf(ApiException);
    expect((gone as ApiException<unknown>).code).toBe(404);
  });

  test('list: with a selector, in pages -> all of them, at one revision', async () => {
    for (let index = 0; index < 7; index++) {
      await core.createNamespacedConfigMap({ namespace, body: configMap(`page-${index}`, { paged: 'yes' }) });
    }
    const names: (string | undefined)[] = [];
    const revisions = new Set<string | undefined>();
    let _continue: string | undefined;
    do {
      const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'paged=yes', limit: 3, _continue });
      names.push(...page.items.map((item) => item.metadata?.name));
      revisions.add(page.metadata?.resourceVersion);
      _continue = page.metadata?._continue;
    } while (_continue !== undefined && _continue !== '');
    expect(names).toEqual(Array.from({ length: 7 }, (_, index) => `page-${index}`));
    expect(revisions.size).toBe(1);
  });

  test('patch: merge, json and strategic -> the object as patched', async () => {
    await core.createNamespacedConfigMap({ namespace, body: configMap('patched') });
    const patch = (type: string, body: unknown) =>
      core.patchNamespacedConfigMap({ name: 'patched', namespace, body }, setHeaderOptions('Content-Type', type));
    expect((await patch(PatchStrategy.MergePatch, { data: { size: '1' } })).data).toEqual({ color: 'blue', size: '1' });
    const json = [{ op: 'remove', path: '/data/color' }];
    expect((await patch(PatchStrategy.JsonPatch, json)).data).toEqual({ size: '1' });
    const strategic = { metadata: { finalizers: ['example.com/a'] } };
    expect((await patch(PatchStrategy.StrategicMergePatch, strategic)).metadata?.finalizers).toEqual(['example.com/a']);
  });

  test('watch: from a list -> what happens after it, in order', async () => {
    const { metadata } = await core.listNamespacedConfigMap({ namespace });
    const seen: string[] = [];
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const query = { resourceVersion: metadata?.resourceVersion, labelSelector: 'watched=yes' };
    const watching = await new Watch(config).watch(
      path,
      query,
      (phase, object: V1ConfigMap) => seen.push(`${phase} ${object.metadata?.name}`),
      () => {},
    );
    await core.createNamespacedConfigMap({ namespace, body: configMap('watched', { watched: 'yes' }) });
    await core.replaceNamespacedConfigMap({
      name: 'watched',
      namespace,
      body: { ...configMap('watched', { watched: 'yes' }), data: {} },
    });
    await core.deleteNamespacedConfigMap({ name: 'watched', namespace });
    await until(() => seen.length === 3);
    watching.abort();
    expect(seen).toEqual(['ADDED watched', 'MODIFIED watched', 'DELETED watched']);
  });

  test('informer: -> holds what is there, hears of adds, updates and deletes', async () => {
    await core.createNamespacedConfigMap({ namespace, body: configMap('informed-0', { informed: 'yes' }) });
    const heard: string[] = [];
    const labelSelector = 'informed=yes';
    const informer = makeInformer(
      config,
      `/api/v1/namespaces/${namespace}/configmaps`,
      () => core.listNamespacedConfigMap({ namespace, labelSelector }),
      labelSelector,
    );
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, (object) => heard.push(`${verb} ${object.metadata?.name}`));
    }
    await informer.start();
    await core.createNamespacedConfigMap({ namespace, body: configMap('informed-1', { informed: 'yes' }) });
    const body = { ...configMap('informed-1', { informed: 'yes' }), data: { color: 'green' } };
    await until(() => heard.includes('add informed-1'));
    await core.replaceNamespacedConfigMap({ name: 'informed-1', namespace, body });
    await core.deleteNamespacedConfigMap({ name: 'informed-0', namespace });
    await until(() => heard.length === 4);
    expect(heard).toEqual(['add informed-0', 'add informed-1', 'update informed-1', 'delete informed-0']);
    expect(informer.list().map((item) => `${item.metadata?.name} ${item.data?.['color']}`)).toEqual([
      'informed-1 green',
    ]);
    await informer.stop();
  });

  test('custom objects: a ServiceExport through the untyped clients -> as any other', async () => {
    const where = { group: 'multicluster.x-k8s.io', version: 'v1beta1', namespace, plural: 'serviceexports' };
    const custom = config.makeApiClient(CustomObjectsApi);
    const body = { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata: { name: 'checkout' } };
    await custom.createNamespacedCustomObject({ ...where, body });
    const { items } = await custom.listNamespacedCustomObject(where);
    expect(items.map((item: V1ConfigMap) => item.metadata?.name)).toEqual(['checkout']);
    const generic = KubernetesObjectApi.makeApiClient(config);
    const read = await generic.read({ ...body, metadata: { name: 'checkout', namespace } });
    expect(read.metadata?.generation).toBe(1);
    await generic.delete({ ...body, metadata: { name: 'checkout', namespace } });
  });

  test('errors: a conflict and an invalid object -> the Status of Kubernetes in the exception', async () => {
    const failure = async (attempt: Promise<unknown>) => {
      const error = (await attempt.catch((reason: unknown) => reason)) as ApiException<string>;
      return { code: error.code, ...JSON.parse(String(error.body)) };
    };
    const invalid = await failure(core.createNamespacedConfigMap({ namespace, body: configMap('Not Valid') }));
    expect(invalid).toMatchObject({ code: 422, kind: 'Status', reason: 'Invalid' });
    expect(invalid.details.causes[0].field).toBe('metadata.name');
    const stale = await core.createNamespacedConfigMap({ namespace, body: configMap('stale') });
    await core.replaceNamespacedConfigMap({ name: 'stale', namespace, body: { ...stale, data: {} } });
    expect(
      await failure(
        core.replaceNamespacedConfigMap({ name: 'stale', namespace, body: { ...stale, data: { a: 'b' } } }),
      ),
    ).toMatchObject({ code: 409, reason: 'Conflict' });
  });

  test('access reviews: -> the admin may do everything', async () => {
    const authorization = config.makeApiClient(AuthorizationV1Api);
    const body = { spec: { resourceAttributes: { verb: 'delete', resource: 'nodes' } } };
    expect((await authorization.createSelfSubjectAccessReview({ body })).status?.allowed).toBe(true);
  });
});
