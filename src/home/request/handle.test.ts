import { describe, expect, test } from 'vitest';
import type { Access, ApiRequest, Attributes } from '../model/access.ts';
import { StatusError } from '../model/status.ts';
import { type Store, StoreUnavailableError } from '../store/store.ts';
import { allowAll, configMap, createTestApi, widgetDefinition, withMethods } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';

describe('options of every request', () => {
  test.each(['invalid', '5', '1x', 's', '-', '1s1'])('timeout=%s -> 400', async (timeout) => {
    const { send } = await createTestApi();
    const { status, body } = await send(`GET ${maps}?timeout=${timeout}`);
    expect([status, body.reason]).toEqual([400, 'BadRequest']);
    expect(body.message).toBe(`invalid timeout specified in the request URL - time: invalid duration "${timeout}"`);
  });

  test('of what is no resource, too -> 400', async () => {
    const { send } = await createTestApi();
    expect((await send('GET /version?timeout=invalid')).status).toBe(400);
    expect((await send('GET /version?timeout=3m')).status).toBe(200);
  });

  test.each(['', '0', '1s', '1.5s', '1m30s', '500ms', '.5h'])('timeout=%s -> 200', async (timeout) => {
    const { send } = await createTestApi();
    expect((await send(`GET ${maps}?timeout=${timeout}`)).status).toBe(200);
  });
});

describe('what is not there', () => {
  test.each([
    ['GET /api/v1/nosuchthings', 404],
    ['GET /apis/none.example.com/v1/things', 404],
    ['GET /apis/apps/v9/deployments', 404],
    ['GET /api/v1/namespaces/default/namespaces/x', 404],
    ['GET /api/v1/configmaps/a', 404],
    ['GET /api/v1/namespaces/default/nodes', 404],
    [`GET ${maps}/a/nosuchsubresource`, 404],
    [`POST ${maps}/a/status`, 404],
    ['GET /nowhere', 404],
    ['GET /apis/nowhere', 404],
    ['GET /api/v2', 404],
    [`GET ${maps}/a%2Fb`, 404],
    [`GET ${maps}/%E0%A4%A`, 404],
  ])('%s -> %i, a Status in the words of Kubernetes', async (line, status) => {
    const { send } = await createTestApi();
    const reply = await send(line);
    expect(reply.status).toBe(status);
    expect(reply.body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 });
    expect(reply.body.message).toBe('the server could not find the requested resource');
  });

  test.each([
    `PUT ${maps}`,
    `POST ${maps}/a`,
    `PATCH ${maps}`,
    `BREW ${maps}/a`,
    'POST /api/v1/configmaps',
    'POST /version',
    'DELETE /api/v1/namespaces/default/pods/p/status',
  ])('%s -> 405', async (line) => {
    const { send } = await createTestApi();
    const { status, body } = await send(line, {});
    expect([status, body.reason]).toEqual([405, 'MethodNotAllowed']);
    expect(body.message).toBe('the server does not allow this method on the requested resource');
  });
});

