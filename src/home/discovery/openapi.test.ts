import { describe, expect, test } from 'vitest';
import { builtinKinds } from '../kinds/index.ts';
import type { Kind } from '../model/kind.ts';
import { TestTime } from '../testing/test-api.ts';
import { createOpenApi } from './openapi.ts';

const builtin = builtinKinds({ serviceRanges: ['10.96.0.0/16'], random: new TestTime().world.random });

const custom: Kind = {
  group: 'portolan.dev',
  kind: 'Peer',
  listKind: 'PeerList',
  plural: 'peers',
  singular: 'peer',
  shortNames: [],
  categories: [],
  isNamespaced: true,
  storageVersion: 'v1alpha1',
  versions: [
    {
      name: 'v1alpha1',
      isServed: true,
      hasStatus: false,
      columns: [],
      schema: {
        type: 'object',
        description: 'Another mesh.',
        properties: { spec: { type: 'object', properties: { address: { type: 'string' } } } },
      },
    },
  ],
  behaviour: { nameRule: 'dnsSubdomain' },
};

function source(initial: readonly Kind[]) {
  const state = { kinds: initial, generation: 1 };
  return { state, kinds: () => state.kinds, generation: () => state.generation };
}

const atOnce = async () => {};

test('openapi: paths without parameters of their own -> no empty list of them', async () => {
  const api = createOpenApi(source(builtin), atOnce);
  const document = await api.document('api/v1');
  const text = Buffer.concat([...document!.chunks]).toString('utf8');
  expect(text).toContain('"/api/v1/namespaces"');
  expect(text).not.toContain('"parameters":[]');
});

async function documentOf(path: string) {
  const document = await createOpenApi(source([...builtin, custom]), atOnce).document(path);
  return JSON.parse(Buffer.concat(document!.chunks).toString());
}

describe('openapi: the index', () => {
  test('every group and version -> an address with a hash', async () => {
    const { paths } = JSON.parse(await createOpenApi(source([...builtin, custom]), atOnce).index());
    expect(Object.keys(paths)).toEqual([
      'api/v1',
      'apis/apps/v1',
      'apis/coordination.k8s.io/v1',
      'apis/discovery.k8s.io/v1',
      'apis/events.k8s.io/v1',
      'apis/networking.k8s.io/v1',
      'apis/policy/v1',
      'apis/portolan.dev/v1alpha1',
    ]);
    expect(paths['apis/apps/v1'].serverRelativeURL).toMatch(/^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{32}$/);
  });

  test('a kind comes -> only the address of its group changes, and other documents are not made again', async () => {
    const from = source(builtin);
    const openApi = createOpenApi(from, atOnce);
    const before = JSON.parse(await openApi.index()).paths;
    const document = await openApi.document('api/v1');
    Object.assign(from.state, { kinds: [...builtin, custom], generation: 2 });
    const after = JSON.parse(await openApi.index()).paths;
    expect(after).toEqual({ ...before, 'apis/portolan.dev/v1alpha1': expect.anything() });
    expect(await openApi.document('api/v1')).toBe(document);
    const other = { ...custom, versions: [{ ...custom.versions[0]!, schema: { type: 'object' as const } }] };
    Object.assign(from.state, { kinds: [...builtin, other], generation: 3 });
    const path = 'apis/portolan.dev/v1alpha1';
    expect(JSON.parse(await openApi.index()).paths[path]).not.toEqual(after[path]);
  });
});

describe('openapi: a document', () => {
  test('every reference -> leads somewhere', async () => {
    for (const path of ['api/v1', 'apis/apps/v1', 'apis/discovery.k8s.io/v1', 'apis/portolan.dev/v1alpha1']) {
      const document = await documentOf(path);
      const names = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
        (match) => match[1]!,
      );
      expect(names.length).toBeGreaterThan(0);
      expect(names.filter((name) => document.components.schemas[name] === undefined)).toEqual([]);
    }
  });

  test('a kind -> named by group, version and kind, with what is required and how lists merge', async () => {
    const { schemas } = (await documentOf('api/v1')).components;
    expect(schemas['io.k8s.api.core.v1.Service']['x-kubernetes-group-version-kind']).toEqual([
      { group: '', version: 'v1', kind: 'Service' },
    ]);
    expect(schemas['io.k8s.api.core.v1.ServicePort'].required).toEqual(['port']);
    expect(schemas['io.k8s.api.core.v1.ServiceSpec'].properties.ports).toMatchObject({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      'x-kubernetes-patch-merge-key': 'port',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(schemas['io.k8s.apimachinery.pkg.util.intstr.IntOrString'].format).toBe('int-or-string');
  });

  test('what kubectl looks for before it sends a patch -> fieldValidation, dryRun, fieldManager', async () => {
    const { paths } = await documentOf('api/v1');
    const { patch } = paths['/api/v1/namespaces/{namespace}/services/{name}'];
    expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: '', version: 'v1', kind: 'Service' });
    const names = patch.parameters.map((parameter: { name: string }) => parameter.name);
    expect(names).toEqual(expect.arrayContaining(['fieldValidation', 'dryRun', 'fieldManager', 'force']));
    expect(paths).toHaveProperty(['/api/v1/namespaces/{name}']);
    expect(paths).toHaveProperty(['/api/v1/services']);
    expect(paths).toHaveProperty(['/api/v1/namespaces/{namespace}/services/{name}/status']);
  });

  test('a custom kind -> its own schema, with the metadata of all kinds', async () => {
    const { schemas } = (await documentOf('apis/portolan.dev/v1alpha1')).components;
    expect(schemas['dev.portolan.v1alpha1.Peer']).toMatchObject({
      description: 'Another mesh.',
      properties: {
        spec: { properties: { address: { type: 'string' } } },
        metadata: { allOf: [{ $ref: expect.stringContaining('ObjectMeta') }] },
      },
      'x-kubernetes-group-version-kind': [{ group: 'portolan.dev', version: 'v1alpha1', kind: 'Peer' }],
    });
  });

  test('many large kinds -> made in pieces, once for all that ask meanwhile', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [`f${at}`, { type: 'string' as const }]),
    );
    const kinds = Array.from({ length: 10 }, (_, at): Kind => {
      const schema = { type: 'object' as const, properties };
      return { ...custom, kind: `Peer${at}`, plural: `peers${at}`, versions: [{ ...custom.versions[0]!, schema }] };
    });
    let steps = 0;
    const openApi = createOpenApi(source(kinds), async () => void steps++);
    const path = 'apis/portolan.dev/v1alpha1';
    const [one, two] = await Promise.all([openApi.document(path), openApi.document(path), openApi.index()]);
    expect(one).toBe(two);
    expect(steps).toBeGreaterThan(15);
    expect(steps).toBeLessThan(30);
    const { schemas } = JSON.parse(Buffer.concat(one!.chunks).toString()).components;
    expect(Object.keys(schemas['dev.portolan.v1alpha1.Peer9'].properties)).toContain('f1999');
  });

  test('a version that is not served, or a group nobody knows -> nothing', async () => {
    const openApi = createOpenApi(source(builtin), atOnce);
    expect(await openApi.document('apis/apps/v2')).toBeUndefined();
    expect(await openApi.document('api/v2')).toBeUndefined();
  });
});
