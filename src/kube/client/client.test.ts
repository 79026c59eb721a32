import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import type { HttpRequest, HttpResponse } from '../../base/http.ts';
import { sleep } from '../../base/world.ts';
import {
  ApiError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  isUnauthorized,
} from '../objects/api-error.ts';
import { leaseType } from '../objects/lease.ts';
import type { AnyObject, ResourceType } from '../objects/object.ts';
import { json, status } from '../testing/scripted-home.ts';
import { type Client, createClient } from './client.ts';

const tops: ResourceType = { group: 'toys.test', version: 'v1', plural: 'tops', kind: 'Top', isNamespaced: true };
const nodes: ResourceType = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false };
const top: AnyObject = {
  apiVersion: 'toys.test/v1',
  kind: 'Top',
  metadata: { name: 'a', namespace: 'shop', resourceVersion: '4' },
};

describe('client', () => {
  const cases: [string, (client: Client) => Promise<unknown>, string][] = [
    [
      'get',
      (client) => client.get(tops, { namespace: 'shop', name: 'a' }),
      'GET /apis/toys.test/v1/namespaces/shop/tops/a',
    ],
    ['get of a cluster-scoped kind', (client) => client.get(nodes, { name: 'n 1' }), 'GET /api/v1/nodes/n%201'],
    [
      'list',
      (client) => client.list(tops, { namespace: 'shop', limit: 5, labelSelector: 'a=b' }),
      'GET /apis/toys.test/v1/namespaces/shop/tops?labelSelector=a%3Db&limit=5',
    ],
    ['list everywhere', (client) => client.list(tops), 'GET /apis/toys.test/v1/tops'],
    [
      'create',
      (client) => client.create(tops, top, { isDryRun: true }),
      `POST /apis/toys.test/v1/namespaces/shop/tops?dryRun=All application/json ${JSON.stringify(top)}`,
    ],
    [
      'update',
      (client) => client.update(tops, top),
      `PUT /apis/toys.test/v1/namespaces/shop/tops/a application/json ${JSON.stringify(top)}`,
    ],
    [
      'updateStatus',
      (client) => client.updateStatus(tops, top),
      `PUT /apis/toys.test/v1/namespaces/shop/tops/a/status application/json ${JSON.stringify(top)}`,
    ],
    [
      'merge patch',
      (client) => client.patch(tops, top.metadata, { kind: 'merge', body: { spin: 1 } }),
      'PATCH /apis/toys.test/v1/namespaces/shop/tops/a application/merge-patch+json {"spin":1}',
    ],
    [
      'json patch of the status',
      (client) =>
        client.patch(
          tops,
          top.metadata,
          { kind: 'json', body: [{ op: 'remove', path: '/x' }] },
          { subresource: 'status' },
        ),
      'PATCH /apis/toys.test/v1/namespaces/shop/tops/a/status application/json-patch+json [{"op":"remove","path":"/x"}]',
    ],
    [
      'apply',
      (client) =>
        client.patch(tops, top.metadata, { kind: 'apply', body: { spin: 1 }, fieldManager: 'me', isForced: true }),
      'PATCH /apis/toys.test/v1/namespaces/shop/tops/a?fieldManager=me&force=true application/apply-patch+yaml {"spin":1}',
    ],
    [
      'delete',
      (client) => client.delete(tops, top.metadata, { preconditions: { resourceVersion: '4' } }),
      'DELETE /apis/toys.test/v1/namespaces/shop/tops/a application/json {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"4"}}',
    ],
    [
      'deleteCollection',
      (client) => client.deleteCollection(tops, { namespace: 'shop', labelSelector: 'a=b' }),
      'DELETE /apis/toys.test/v1/namespaces/shop/tops?labelSelector=a%3Db application/json {"apiVersion":"v1","kind":"DeleteOptions"}',
    ],
    [
      'createSubresource',
      (client) => client.createSubresource(tops, { ...top.metadata, subresource: 'token' }, top),
      `POST /apis/toys.test/v1/namespaces/shop/tops/a/token application/json ${JSON.stringify(top)}`,
    ],
  ];
  test.each(cases)('client: %s -> the request Kubernetes defines', async (_verb, act, expected) => {
    const { sim, client, requests } = start(() => json(200, {}));
    await sim.time.settle(act(client));
    expect(requests).toEqual([expected]);
  });

  test('client: a list as Kubernetes answers it, types said once -> each item has its type; items null -> none', async () => {
    const { sim, client } = start((request) =>
      json(200, {
        kind: 'NodeList',
        metadata: {},
        items: request.path.includes('limit') ? null : [{ metadata: { name: 'n' } }],
      }),
    );
    const list = await sim.time.settle(client.list(nodes));
    expect(list.items).toEqual([{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }]);
    expect((await sim.time.settle(client.list(nodes, { limit: 5 }))).items).toEqual([]);
  });

  test('client: a Status -> ApiError with code, reason, details and the request it answers', async () => {
    const body = {
      kind: 'Status',
      message: 'tops.toys.test "a" is invalid',
      reason: 'Invalid',
      details: { name: 'a', causes: [{ field: 'spec' }] },
    };
    const { sim, client } = start(() => json(422, body));
    const error = await sim.time.settle(client.create(tops, top).catch((caught: ApiError) => caught));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: { name: 'a', causes: [{ field: 'spec' }] },
      message: 'POST /apis/toys.test/v1/namespaces/shop/tops: tops.toys.test "a" is invalid',
    });
  });

  test.each([
    [{ kind: 'Status', message: '', reason: 'Conflict' }, 'Conflict'],
    [{ kind: 'Status', message: null, reason: null, details: null }, 'HTTP 409'],
    [undefined, 'HTTP 409'],
  ])('client: an error that says nothing, %o -> its message is not empty', async (body, message) => {
    const { sim, client } = start(() => (body === undefined ? text(409, '') : json(409, body)));
    await expect(sim.time.settle(client.get(tops, { name: 'a' }))).rejects.toThrow(
      `GET /apis/toys.test/v1/tops/a: ${message}`,
    );
  });

  const kinds: [number, string, (error: unknown) => boolean][] = [
    [401, 'Unauthorized', isUnauthorized],
    [403, 'Forbidden', isForbidden],
    [404, 'NotFound', isNotFound],
    [409, 'Conflict', isConflict],
    [409, 'AlreadyExists', isAlreadyExists],
    [410, 'Expired', isGone],
    [422, 'Invalid', isInvalid],
  ];
  test.each(kinds)('client: %i %s -> told apart by its own helper alone', async (code, reason, matches) => {
    const { sim, client } = start(() => status(code, reason, 'no'));
    const error = await sim.time.settle(client.get(tops, { name: 'a' }).catch((caught) => caught));
    expect(kinds.filter(([, , helper]) => helper(error))).toEqual([[code, reason, matches]]);
  });

  test('client: an answer that is no Status or no JSON -> an error that quotes it', async () => {
    const answers = [text(502, 'bad gateway'), text(200, '<html>')];
    const { sim, client } = start(() => answers.shift()!);
    const first = client.get(tops, { name: 'a' });
    await expect(sim.time.settle(first)).rejects.toMatchObject({
      code: 502,
      reason: '',
      message: expect.stringContaining('bad gateway'),
    });
    await expect(sim.time.settle(client.get(tops, { name: 'a' }))).rejects.toThrow(/not JSON: <html>/);
  });

  test('client: 429 and 503 with Retry-After -> waited for and sent again, a write too', async () => {
    const answers = [
      json(429, {}, { 'retry-after': '2' }),
      json(503, {}, { 'retry-after': '3' }),
      json(201, { metadata: { name: 'a' } }),
    ];
    const { sim, client, requests } = start(() => answers.shift()!);
    await sim.time.settle(client.create(tops, top));
    expect(requests).toHaveLength(3);
    expect(sim.time.nowMs).toBeGreaterThan(5000);
  });

  test('client: 429 with Retry-After for ever -> given up after five more tries', async () => {
    const { sim, client, requests } = start(() => json(429, {}, { 'retry-after': '1' }));
    await expect(sim.time.settle(client.get(tops, { name: 'a' }))).rejects.toMatchObject({ code: 429 });
    expect(requests).toHaveLength(6);
  });

  test.each([429, 500, 503])('client: %i without Retry-After -> not sent again', async (code) => {
    const { sim, client, requests } = start(() => json(code, {}));
    await expect(sim.time.settle(client.create(tops, top))).rejects.toMatchObject({ code });
    expect(requests).toHaveLength(1);
  });

  test('client: a Lease that we wrote is patched, in both ways -> taken like any other object', async () => {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'a', namespace: 'shop' } };
    const { sim, client } = start(() => json(200, lease));
    await sim.time.settle(client.update(leaseType, lease));
    await sim.time.settle(client.patch(leaseType, lease.metadata, { kind: 'merge', body: { spec: {} } }));
    await sim.time.settle(client.patch(leaseType, lease.metadata, { kind: 'json', body: [] }));
  });

  test('client: the connection breaks under a write -> an error, not sent again', async () => {
    const { sim, client, requests } = start(() => {
      throw new Error('connection reset');
    });
    await expect(sim.time.settle(client.create(tops, top))).rejects.toThrow('connection reset');
    expect(requests).toHaveLength(1);
  });

  test('client: no answer -> fails after its time limit and says what was asked', async () => {
    const { sim, client } = start(() => new Promise(() => {}));
    const pending = client.get(tops, { name: 'a' }, { timeoutMs: 5000 });
    await expect(sim.time.settle(pending)).rejects.toThrow('GET /apis/toys.test/v1/tops/a: no answer within 5000 ms');
    expect(sim.time.nowMs).toBe(5000);
  });

  test('client: an answer that begins and never ends -> fails after its time limit', async () => {
    const body = (async function* () {
      yield Buffer.from('{');
      await new Promise(() => {});
    })();
    const { sim, client } = start(() => ({ status: 200, headers: {}, body }));
    await expect(sim.time.settle(client.get(tops, { name: 'a' }))).rejects.toThrow('no answer within 30000 ms');
  });

  test('client: the caller gives up -> rejected with its reason', async () => {
    const { sim, client } = start(() => new Promise(() => {}));
    const controller = new AbortController();
    const pending = client.get(tops, { name: 'a' }, { signal: controller.signal });
    controller.abort(new Error('had enough'));
    await expect(sim.time.settle(pending)).rejects.toThrow('had enough');
  });

  test('client: listPaged -> page after page until there is no more', async () => {
    const { sim, client, requests } = start(({ path }) => {
      const next = path.includes('continue=two') ? '' : path.includes('continue=one') ? 'two' : 'one';
      return json(200, { metadata: { resourceVersion: '9', continue: next }, items: [{}] });
    });
    const count = async () => {
      let pages = 0;
      for await (const page of client.listPaged(tops)) pages += page.items.length;
      return pages;
    };
    expect(await sim.time.settle(count())).toBe(3);
    expect(requests.map((path) => path.split('?')[1])).toEqual([
      'limit=500',
      'limit=500&continue=one',
      'limit=500&continue=two',
    ]);
  });

  test('client: listPaged -> the next page is asked for while its predecessor is looked at; it may fail unheard', async () => {
    const { sim, client, requests } = start(({ path }) =>
      path.includes('continue=')
        ? text(500, 'lost')
        : json(200, { metadata: { resourceVersion: '9', continue: 'one' }, items: [{}] }),
    );
    const look = async (isCurious: boolean) => {
      for await (const _page of client.listPaged(tops)) {
        await sleep(sim.world('looker').timers, 1000);
        if (!isCurious) return requests.length;
      }
      return undefined;
    };
    expect(await sim.time.settle(look(false))).toBe(2);
    await expect(sim.time.settle(look(true))).rejects.toThrow('lost');
  });
});

function text(code: number, body: string): HttpResponse {
  return { status: code, headers: {}, body: Buffer.from(body) };
}

function start(answer: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>) {
  const sim = new Simulation({ seed: 3, latencyMs: { min: 0, max: 0 } });
  const requests: string[] = [];
  sim.network.listen('https://home', async (request) => {
    const { method, path, headers, body } = request;
    const type = headers['content-type'];
    requests.push(
      `${method} ${path}${type === undefined ? '' : ` ${type} ${Buffer.from(body ?? []).toString('utf8')}`}`,
    );
    return answer(request);
  });
  const world = sim.world('agent');
  const client = createClient(world.network.http({ server: 'https://home' }), { world, userAgent: 'test' });
  return { sim, client, requests };
}
