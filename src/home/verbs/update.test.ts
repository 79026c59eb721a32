import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, type TestApi, widgetDefinition } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';

async function withWidget(): Promise<TestApi> {
  const api = await createTestApi({ definitions: [widgetDefinition()] });
  await api.ok(`POST ${widgets}`, { metadata: { name: 'w', labels: { a: '1' } }, spec: { size: 1 } });
  return api;
}

describe('status', () => {
  test.each([
    ['/api/v1/namespaces', 'default', { phase: 'Active' }],
    ['/api/v1/nodes', 'n', { phase: 'Running' }],
    ['/api/v1/namespaces/default/services', 's', { loadBalancer: {} }],
  ])(
    'status of %s: patched or put with annotations and labels -> both are kept, spec is not touched',
    async (path, name, status) => {
      const { ok } = await createTestApi();
      if (name === 'n') await ok(`POST ${path}`, { metadata: { name } });
      if (name === 's') await ok(`POST ${path}`, { metadata: { name }, spec: { ports: [{ port: 80 }] } });
      const patch = { metadata: { annotations: { a: '1' }, labels: { l: '1' } }, spec: { x: 'y' }, status };
      const patched = await ok(`PATCH ${path}/${name}/status`, patch, {
        'content-type': 'application/merge-patch+json',
      });
      expect(patched.metadata).toMatchObject({ annotations: { a: '1' }, labels: { l: '1' } });
      expect(patched.spec?.x).toBeUndefined();
      const { annotations: _annotations, ...metadata } = patched.metadata;
      const put = await ok(`PUT ${path}/${name}/status`, { ...patched, metadata });
      expect(put.metadata.annotations).toBeUndefined();
      expect(put.metadata.uid).toBe(patched.metadata.uid);
    },
  );

  test('status of a custom kind: patched with annotations -> they are not, as in Kubernetes', async () => {
    const { ok } = await withWidget();
    const body = { metadata: { annotations: { a: '1' } }, status: { phase: 'x' } };
    const patched = await ok(`PATCH ${widgets}/w/status`, body, { 'content-type': 'application/merge-patch+json' });
    expect(patched.metadata.annotations).toBeUndefined();
  });
});

