import { describe, expect, test } from 'vitest';
import type { CommitRequest } from '../store/store.ts';
import { configMap, createTestApi, settle, widgetDefinition, withMethods } from '../testing/test-api.ts';

interface Shown {
  metadata: { name: string };
  status: { phase: string };
  spec: { finalizers: string[] };
}

const merge = { 'content-type': 'application/merge-patch+json' };

describe('namespaces', () => {
  test('at the first start -> default, kube-system and our own are there', async () => {
    const { ok } = await createTestApi();
    const { items } = await ok('GET /api/v1/namespaces');
    const shown = items.map(({ metadata, status, spec }: Shown) => [metadata.name, status.phase, spec.finalizers]);
    expect(shown).toEqual(
      ['default', 'kube-system', 'portolan-external', 'portolan-system'].map((name) => [
        name,
        'Active',
        ['kubernetes'],
      ]),
    );
  });

  test('deleted -> Terminating, refuses what is new, is emptied of every kind, then goes', async () => {
    const { ok, send, time, store } = await createTestApi({ definitions: [widgetDefinition()] });
    await ok('POST /api/v1/namespaces', { metadata: { name: 'team' } });
    const maps = '/api/v1/namespaces/team/configmaps';
    await ok(`POST ${maps}`, configMap('a'));
    await ok(`POST ${maps}`, configMap('held', {}, { finalizers: ['example.com/hold'] }));
    await ok('POST /api/v1/namespaces/team/services', { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    await ok('POST /apis/example.com/v1/namespaces/team/widgets', { metadata: { name: 'w' }, spec: { size: 1 } });
    const marked = await ok('DELETE /api/v1/namespaces/team');
    expect(marked.status.phase).toBe('Terminating');
    await time.advance(10_000);
    const left = await store.range({ prefix: '/registry/' });
    const inTeam = left.entries.map(({ key }) => key).filter((key) => key.includes('/team'));
    expect(inTeam).toEqual(['/registry/core/configmaps/team/held', '/registry/core/namespaces/team']);
    const { status, body } = await send(`POST ${maps}`, configMap('new'));
    expect([status, body.message]).toEqual([
      403,
      'configmaps "new" is forbidden: unable to create new content in namespace team because it is being terminated',
    ]);
    expect(body.details.causes).toEqual([
      { reason: 'NamespaceTerminating', message: 'namespace team is being terminated', field: 'metadata.namespace' },
    ]);
    await ok(`PATCH ${maps}/held`, { metadata: { finalizers: null } }, merge);
    await time.advance(10_000);
    expect((await send('GET /api/v1/namespaces/team')).status).toBe(404);
  });

  test('empty -> gone at once', async () => {
    const { ok, send, api } = await createTestApi();
    await ok('POST /api/v1/namespaces', { metadata: { name: 'team' } });
    await ok('DELETE /api/v1/namespaces/team');
    await api.whenIdle();
    expect((await send('GET /api/v1/namespaces/team')).status).toBe(404);
  });

  test('creates that race with the deletion -> each is refused or emptied, nothing stays behind', async () => {
    const { ok, send, time, store } = await createTestApi();
    await ok('POST /api/v1/namespaces', { metadata: { name: 'team' } });
    const creating = Array.from({ length: 50 }, (_, at) =>
      send('POST /api/v1/namespaces/team/configmaps', configMap(`m${at}`)),
    );
    const deleting = send('DELETE /api/v1/namespaces/team');
    const more = Array.from({ length: 50 }, (_, at) =>
      send('POST /api/v1/namespaces/team/configmaps', configMap(`n${at}`)),
    );
    await Promise.all([...creating, deleting, ...more]);
    await time.advance(10_000);
    expect((await store.range({ prefix: '/registry/core/configmaps/team/' })).entries).toEqual([]);
    expect((await send('GET /api/v1/namespaces/team')).status).toBe(404);
  });

  test('a create that was checked before the deletion and comes in after it -> refused, nothing is stored', async () => {
    let letIn = () => {};
    const gate = new Promise<void>((resolve) => {
      letIn = resolve;
    });
    const late = (request: CommitRequest) => request.writes.some(({ key }) => key.endsWith('/late'));
    const { ok, send, time, store } = await createTestApi({
      wrapStore: (inner) =>
        withMethods(inner, {
          commit: (request) => (late(request) ? gate : Promise.resolve()).then(() => inner.commit(request)),
        }),
    });
    await ok('POST /api/v1/namespaces', { metadata: { name: 'team' } });
    const creating = send('POST /api/v1/namespaces/team/configmaps', configMap('late'));
    await settle();
    await ok('DELETE /api/v1/namespaces/team');
    await time.advance(5_000);
    letIn();
    expect((await creating).status).toBe(404);
    expect(await store.get('/registry/core/configmaps/team/late')).toBeUndefined();
  });

  test('default -> may not be deleted', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send('DELETE /api/v1/namespaces/default');
    expect([status, body.reason]).toEqual([403, 'Forbidden']);
  });
});

describe('namespaces: finalize', () => {
  const path = '/api/v1/namespaces/n';
  const namespace = (finalizers: string[], metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'n', ...metadata },
    spec: { finalizers },
  });

  test('written -> its finalizers are those given and nothing else changes; any other write leaves them alone', async () => {
    const { ok } = await createTestApi();
    const made = await ok('POST /api/v1/namespaces', namespace([]));
    const labels = { other: 'x' };
    const written = await ok(`PUT ${path}/finalize`, namespace(['kubernetes', 'ex.io/hold'], { labels }));
    expect(written.spec.finalizers).toEqual(['kubernetes', 'ex.io/hold']);
    expect(written.metadata.labels).toEqual(made.metadata.labels);
    expect((await ok(`PUT ${path}`, namespace([]))).spec.finalizers).toEqual(['kubernetes', 'ex.io/hold']);
  });

  test('deleted while a finalizer of somebody else is there -> stays until that is taken out', async () => {
    const { ok, send, time } = await createTestApi();
    await ok('POST /api/v1/namespaces', namespace(['ex.io/hold']));
    await ok(`DELETE ${path}`);
    await time.advance(5000);
    const held = await ok(`GET ${path}`);
    expect([held.status.phase, held.spec.finalizers]).toEqual(['Terminating', ['ex.io/hold']]);
    await ok(`PUT ${path}/finalize`, namespace([]));
    expect((await send(`GET ${path}`)).status).toBe(404);
  });

  test('wrong requests -> refused', async () => {
    const { ok, send } = await createTestApi();
    await ok('POST /api/v1/namespaces', namespace([]));
    const statuses = await Promise.all([
      send(`GET ${path}/finalize`),
      send(`PUT ${path}/finalize`, namespace([], { resourceVersion: '1' })),
      send(`PUT ${path}/finalize`, namespace([], { uid: 'other' })),
      send(`PUT ${path}/finalize`, namespace([], { name: 'other' })),
      send('PUT /api/v1/namespaces/none/finalize', namespace([], { name: 'none' })),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([405, 409, 409, 400, 404]);
  });
});
