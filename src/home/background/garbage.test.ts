import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, type TestApi, widgetDefinition, withMethods } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';
const merge = { 'content-type': 'application/merge-patch+json' };

interface Meta {
  metadata: { name: string; uid: string };
}

function ownedBy(owners: readonly Meta[], reference: object = {}): object {
  const ownerReferences = owners.map(({ metadata }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: metadata.name,
    uid: metadata.uid,
    ...reference,
  }));
  return { ownerReferences };
}

async function names({ ok }: TestApi): Promise<string[]> {
  const { items } = await ok(`GET ${maps}`);
  return items.map(({ metadata }: Meta) => metadata.name);
}

/** `owner` with `child` and `grandchild` below it. */
async function family(reference: object = {}): Promise<TestApi> {
  const api = await createTestApi();
  const owner = await api.ok(`POST ${maps}`, configMap('owner'));
  const child = await api.ok(`POST ${maps}`, configMap('child', {}, ownedBy([owner], reference)));
  await api.ok(`POST ${maps}`, configMap('grandchild', {}, ownedBy([child], reference)));
  await api.ok(`POST ${maps}`, configMap('stranger'));
  return api;
}

describe('garbage', () => {
  test('in the background, which is the default -> the owner goes at once, dependents after it, down the line', async () => {
    const api = await family();
    await api.ok(`DELETE ${maps}/owner`);
    expect(await names(api)).not.toContain('owner');
    await api.api.whenIdle();
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['stranger']);
  });

  test('in the foreground -> the owner is marked and waits until the dependents that block it are gone', async () => {
    const api = await family({ blockOwnerDeletion: true });
    await api.ok(`PATCH ${maps}/grandchild`, { metadata: { finalizers: ['example.com/hold'] } }, merge);
    const marked = await api.ok(`DELETE ${maps}/owner`, { propagationPolicy: 'Foreground' });
    expect(marked.metadata.finalizers).toEqual(['foregroundDeletion']);
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['child', 'grandchild', 'owner', 'stranger']);
    await api.ok(`PATCH ${maps}/grandchild`, { metadata: { finalizers: null } }, merge);
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['stranger']);
  });

  test('in the foreground, nothing blocks -> the owner does not wait', async () => {
    const api = await family();
    await api.ok(`PATCH ${maps}/child`, { metadata: { finalizers: ['example.com/hold'] } }, merge);
    await api.ok(`DELETE ${maps}/owner?propagationPolicy=Foreground`);
    await api.time.advance(1_000);
    expect(await names(api)).not.toContain('owner');
    expect((await api.ok(`GET ${maps}/child`)).metadata.deletionTimestamp).toBeDefined();
  });

  test('in the foreground, a dependent in another namespace claims to block -> the owner does not wait for it', async () => {
    const api = await createTestApi();
    const owner = await api.ok(`POST ${maps}`, configMap('owner'));
    await api.ok('POST /api/v1/namespaces', { metadata: { name: 'other' } });
    const hold = { ...ownedBy([owner], { blockOwnerDeletion: true }), finalizers: ['example.com/hold'] };
    await api.ok('POST /api/v1/namespaces/other/configmaps', configMap('foreign', {}, hold));
    await api.ok(`DELETE ${maps}/owner`, { propagationPolicy: 'Foreground' });
    await api.time.advance(1_000);
    expect(await names(api)).toEqual([]);
  });

  test('orphaned -> dependents stay and forget their owner', async () => {
    const api = await family();
    await api.ok(`DELETE ${maps}/owner`, { propagationPolicy: 'Orphan' });
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['child', 'grandchild', 'stranger']);
    expect((await api.ok(`GET ${maps}/child`)).metadata.ownerReferences).toBeUndefined();
    expect((await api.ok(`GET ${maps}/grandchild`)).metadata.ownerReferences).toHaveLength(1);
  });

  test('the old orphanDependents=true -> the same', async () => {
    const api = await family();
    await api.ok(`DELETE ${maps}/owner?orphanDependents=true`);
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['child', 'grandchild', 'stranger']);
  });

  test('an owner that does not exist, or one of the same name with another uid -> the dependent goes', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${maps}`, configMap('owner'));
    const ghost = { metadata: { name: 'ghost', uid: 'gone' } };
    const impostor = { metadata: { name: 'owner', uid: 'other' } };
    await api.ok(`POST ${maps}`, configMap('a', {}, ownedBy([ghost])));
    await api.ok(`POST ${maps}`, configMap('b', {}, ownedBy([impostor])));
    await api.time.advance(1_000);
    expect(await names(api)).toEqual(['owner']);
  });

  test('two owners, one goes -> the dependent stays with the other one alone', async () => {
    const api = await createTestApi();
    const owners = [await api.ok(`POST ${maps}`, configMap('one')), await api.ok(`POST ${maps}`, configMap('two'))];
    await api.ok(`POST ${maps}`, configMap('child', {}, ownedBy(owners)));
    await api.ok(`DELETE ${maps}/one`);
    await api.time.advance(1_000);
    const { metadata } = await api.ok(`GET ${maps}/child`);
    expect(metadata.ownerReferences.map(({ name }: { name: string }) => name)).toEqual(['two']);
    await api.ok(`DELETE ${maps}/two`);
    await api.time.advance(1_000);
    expect(await names(api)).toEqual([]);
  });

  test('owners and dependents of other kinds, custom ones too -> the same', async () => {
    const api = await createTestApi({ definitions: [widgetDefinition()] });
    const owner = await api.ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    const reference = { apiVersion: 'example.com/v1beta1', kind: 'Widget', name: 'w', uid: owner.metadata.uid };
    await api.ok(`POST ${maps}`, configMap('of-widget', {}, { ownerReferences: [reference] }));
    await api.ok('DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com');
    await api.time.advance(5_000);
    expect(await names(api)).toEqual([]);
  });

  test('an owner whose kind is no longer served when its dependent is looked at -> the dependent still goes', async () => {
    let letIn = () => {};
    const gate = new Promise<void>((resolve) => {
      letIn = resolve;
    });
    let isGateUsed = false;
    const api = await createTestApi({
      definitions: [widgetDefinition()],
      wrapStore: (inner) =>
        withMethods(inner, {
          get: (key) => (isGateUsed && key.endsWith('/of-widget') ? gate.then(() => inner.get(key)) : inner.get(key)),
        }),
    });
    const owner = await api.ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    const reference = { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: owner.metadata.uid };
    await api.ok(`POST ${maps}`, configMap('of-widget', {}, { ownerReferences: [reference] }));
    await api.time.advance(1_000);
    isGateUsed = true;
    await api.ok('DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com');
    await api.time.advance(5_000);
    expect((await api.send(`GET ${widgets}`)).status).toBe(404);
    isGateUsed = false;
    letIn();
    await api.time.advance(5_000);
    expect(await names(api)).toEqual([]);
  });

  test.each([
    [['a'], ['a']],
    [['a', 'b'], ['a']],
    [['a', 'b', 'c'], ['a']],
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  ])('owners in a circle %j that block each other, %j deleted in the foreground -> all go', async (circle, deleted) => {
    const api = await createTestApi();
    const made: Meta[] = [];
    for (const name of circle) made.push(await api.ok(`POST ${maps}`, configMap(name)));
    for (const [index, name] of circle.entries()) {
      const owner = made[(index + circle.length - 1) % circle.length]!;
      const metadata = ownedBy([owner], { blockOwnerDeletion: true });
      await api.ok(`PATCH ${maps}/${name}`, { metadata }, merge);
    }
    for (const name of deleted) await api.ok(`DELETE ${maps}/${name}?propagationPolicy=Foreground`);
    await api.time.advance(1_000);
    expect(await names(api)).toEqual([]);
  });

  test('an owner of a kind that is not served -> left alone', async () => {
    const api = await createTestApi();
    const reference = { apiVersion: 'nobody.example.com/v1', kind: 'Ghost' };
    await api.ok(`POST ${maps}`, configMap('a', {}, ownedBy([{ metadata: { name: 'x', uid: 'x' } }], reference)));
    await api.time.advance(60_000);
    expect(await names(api)).toEqual(['a']);
  });

  test('what lost its owner while nobody was looking -> collected at the next start', async () => {
    const api = await createTestApi({ isStarted: false });
    await api.store.commit({
      compares: [],
      writes: [
        { key: '/registry/core/namespaces/default', value: Buffer.from('{"metadata":{"name":"default","uid":"u"}}') },
      ],
    });
    await api.ok(`POST ${maps}`, configMap('a', {}, ownedBy([{ metadata: { name: 'ghost', uid: 'gone' } }])));
    expect(await names(api)).toEqual(['a']);
    await api.api.start();
    await api.time.advance(1_000);
    expect(await names(api)).toEqual([]);
  });
});