describe('access', () => {
  const asking = (isAllowed: boolean): { access: Access; asked: Attributes[] } => {
    const asked: Attributes[] = [];
    const authorize: Access['authorize'] = (_user, attributes) => {
      asked.push(attributes);
      return { isAllowed, reason: '' };
    };
    return { access: { authenticate: async () => ({ name: 'ann', groups: [] }), authorize }, asked };
  };

  test.each([
    [
      'GET /api/v1/namespaces/y/services',
      'services is forbidden: User "ann" cannot list resource "services" in API group "" in the namespace "y"',
    ],
    [
      'GET /api/v1/services?watch=true',
      'services is forbidden: User "ann" cannot watch resource "services" in API group "" at the cluster scope',
    ],
    [
      'GET /api/v1/namespaces/y/services/s',
      'services "s" is forbidden: User "ann" cannot get resource "services" in API group "" in the namespace "y"',
    ],
    [
      'PUT /apis/apps/v1/namespaces/y/deployments/d/status',
      'deployments.apps "d" is forbidden: User "ann" cannot update resource "deployments/status" in API group "apps" in the namespace "y"',
    ],
    [
      'POST /apis/apps/v1/namespaces/y/deployments',
      'deployments.apps is forbidden: User "ann" cannot create resource "deployments" in API group "apps" in the namespace "y"',
    ],
    [
      'DELETE /api/v1/namespaces/y/pods',
      'pods is forbidden: User "ann" cannot deletecollection resource "pods" in API group "" in the namespace "y"',
    ],
    [
      'GET /api/v1/namespaces/y',
      'namespaces "y" is forbidden: User "ann" cannot get resource "namespaces" in API group "" in the namespace "y"',
    ],
    ['GET /metrics', 'forbidden: User "ann" cannot get path "/metrics"'],
    // The existence of an object is hidden from users who may not see it.
    [
      'GET /api/v1/nosuchthings',
      'nosuchthings is forbidden: User "ann" cannot list resource "nosuchthings" in API group "" at the cluster scope',
    ],
  ])('%s, not allowed -> 403 in the words of Kubernetes', async (line, message) => {
    const { send } = await createTestApi({ access: asking(false).access });
    const { status, body } = await send(line);
    expect(body.message).toBe(message);
    expect([status, body.reason]).toEqual([403, 'Forbidden']);
  });

  test('a body that comes from afar -> received once it is known that its sender may send it, and not before', async () => {
    const denied: Access = { ...allowAll, authorize: () => ({ isAllowed: false, reason: '' }) };
    for (const [access, expected] of [
      [denied, [403, false]],
      [allowAll, [201, true]],
    ] as const) {
      const { api } = await createTestApi({ access });
      let isReceived = false;
      const request: ApiRequest & { body?: Uint8Array } = {
        method: 'POST',
        path: maps,
        headers: {},
        receiveBody: async () => {
          isReceived = true;
          request.body = Buffer.from(JSON.stringify(configMap('a')));
        },
      };
      expect([(await api.handle(request)).status, isReceived]).toEqual(expected);
    }
  });

  test.each([
    [`GET ${maps}/a`, { verb: 'get', resource: 'configmaps', namespace: 'default', name: 'a' }],
    [`GET ${maps}`, { verb: 'list', name: '' }],
    [`GET ${maps}?watch=true`, { verb: 'watch' }],
    [`GET ${maps}?fieldSelector=metadata.name%3Da`, { verb: 'list', name: 'a' }],
    [`POST ${maps}`, { verb: 'create' }],
    [`PUT ${maps}/a`, { verb: 'update' }],
    [`PATCH ${maps}/a`, { verb: 'patch' }],
    [`DELETE ${maps}/a`, { verb: 'delete' }],
    [`DELETE ${maps}`, { verb: 'deletecollection' }],
    [
      'POST /api/v1/namespaces/n/serviceaccounts/sa/token',
      { verb: 'create', resource: 'serviceaccounts', subresource: 'token', name: 'sa' },
    ],
    [
      'PUT /api/v1/namespaces/n/status',
      { verb: 'update', resource: 'namespaces', subresource: 'status', namespace: 'n', name: 'n' },
    ],
    ['GET /apis/apps/v1/deployments', { verb: 'list', group: 'apps', version: 'v1', namespace: '' }],
    ['GET /openapi/v3', { verb: 'get', path: '/openapi/v3', resource: '' }],
  ])('%s -> asked for as', async (line, attributes) => {
    const { access, asked } = asking(true);
    const { api } = await createTestApi({ access });
    const [method = '', path = ''] = line.split(' ');
    await api.handle({ method, path, headers: {}, body: Buffer.from('{}') });
    expect(asked[0]).toMatchObject(attributes);
  });

  test('wrong credentials -> 401 and nothing else is said', async () => {
    const access: Access = {
      ...allowAll,
      authenticate: async () => {
        throw new StatusError('Unauthorized', 'Unauthorized');
      },
    };
    const { send } = await createTestApi({ access });
    const { status, body } = await send('GET /nowhere');
    expect([status, body.reason, body.message]).toEqual([401, 'Unauthorized', 'Unauthorized']);
  });
});