describe('update', () => {
  test('with the current resourceVersion -> replaced; with an old one -> 409 Conflict', async () => {
    const { ok, send } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a', { k: '1' }));
    const changed = await ok(`PUT ${maps}/a`, { ...made, data: { k: '2' } });
    expect(changed.data).toEqual({ k: '2' });
    expect(changed.metadata).toMatchObject({
      uid: made.metadata.uid,
      creationTimestamp: made.metadata.creationTimestamp,
    });
    const { status, body } = await send(`PUT ${maps}/a`, { ...made, data: { k: '3' } });
    expect([status, body.reason]).toEqual([409, 'Conflict']);
    expect(body.message).toBe(
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    );
    expect(body.details).toEqual({ name: 'a', kind: 'configmaps' });
  });

  test('two at once with the same resourceVersion -> one wins, one gets 409', async () => {
    const { ok, send } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a'));
    const replies = await Promise.all(['1', '2'].map((k) => send(`PUT ${maps}/a`, { ...made, data: { k } })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test('without resourceVersion -> a built-in kind is overwritten, a custom kind refuses', async () => {
    const { ok, send } = await withWidget();
    await ok(`POST ${maps}`, configMap('a', { k: '1' }));
    expect((await ok(`PUT ${maps}/a`, configMap('a', { k: '2' }))).data).toEqual({ k: '2' });
    const { status, body } = await send(`PUT ${widgets}/w`, { metadata: { name: 'w' }, spec: { size: 2 } });
    expect([status, body.details.causes[0]]).toEqual([
      422,
      {
        reason: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        message: 'Invalid value: 0: must be specified for an update',
      },
    ]);
  });

  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const lease = (metadata: object) => ({ metadata: { name: 'a', ...metadata }, spec: { holderIdentity: 'x' } });

  test('of a Lease that is not there -> created; without resourceVersion of one that is -> refused', async () => {
    const { ok, send } = await createTestApi();
    const made = await send(`PUT ${leases}/a`, lease({}));
    expect([made.status, made.body.metadata.name]).toEqual([201, 'a']);
    const again = await send(`PUT ${leases}/a`, lease({}));
    expect([again.status, again.body.details.causes[0].field]).toEqual([422, 'metadata.resourceVersion']);
    expect((await ok(`PUT ${leases}/a`, { ...made.body, spec: {} })).metadata.uid).toBe(made.body.metadata.uid);
  });

  test('of a Lease that was read and is gone -> 404; as a dry run -> 201, and nothing is stored', async () => {
    const { ok, send } = await createTestApi();
    const { body } = await send(`PUT ${leases}/a`, lease({}));
    await ok(`DELETE ${leases}/a`);
    expect((await send(`PUT ${leases}/a`, body)).status).toBe(404);
    expect((await send(`PUT ${leases}/a?dryRun=All`, lease({}))).status).toBe(201);
    expect((await send(`GET ${leases}/a`)).status).toBe(404);
  });

  test('nothing changed, or only the order of keys -> the revision stays', async () => {
    const { ok, store } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a', { x: '1', y: '2' }, { labels: { l: '1' } }));
    const before = store.revision();
    const { metadata, data: _data, ...rest } = made;
    const shuffled = {
      data: { y: '2', x: '1' },
      metadata: { ...metadata, labels: { l: '1' }, annotations: {} },
      ...rest,
    };
    expect((await ok(`PUT ${maps}/a`, shuffled)).metadata.resourceVersion).toBe(made.metadata.resourceVersion);
    expect(store.revision()).toBe(before);
  });

  test('of the main resource -> status is left alone; of status -> everything else is left alone', async () => {
    const { ok } = await withWidget();
    const made = await ok(`GET ${widgets}/w`);
    const said = await ok(`PUT ${widgets}/w/status`, {
      ...made,
      metadata: { ...made.metadata, labels: { a: '2' } },
      spec: { size: 9 },
      status: { ready: true },
    });
    expect(said).toMatchObject({ spec: { size: 1 }, status: { ready: true } });
    expect(said.metadata).toMatchObject({ labels: { a: '1' }, generation: 1 });
    const changed = await ok(`PUT ${widgets}/w`, { ...said, spec: { size: 2 }, status: { ready: false } });
    expect(changed).toMatchObject({ spec: { size: 2, color: 'blue' }, status: { ready: true } });
    expect(await ok(`GET ${widgets}/w/status`)).toEqual(changed);
  });

  test('generation -> grows with the spec, not with metadata or status', async () => {
    const { ok } = await withWidget();
    const generationAfter = async (path: string, change: object) => {
      const current = await ok(`GET ${widgets}/w`);
      return (await ok(`PUT ${widgets}/w${path}`, { ...current, ...change })).metadata.generation;
    };
    const { metadata } = await ok(`GET ${widgets}/w`);
    expect(await generationAfter('', { metadata: { ...metadata, labels: { b: '2' } } })).toBe(1);
    expect(await generationAfter('/status', { status: { ready: true } })).toBe(1);
    expect(await generationAfter('', { spec: { size: 3 } })).toBe(2);
    const current = await ok(`GET ${widgets}/w`);
    const lying = { ...current.metadata, generation: 77 };
    expect(await generationAfter('', { metadata: lying, spec: { size: 4 } })).toBe(3);
  });

  test.each([
    ['another name', { metadata: { name: 'b' } }, 400, 'metadata.name is "b", the URL has "a"'],
    [
      'another namespace',
      { metadata: { name: 'a', namespace: 'x' } },
      400,
      'metadata.namespace is "x", the URL has "default"',
    ],
    [
      'another uid',
      { metadata: { name: 'a', uid: 'x' } },
      409,
      'Precondition failed: UID in precondition: x, UID in object meta: ',
    ],
    [
      'another creation time',
      { metadata: { name: 'a', creationTimestamp: '2001-01-01T00:00:00Z' } },
      422,
      'metadata.creationTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable',
    ],
    [
      'another kind',
      { kind: 'Secret', metadata: { name: 'a' } },
      400,
      'Secret in version "v1" cannot be handled as a ConfigMap',
    ],
  ])('%s -> refused', async (_what, body, status, message) => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    const reply = await send(`PUT ${maps}/a`, body);
    expect(reply.body.message).toContain(message);
    expect(reply.status).toBe(status);
  });

  test('creationTimestamp of the same instant with other digits -> taken; of another, or no time -> refused', async () => {
    const { ok, send } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a'));
    const withTime = (creationTimestamp: string) => ({ ...made, metadata: { ...made.metadata, creationTimestamp } });
    const replaced = await ok(`PUT ${maps}/a`, withTime('2026-01-01T01:00:00.000+01:00'));
    expect(replaced.metadata).toEqual(made.metadata);
    expect((await send(`PUT ${maps}/a`, withTime('2027-01-01T00:00:00.000Z'))).status).toBe(422);
    expect((await send(`PUT ${maps}/a`, withTime('yesterday'))).status).toBe(400);
  });

  test('of something that is not there -> 404', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send(`PUT ${maps}/a`, configMap('a'));
    expect([status, body.message]).toEqual([404, 'configmaps "a" not found']);
  });

  test('dryRun=All -> checked and answered, not stored', async () => {
    const { ok } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a', { k: '1' }));
    expect((await ok(`PUT ${maps}/a?dryRun=All`, { ...made, data: { k: '2' } })).data).toEqual({ k: '2' });
    expect((await ok(`GET ${maps}/a`)).data).toEqual({ k: '1' });
  });

  test('managedFields and selfLink in the body -> not kept, no warning', async () => {
    const { send } = await createTestApi();
    const metadata = { managedFields: [{ manager: 'x', operation: 'Update', fieldsV1: { f: {} } }], selfLink: '/x' };
    const { headers, body } = await send(`POST ${maps}`, configMap('a', {}, metadata));
    expect(headers['warning']).toBeUndefined();
    expect(body.metadata.managedFields).toBeUndefined();
  });
});

describe('finalizers', () => {
  test('an object with one -> a delete marks it, the last finalizer takes it away', async () => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a', {}, { finalizers: ['example.com/hold'] }));
    const marked = await ok(`DELETE ${maps}/a`);
    expect(marked.metadata).toMatchObject({ deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 });
    const adding = {
      ...marked,
      metadata: { ...marked.metadata, finalizers: ['example.com/hold', 'example.com/more'] },
    };
    const refused = await send(`PUT ${maps}/a`, adding);
    expect(refused.body.message).toContain(
      'metadata.finalizers: Forbidden: the object is being deleted, none can be added: "example.com/more"',
    );
    // An attempt to revive it has no effect.
    const undead = { ...marked, metadata: { ...marked.metadata, deletionTimestamp: null, labels: { still: 'here' } } };
    expect((await ok(`PUT ${maps}/a`, undead)).metadata.deletionTimestamp).toBe('2026-01-01T00:00:00Z');
    const merge = { 'content-type': 'application/merge-patch+json' };
    await ok(`PATCH ${maps}/a`, { metadata: { finalizers: null } }, merge);
    expect((await send(`GET ${maps}/a`)).status).toBe(404);
  });

  test('a second delete -> nothing changes', async () => {
    const { ok, store } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a', {}, { finalizers: ['example.com/hold'] }));
    await ok(`DELETE ${maps}/a`);
    const before = store.revision();
    await ok(`DELETE ${maps}/a`);
    expect(store.revision()).toBe(before);
  });
});
