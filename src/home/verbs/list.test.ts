import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, settle, type TestApi, widgetDefinition } from '../testing/test-api.ts';
import { parseSelection } from './selectors.ts';

const maps = '/api/v1/namespaces/default/configmaps';

function namesOf(list: { items: { metadata: { name: string } }[] }): string[] {
  return list.items.map((item) => item.metadata.name);
}

async function withMaps(count: number): Promise<TestApi> {
  const api = await createTestApi();
  for (let index = 0; index < count; index++) {
    await api.ok(
      `POST ${maps}`,
      configMap(`m${index}`, {}, { labels: { app: index % 2 ? 'odd' : 'even', n: `${index}` } }),
    );
  }
  return api;
}

describe('list', () => {
  test('everything -> items in order, complete objects, the revision of the store', async () => {
    const { ok, store } = await withMaps(3);
    const list = await ok(`GET ${maps}`);
    expect(list).toMatchObject({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: String(store.revision()) },
    });
    expect(namesOf(list)).toEqual(['m0', 'm1', 'm2']);
    // Go programs compare what they list with what they got, and of built-in kinds Kubernetes says the kind once.
    expect({ apiVersion: 'v1', kind: 'ConfigMap', ...list.items[0] }).toEqual(await ok(`GET ${maps}/m0`));
    expect(Object.keys(list.items[0])).not.toContain('kind');
    expect(list.metadata.continue).toBeUndefined();
  });

  test('nothing -> an empty list, not null', async () => {
    const { ok } = await createTestApi();
    expect((await ok(`GET ${maps}`)).items).toEqual([]);
  });

  test('all namespaces, one namespace -> as asked', async () => {
    const { ok } = await withMaps(1);
    await ok('POST /api/v1/namespaces/kube-system/configmaps', configMap('k'));
    expect(namesOf(await ok('GET /api/v1/configmaps'))).toEqual(['m0', 'k']);
    expect(namesOf(await ok('GET /api/v1/namespaces/kube-system/configmaps'))).toEqual(['k']);
  });

  test('limit and continue -> pages at one revision, whatever happens meanwhile', async () => {
    const { ok, store } = await withMaps(5);
    const first = await ok(`GET ${maps}?limit=2`);
    expect(namesOf(first)).toEqual(['m0', 'm1']);
    expect(first.metadata.remainingItemCount).toBe(3);
    const revision = String(store.revision());
    await ok(`DELETE ${maps}/m3`);
    await ok(`POST ${maps}`, configMap('m33'));
    const second = await ok(`GET ${maps}?limit=2&continue=${first.metadata.continue}`);
    expect(namesOf(second)).toEqual(['m2', 'm3']);
    expect(second.metadata).toMatchObject({ resourceVersion: revision, remainingItemCount: 1 });
    const third = await ok(`GET ${maps}?limit=2&continue=${second.metadata.continue}`);
    expect(namesOf(third)).toEqual(['m4']);
    expect(third.metadata).toEqual({ resourceVersion: revision });
  });

  test('a continue token whose revision was compacted -> 410 Expired, with a token for the inconsistent rest', async () => {
    const { ok, send, store } = await withMaps(4);
    const first = await ok(`GET ${maps}?limit=2`);
    await ok(`POST ${maps}`, configMap('m9'));
    await store.compact(store.revision());
    const { status, body } = await send(`GET ${maps}?limit=2&continue=${first.metadata.continue}`);
    expect([status, body.reason]).toEqual([410, 'Expired']);
    expect(body.message).toContain('the continue token is too old');
    const rest = await ok(`GET ${maps}?limit=10&continue=${body.metadata.continue}`);
    expect(namesOf(rest)).toEqual(['m2', 'm3', 'm9']);
  });

  test('limit with a selector -> pages are filled, the count of the rest is not told', async () => {
    const { ok } = await withMaps(7);
    const first = await ok(`GET ${maps}?limit=2&labelSelector=app=even`);
    expect(namesOf(first)).toEqual(['m0', 'm2']);
    expect(first.metadata.remainingItemCount).toBeUndefined();
    const second = await ok(`GET ${maps}?limit=2&labelSelector=app=even&continue=${first.metadata.continue}`);
    expect(namesOf(second)).toEqual(['m4', 'm6']);
    expect(second.metadata.continue).toBeUndefined();
  });

  test.each([
    ['continue=nonsense', 400, 'continue key is not valid'],
    [`continue=${token(1, '')}`, 400, 'continue key is not valid'],
    [`continue=${token(0, 'a')}`, 400, 'continue key is not valid'],
    [`continue=${token(-2, 'a')}`, 400, 'continue key is not valid'],
    [`continue=${token(1e300, 'a')}`, 400, 'continue key is not valid'],
    [
      `continue=${Buffer.from('{"v":1,"rev":1,"after":"x"}').toString('base64url')}&resourceVersion=5`,
      400,
      'resourceVersion and continue exclude each other',
    ],
    ['resourceVersion=x', 400, 'resourceVersion: Invalid value: "x"'],
    ['resourceVersionMatch=Exact', 422, 'only together with resourceVersion'],
    ['resourceVersionMatch=Exact&resourceVersion=0', 422, 'Exact needs a resourceVersion other than 0'],
    ['resourceVersionMatch=About&resourceVersion=1', 422, 'resourceVersionMatch: Unsupported value: "About"'],
    ['sendInitialEvents=true', 422, 'sendInitialEvents: Forbidden: only for watch'],
    ['limit=ten', 400, 'limit: "ten" is not a whole number'],
  ])('?%s -> refused', async (query, status, message) => {
    const { send } = await withMaps(1);
    const reply = await send(`GET ${maps}?${query}`);
    expect(reply.body.message).toContain(message);
    expect(reply.status).toBe(status);
  });

  test('resourceVersion -> 0 and not-older-than give the newest, exact gives that state', async () => {
    const { ok, store } = await withMaps(2);
    const then = store.revision();
    await ok(`POST ${maps}`, configMap('later'));
    const newest = ['m0', 'm1', 'later'].sort();
    expect(namesOf(await ok(`GET ${maps}?resourceVersion=0`)).sort()).toEqual(newest);
    expect(namesOf(await ok(`GET ${maps}?resourceVersion=${then}`)).sort()).toEqual(newest);
    expect(namesOf(await ok(`GET ${maps}?resourceVersion=${then}&resourceVersionMatch=NotOlderThan`)).sort()).toEqual(
      newest,
    );
    const exact = await ok(`GET ${maps}?resourceVersion=${then}&resourceVersionMatch=Exact`);
    expect([namesOf(exact), exact.metadata.resourceVersion]).toEqual([['m0', 'm1'], String(then)]);
    expect(namesOf(await ok(`GET ${maps}?resourceVersion=${then}&limit=10`))).toEqual(['m0', 'm1']);
  });

  test('an exact revision that was compacted -> 410 Expired', async () => {
    const { ok, send, store } = await withMaps(2);
    const then = store.revision();
    await ok(`POST ${maps}`, configMap('later'));
    await store.compact(store.revision());
    const { status, body } = await send(`GET ${maps}?resourceVersion=${then}&resourceVersionMatch=Exact`);
    expect([status, body.reason]).toEqual([410, 'Expired']);
    expect(body.message).toBe('the resourceVersion is too old to list at; list without one');
  });

  test('a revision from the future that comes -> the list waits for it', async () => {
    const { ok, store } = await withMaps(1);
    const waiting = ok(`GET ${maps}?resourceVersion=${store.revision() + 1}`);
    await settle();
    await ok(`POST ${maps}`, configMap('new'));
    expect(namesOf(await waiting).sort()).toEqual(['m0', 'new']);
  });

  test('a revision from the future that does not come -> 504 Timeout, cause ResourceVersionTooLarge', async () => {
    const { send, store, time } = await withMaps(1);
    const now = store.revision();
    for (const path of [maps, `${maps}/m0`]) {
      const waiting = send(`GET ${path}?resourceVersion=${now + 100}`);
      await time.advance(3_000);
      const { status, headers, body } = await waiting;
      expect([status, body.reason, headers['retry-after']]).toEqual([504, 'Timeout', '1']);
      expect(body.message).toBe(`Timeout: Too large resource version: ${now + 100}, current: ${now}`);
      expect(body.details.causes[0].reason).toBe('ResourceVersionTooLarge');
    }
  });
});