describe('discovery', () => {
  test('/api, /apis, /apis/G, /apis/G/V, /api/v1 -> groups, versions, resources with verbs and short names', async () => {
    const { ok } = await createTestApi({ definitions: [widgetDefinition()] });
    expect(await ok('GET /api')).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    const { groups } = await ok('GET /apis');
    const versions = [
      { groupVersion: 'example.com/v1', version: 'v1' },
      { groupVersion: 'example.com/v1beta1', version: 'v1beta1' },
    ];
    const group = { name: 'example.com', versions, preferredVersion: versions[0] };
    expect(groups).toContainEqual(group);
    expect(groups.map(({ name }: { name: string }) => name)).toContain('apps');
    expect(await ok('GET /apis/example.com')).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...group });
    const { resources } = await ok('GET /apis/example.com/v1');
    expect(resources).toEqual([
      {
        name: 'widgets',
        singularName: 'widget',
        namespaced: true,
        kind: 'Widget',
        verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
        shortNames: ['wd'],
        storageVersionHash: expect.stringMatching(/^[\w+/]{11}=$/),
      },
      { name: 'widgets/status', singularName: '', namespaced: true, kind: 'Widget', verbs: ['get', 'patch', 'update'] },
    ]);
    const core = await ok('GET /api/v1');
    expect(core.groupVersion).toBe('v1');
    const namespaces = core.resources.find(({ name }: { name: string }) => name === 'namespaces');
    expect(namespaces).toMatchObject({ namespaced: false, shortNames: ['ns'], singularName: 'namespace' });
  });

  test.each(['v2', 'v2beta1'])('aggregated, %s -> everything in two answers', async (version) => {
    const { send } = await createTestApi({ definitions: [widgetDefinition()] });
    const accept = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,application/json`;
    const { headers, body } = await send('GET /apis', undefined, { accept });
    expect(headers['content-type']).toBe(
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    );
    expect(body).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}` });
    const group = body.items.find((item: { metadata: { name?: string } }) => item.metadata.name === 'example.com');
    expect(group.versions.map((each: { version: string }) => each.version)).toEqual(['v1', 'v1beta1']);
    expect(group.versions[0]).toMatchObject({
      freshness: 'Current',
      resources: [
        {
          resource: 'widgets',
          responseKind: { group: 'example.com', version: 'v1', kind: 'Widget' },
          scope: 'Namespaced',
          singularResource: 'widget',
          shortNames: ['wd'],
          subresources: [{ subresource: 'status', verbs: ['get', 'patch', 'update'] }],
        },
      ],
    });
    const core = (await send('GET /api', undefined, { accept })).body;
    expect(core.items).toHaveLength(1);
    expect(core.items[0].versions[0].version).toBe('v1');
  });

  test('/openapi/v3 -> an index, documents that may be kept as long as their hash holds', async () => {
    const { ok, send } = await createTestApi({ definitions: [widgetDefinition()] });
    const { paths } = await ok('GET /openapi/v3');
    const url = paths['apis/example.com/v1'].serverRelativeURL;
    const { headers, body } = await send(`GET ${url}`);
    expect(headers['cache-control']).toBe('public, immutable');
    expect(JSON.stringify(body)).toContain('"kind":"Widget"');
    const again = await send(`GET ${url}`, undefined, { 'if-none-match': headers['etag']! });
    expect(again.status).toBe(304);
    expect((await send('GET /openapi/v3/apis/none/v1')).status).toBe(404);
  });

  test('/openapi/v2 of a kind that takes any field -> an object without properties', async () => {
    const { ok } = await createTestApi();
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const version = { name: 'v1', served: true, storage: true, schema };
    const widget = widgetDefinition();
    const definition = { ...widget, spec: { ...(widget['spec'] as object), versions: [version] } };
    await ok('POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    const { definitions } = await ok('GET /openapi/v2');
    const kinds = [{ group: 'example.com', version: 'v1', kind: 'Widget' }];
    expect(definitions['com.example.v1.Widget']).toEqual({ type: 'object', 'x-kubernetes-group-version-kind': kinds });
  });

  test('/openapi/v2 in JSON -> everything that is served, in the words of version 2', async () => {
    const { ok, send } = await createTestApi({ definitions: [widgetDefinition()] });
    const { swagger, paths, definitions } = await ok('GET /openapi/v2');
    expect(swagger).toBe('2.0');
    const widget = definitions['com.example.v1.Widget'];
    expect(widget.properties.spec.properties.size).toEqual({ type: 'integer', minimum: 1, maximum: 10 });
    expect(widget['x-kubernetes-group-version-kind']).toEqual([
      { group: 'example.com', kind: 'Widget', version: 'v1' },
    ]);
    const { post, parameters } = paths['/api/v1/namespaces/{namespace}/services'];
    const service = '#/definitions/io.k8s.api.core.v1.Service';
    expect(post.parameters[0]).toEqual({ name: 'body', in: 'body', required: true, schema: { $ref: service } });
    expect(post.responses['200'].schema).toEqual({ $ref: service });
    expect(parameters[0]).toMatchObject({ name: 'namespace', in: 'path', type: 'string' });
    const text = JSON.stringify({ paths, definitions });
    for (const word of ['components/schemas', '"oneOf":[', '"nullable":true', '"requestBody"'])
      expect(text).not.toContain(word);
    const targets = [...text.matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)].map(([, name]) => name!);
    expect(targets.filter((name) => !Object.hasOwn(definitions, name))).toEqual([]);
    const { headers } = await send('GET /openapi/v2');
    const again = await send('GET /openapi/v2', undefined, { 'if-none-match': headers['etag']! });
    expect(again.status).toBe(304);
    expect((await send('GET /openapi/v2', undefined, { accept: 'text/html' })).status).toBe(406);
  });

  test('/openapi/v2 in protobuf alone, as kubectl asks -> a document that describes nothing', async () => {
    const { api } = await createTestApi();
    const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
    const { status, headers, body } = await api.handle({ method: 'GET', path: '/openapi/v2', headers: { accept } });
    expect([status, headers['content-type']]).toEqual([200, accept.replace('@', '.')]);
    expect(Buffer.from(body as Uint8Array).toString('latin1')).toBe(
      '\n\x032.0\x12\x17\n\x08Portolan\x12\x0bunversionedB\x00',
    );
  });

  test('/version -> what kubectl reads', async () => {
    const { ok } = await createTestApi();
    expect(await ok('GET /version')).toMatchObject({ major: '1', gitVersion: expect.stringMatching(/^v1\./) });
  });
});

