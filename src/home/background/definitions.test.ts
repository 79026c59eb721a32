import { describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createApi } from '../api.ts';
import { customResourceDefinitionKind } from '../kinds/custom-resource-definition.ts';
import { builtinKinds } from '../kinds/index.ts';
import { allowAll, createTestApi, settle, widgetDefinition } from '../testing/test-api.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';
const merge = { 'content-type': 'application/merge-patch+json' };
const widget = (name: string, metadata: object = {}) => ({ metadata: { name, ...metadata }, spec: { size: 1 } });

describe('definitions', () => {
  test('created -> Established, served in all its versions and in discovery without a restart', async () => {
    const { ok, send, api } = await createTestApi();
    expect((await send(`GET ${widgets}`)).status).toBe(404);
    await ok(`POST ${definitions}`, widgetDefinition());
    await api.whenIdle();
    const { status, metadata } = await ok(`GET ${definitions}/widgets.example.com`);
    const conditions = status.conditions.map(
      ({ type, status: is }: { type: string; status: string }) => `${type}=${is}`,
    );
    expect(conditions).toEqual(['NamesAccepted=True', 'Established=True']);
    expect(status.acceptedNames.plural).toBe('widgets');
    expect(status.storedVersions).toEqual(['v1']);
    expect(metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io']);
    expect(metadata.generation).toBe(1);
    await ok(`POST ${widgets}`, widget('w'));
    const beta = await ok(`GET ${widgets.replace('v1', 'v1beta1')}/w`);
    expect(beta).toMatchObject({ apiVersion: 'example.com/v1beta1', kind: 'Widget', spec: { size: 1 } });
    expect((await ok('GET /apis/example.com/v1')).resources[0].name).toBe('widgets');
    expect(JSON.stringify(await ok('GET /openapi/v3'))).toContain('apis/example.com/v1');
  });

  test('changed -> the new schema counts, open watches end so that their readers start anew', async () => {
    const { ok, send, api, watch } = await createTestApi({ definitions: [widgetDefinition()] });
    const watching = (await watch(`${widgets}?watch=true`)).read();
    const definition = await ok(`GET ${definitions}/widgets.example.com`);
    definition.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.maximum = 100;
    expect((await send(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 50 } })).status).toBe(422);
    await ok(`PUT ${definitions}/widgets.example.com`, definition);
    await api.whenIdle();
    await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 50 } });
    expect(watching.isEnded).toBe(true);
  });

  test('names that are taken -> not accepted, not served; free again -> served', async () => {
    const { ok, send, api } = await createTestApi({ definitions: [widgetDefinition()] });
    const rival = widgetDefinition();
    rival.metadata.name = 'gadgets.example.com';
    (rival['spec'] as { names: object }).names = {
      plural: 'gadgets',
      singular: 'gadget',
      kind: 'Widget',
      listKind: 'GadgetList',
    };
    await ok(`POST ${definitions}`, rival);
    await api.whenIdle();
    const { status } = await ok(`GET ${definitions}/gadgets.example.com`);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'NamesAccepted', status: 'False', reason: 'KindConflict' }),
    );
    expect((await send('GET /apis/example.com/v1/gadgets')).status).toBe(404);
    await ok(`DELETE ${definitions}/widgets.example.com`);
    await api.whenIdle();
    expect((await send('GET /apis/example.com/v1/gadgets')).status).toBe(200);
  });

  test('in the place of a built-in kind, its status forged -> never served, and its deletion leaves the built-in objects alone', async () => {
    const { ok, send, api } = await createTestApi();
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
    await ok(`POST ${leases}`, { metadata: { name: 'mine' } });
    const names = { plural: 'leases', singular: 'lease', kind: 'Lease', listKind: 'LeaseList' };
    const rival = widgetDefinition();
    rival.metadata = { name: 'leases.coordination.k8s.io', annotations: { 'api-approved.kubernetes.io': 'me' } };
    Object.assign(rival['spec'] as object, { group: 'coordination.k8s.io', names });
    await ok(`POST ${definitions}`, rival);
    await api.whenIdle();
    const forged = { acceptedNames: names, conditions: [{ type: 'Established', status: 'True', reason: 'Forged' }] };
    await ok(`PATCH ${definitions}/leases.coordination.k8s.io/status`, { status: forged }, merge);
    await api.whenIdle();
    const { status } = await ok(`GET ${definitions}/leases.coordination.k8s.io`);
    expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'False' }));
    expect((await send(`GET ${leases.replace('v1', 'v1beta1')}`)).status).toBe(404);
    await ok(`DELETE ${definitions}/leases.coordination.k8s.io`);
    await api.whenIdle();
    expect((await ok(`GET ${leases}/mine`)).metadata.name).toBe('mine');
  });

  test('deleted -> its objects go first, then it is no longer served and watches end', async () => {
    const { ok, send, api, watch, store, time } = await createTestApi({ definitions: [widgetDefinition()] });
    await ok(`POST ${widgets}`, widget('a'));
    await ok(`POST ${widgets}`, widget('held', { finalizers: ['example.com/hold'] }));
    const watching = (await watch(`${widgets}?watch=true`)).read();
    await ok(`DELETE ${definitions}/widgets.example.com`);
    await api.whenIdle();
    expect(
      (await ok(`GET ${widgets}`)).items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ).toEqual(['held']);
    const refused = await send(`POST ${widgets}`, widget('new'));
    expect([refused.status, refused.body.message]).toEqual([
      405,
      'nothing can be created while the definition of the kind is being deleted',
    ]);
    await ok(`PATCH ${widgets}/held`, { metadata: { finalizers: null } }, merge);
    await time.advance(5_000);
    expect((await send(`GET ${widgets}`)).status).toBe(404);
    expect((await send(`GET ${definitions}/widgets.example.com`)).status).toBe(404);
    await settle();
    expect(watching.names).toEqual(['ADDED a', 'ADDED held', 'DELETED a', 'MODIFIED held', 'DELETED held']);
    expect(watching.isEnded).toBe(true);
    expect((await store.range({ prefix: '/registry/example.com/' })).entries).toEqual([]);
  });

  test('a restart -> what was served is served at once, before the parts behind have started', async () => {
    const { ok, store, time } = await createTestApi({ definitions: [widgetDefinition()] });
    await ok(`POST ${widgets}`, widget('a'));
    const kinds = builtinKinds({
      serviceRanges: ['10.96.0.0/16'],
      random: time.world.random,
      extra: [customResourceDefinitionKind],
    });
    const again = await createApi({ world: time.world, store, kinds, access: allowAll, log: silentLog });
    expect((await again.handle({ method: 'GET', path: `${widgets}/a`, headers: {} })).status).toBe(200);
  });

  test('ensured -> created when missing, updated when different, left alone when the same', async () => {
    const { ok, api, store } = await createTestApi();
    await api.ensureDefinitions([widgetDefinition()]);
    await ok(`POST ${widgets}`, widget('a'));
    await api.whenIdle();
    const before = store.revision();
    await api.ensureDefinitions([widgetDefinition()]);
    await api.whenIdle();
    expect(store.revision()).toBe(before);
    const changed = widgetDefinition();
    (changed['spec'] as { names: { shortNames: string[] } }).names.shortNames = ['wdg'];
    await api.ensureDefinitions([changed]);
    expect((await ok('GET /apis/example.com/v1')).resources[0].shortNames).toEqual(['wdg']);
    expect((await ok(`GET ${definitions}/widgets.example.com`)).metadata.generation).toBe(2);
  });

  test('an invalid one -> 422, and nothing is served', async () => {
    const { send } = await createTestApi();
    const wrong = widgetDefinition();
    wrong.metadata.name = 'other.example.com';
    const { status, body } = await send(`POST ${definitions}`, wrong);
    expect([status, body.details.causes[0].field]).toEqual([422, 'metadata.name']);
  });
});