describe('selectors', () => {
  test.each([
    ['labelSelector=app=even', ['m0', 'm2']],
    ['labelSelector=app%3D%3Deven', ['m0', 'm2']],
    ['labelSelector=app!=even', ['bare', 'm1', 'm3']],
    ['labelSelector=app in (even, odd)', ['m0', 'm1', 'm2', 'm3']],
    ['labelSelector=app notin (even)', ['bare', 'm1', 'm3']],
    ['labelSelector=app', ['m0', 'm1', 'm2', 'm3']],
    ['labelSelector=!app', ['bare']],
    ['labelSelector=app=even,n!=0', ['m2']],
    ['labelSelector=app in (even),n in (0,1)', ['m0']],
    ['labelSelector=', ['bare', 'm0', 'm1', 'm2', 'm3']],
    ['fieldSelector=metadata.name=m1', ['m1']],
    ['fieldSelector=metadata.name!=m1', ['bare', 'm0', 'm2', 'm3']],
    ['fieldSelector=metadata.namespace=other', []],
    ['fieldSelector=metadata.name=m1,metadata.namespace=default', ['m1']],
    ['fieldSelector=metadata.name=m1&labelSelector=app=even', []],
  ])('%s', async (query, names) => {
    const { ok } = await withMaps(4);
    await ok(`POST ${maps}`, configMap('bare'));
    const path = query.replaceAll(' ', '+').replace('app=even', 'app%3Deven');
    expect(namesOf(await ok(`GET ${maps}?${path}`))).toEqual(names);
  });

  test('a field of the kind -> selected by its value', async () => {
    const { ok } = await createTestApi();
    const pod = (name: string, nodeName: string) => ({
      metadata: { name },
      spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    });
    await ok('POST /api/v1/namespaces/default/pods', pod('a', 'n1'));
    await ok('POST /api/v1/namespaces/default/pods', pod('b', 'n2'));
    expect(namesOf(await ok('GET /api/v1/pods?fieldSelector=spec.nodeName=n2'))).toEqual(['b']);
  });

  test.each([
    ['labelSelector=a+b', 'unable to parse requirement'],
    ['labelSelector=a+in+(', 'unable to parse requirement'],
    ['labelSelector=a+in+x', 'unable to parse requirement'],
    ['labelSelector=a%3D%3D%3Db', 'unable to parse requirement'],
    ['labelSelector=,', 'unable to parse requirement'],
    ['labelSelector=-a=b', 'name part must be letters'],
    ['labelSelector=a%3D_b', 'must be letters, digits'],
    [
      'fieldSelector=spec.nope=1',
      '"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ['fieldSelector=metadata.name', "can't understand"],
  ])('%s -> 400', async (query, message) => {
    const { send } = await withMaps(1);
    for (const watch of ['', '&watch=true']) {
      const { status, body } = await send(`GET ${maps}?${query}${watch}`);
      expect([status, body.reason]).toEqual([400, 'BadRequest']);
      expect(body.message).toContain(message);
    }
  });
});

describe('forms of an answer', () => {
  const table = {
    accept:
      'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
  };

  test('Table of a built-in kind -> columns, cells, metadata of each row', async () => {
    const { ok, time } = await createTestApi();
    await ok('POST /api/v1/namespaces/default/services', { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    await time.advance(90_000);
    const list = await ok('GET /api/v1/namespaces/default/services?limit=500', undefined, table);
    expect(list).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(list.columnDefinitions.map((column: { name: string }) => column.name).slice(0, 5)).toEqual([
      'Name',
      'Type',
      'Cluster-IP',
      'External-IP',
      'Port(s)',
    ]);
    const row = list.rows[0];
    expect(row.cells.slice(0, 2)).toEqual(['s', 'ClusterIP']);
    expect(row.cells).toContain('90s');
    expect(row.object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 's' },
    });
    expect(row.object.spec).toBeUndefined();
  });

  test.each([
    ['None', undefined],
    ['Object', { kind: 'Widget', spec: { size: 4 } }],
    ['Metadata', { kind: 'PartialObjectMetadata' }],
  ])(
    'Table with includeObject=%s of a custom kind -> printer columns, and that much of the object',
    async (include, object) => {
      const { ok } = await createTestApi({ definitions: [widgetDefinition()] });
      const widgets = '/apis/example.com/v1/namespaces/default/widgets';
      await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 4 } });
      for (const path of [widgets, `${widgets}/w`]) {
        const { rows, columnDefinitions } = await ok(`GET ${path}?includeObject=${include}`, undefined, table);
        expect(columnDefinitions.map((column: { name: string }) => column.name)).toEqual(['Name', 'Size']);
        expect(rows[0].cells).toEqual(['w', 4]);
        if (object === undefined) expect(rows[0].object).toBeUndefined();
        else expect(rows[0].object).toMatchObject(object);
      }
    },
  );

  test('PartialObjectMetadata -> metadata alone, of an object and of a list', async () => {
    const { ok } = await withMaps(1);
    const one = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' };
    const many = {
      accept:
        'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
    };
    const object = await ok(`GET ${maps}/m0`, undefined, one);
    expect(Object.keys(object).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
    const list = await ok(`GET ${maps}`, undefined, many);
    expect(list.kind).toBe('PartialObjectMetadataList');
    expect(list.items[0]).toEqual(object);
  });

  test.each([
    ['application/json', 200],
    ['*/*', 200],
    ['application/vnd.kubernetes.protobuf, application/json', 200],
    ['application/vnd.kubernetes.protobuf, */*;q=0.5', 200],
    ['application/json;as=Frieze;v=v1;g=meta.k8s.io,application/json', 200],
    ['application/vnd.kubernetes.protobuf', 406],
    ['application/json;as=Frieze;v=v1;g=meta.k8s.io', 406],
    ['text/html', 406],
    ['application/json;q=0', 406],
  ])('Accept: %s -> %i', async (accept, status) => {
    const { send } = await withMaps(1);
    const reply = await send(`GET ${maps}/m0`, undefined, { accept });
    expect(reply.status).toBe(status);
    if (status === 406) expect(reply.body.reason).toBe('NotAcceptable');
  });
});