describe('health and metrics', () => {
  test('/livez, /readyz, /healthz -> ok; verbose -> each check', async () => {
    const { send } = await createTestApi();
    for (const path of ['/livez', '/readyz', '/healthz'])
      expect(await send(`GET ${path}`)).toMatchObject({ status: 200, body: 'ok' });
    expect((await send('GET /readyz?verbose')).body).toBe(
      '[+]ping ok\n[+]store ok\n[+]started ok\nreadyz check passed\n',
    );
  });

  test('before it has started -> alive, not ready', async () => {
    const { send } = await createTestApi({ isStarted: false });
    expect((await send('GET /livez')).status).toBe(200);
    const { status, body } = await send('GET /readyz');
    expect([status, body]).toEqual([503, expect.stringContaining('[-]started failed: the server is not started')]);
  });

  test('/metrics -> requests by verb, resource and code, durations, open watches', async () => {
    const { ok, send, watch } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    await send(`GET ${maps}/none`);
    await send('GET /api/v1/made-up-by-a-client');
    await watch(`${maps}?watch=true`);
    const { headers, body } = await send('GET /metrics');
    expect(headers['content-type']).toContain('text/plain');
    expect(body).toContain('portolan_api_requests_total{verb="create",resource="configmaps",code="201"} 1');
    expect(body).toContain('portolan_api_requests_total{verb="watch",resource="configmaps",code="200"} 1');
    expect(body).toContain('portolan_api_request_duration_seconds_count{verb="create",resource="configmaps"} 1');
    expect(body).toContain('portolan_api_open_watches 1');
    expect(body).not.toContain('made-up-by-a-client');
  });
});

describe('a store that fails', () => {
  const failing = (store: Store, state: { failure: Error | undefined }): Store =>
    withMethods(store, {
      commit: (request) => (state.failure ? Promise.reject(state.failure) : store.commit(request)),
      writeFailure: () => state.failure,
    });

  test('a full disk -> writes get 503 and the reason, reads go on, /readyz says it; then it takes writes again', async () => {
    const state: { failure: Error | undefined } = { failure: undefined };
    const { ok, send } = await createTestApi({ wrapStore: (store) => failing(store, state) });
    await ok(`POST ${maps}`, configMap('a'));
    state.failure = new StoreUnavailableError('the store takes no writes: the disk is full');
    const { status, headers, body } = await send(`POST ${maps}`, configMap('b'));
    expect([status, body.reason, body.message]).toEqual([
      503,
      'ServiceUnavailable',
      'the store takes no writes: the disk is full',
    ]);
    expect(headers['retry-after']).toBeDefined();
    expect((await send(`GET ${maps}/a`)).status).toBe(200);
    expect((await ok(`GET ${maps}`)).items).toHaveLength(1);
    const ready = await send('GET /readyz');
    expect([ready.status, ready.body]).toEqual([
      503,
      expect.stringContaining('[-]store failed: the store takes no writes: the disk is full'),
    ]);
    state.failure = undefined;
    expect((await send(`POST ${maps}`, configMap('b'))).status).toBe(201);
  });

  test('an error nobody has thought of -> 500 with a Status, and the server goes on', async () => {
    const state: { failure: Error | undefined } = { failure: undefined };
    const { send } = await createTestApi({ wrapStore: (store) => failing(store, state) });
    state.failure = new Error('bits fell out');
    const { status, body } = await send(`POST ${maps}`, configMap('b'));
    expect([status, body.reason, body.message]).toEqual([
      500,
      'InternalError',
      'Internal error occurred: bits fell out',
    ]);
    state.failure = undefined;
    expect((await send(`POST ${maps}`, configMap('b'))).status).toBe(201);
  });
});