test.each([
  ['json', 'application/json', 3],
  ['a table', 'application/json;as=Table;v=v1;g=meta.k8s.io', 6],
  ['metadata', 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', 6],
])('list: a long one as %s -> made chunk by chunk, the same JSON', async (_form, accept, chunkCount) => {
  const { api, ok } = await createTestApi();
  for (let index = 0; index < 2500; index++) await ok(`POST ${maps}`, configMap(`m${index}`));
  const { body } = await api.handle({ method: 'GET', path: maps, headers: { accept } });
  const chunks: Uint8Array[] = [];
  for await (const chunk of body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  expect(chunks).toHaveLength(chunkCount);
  const { items, rows } = JSON.parse(Buffer.concat(chunks).toString());
  expect(items ?? rows).toHaveLength(2500);
});

test('list: a label selector -> objects whose bytes show that they do not match are not parsed', () => {
  const kind = { behaviour: {} } as never;
  const select = (text: string) => parseSelection(kind, new URLSearchParams({ labelSelector: text }));
  const value = '{"metadata":{"name":"a","labels":{"app":"x"}}}';
  const answers = ['app=x', 'app=y', 'app', 'tier', 'app in (x,y)', 'tier in (x,y)', 'app!=x', '!app'].map((text) =>
    select(text).mayMatch(value),
  );
  expect(answers).toEqual([true, false, true, false, true, false, true, true]);
});

function token(rev: number, after: string): string {
  return Buffer.from(JSON.stringify({ v: 1, rev, after })).toString('base64url');
}
