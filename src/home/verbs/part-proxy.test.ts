import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ownAddress } from '../../../test/support/own-address.ts';
import { formatHolders } from '../../base/admin-headers.ts';
import { parseRange } from '../../base/net/ip.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { type Home, openHome } from '../security/testing/home.ts';

const system = '/api/v1/namespaces/portolan-system';
const part = 'portolan-dns-west';
const holder = 'west_0af3 ü';
const way = `${system}/services/${part}:admin/proxy`;
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Endpoint {
  readonly url: string;
  readonly seen: IncomingMessage[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const plain: Answer = (request, response) => {
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ got: `${request.method} ${request.url}` }));
};

/** An admin endpoint, or a stranger if it names no holder. */
async function endpoint(names: string | undefined, answer: Answer = plain, host = '127.0.0.1'): Promise<Endpoint> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    if (names !== undefined) response.setHeader('portolan-part', formatHolders(['another', names]));
    if (request.url === '/livez') response.end('ok\n');
    else answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://${host}:${(server.address() as AddressInfo).port}`, seen };
}

async function homeWith(
  admin: string | undefined,
  namespace = 'portolan-system',
  partsIn: string[] = [],
): Promise<Home> {
  const partRanges = partsIn.map((text) => parseRange(text)!);
  const home = await openHome({ network: createRealWorld().network, partRanges });
  const annotations = admin === undefined ? {} : { 'portolan.dev/admin': admin };
  await home.given(
    ...(namespace === 'portolan-system'
      ? []
      : [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }]),
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name: part, labels: { 'portolan.dev/part': 'dns' }, annotations },
      spec: { holderIdentity: holder, renewTime: '2026-01-01T00:00:00.000000Z' },
    },
  );
  return home;
}

describe('part proxy', () => {
  test('part proxy: GET and POST -> passed on with path and query, and none of the headers of the caller', async () => {
    const dns = await endpoint(holder);
    const home = await homeWith(dns.url);
    const secrets = { authorization: 'Bearer abc', cookie: 'a=b', 'x-forwarded-for': '1.2.3.4', accept: 'text/html' };
    const asked = await home.user('admin', 'system:masters')(
      `GET ${way}/explain?name=a%20b&type=A`,
      undefined,
      secrets,
    );
    expect(asked).toEqual({ status: 200, body: { got: 'GET /explain?name=a%20b&type=A' } });
    expect((await home.admin(`POST ${way}/querylog?on`, { some: 'body' })).body).toEqual({ got: 'POST /querylog?on' });
    expect((await home.admin(`GET ${system}/services/http:${part}:9465/proxy`)).body).toEqual({ got: 'GET /' });
    expect(dns.seen.map(({ url }) => url)).toEqual([
      '/livez',
      '/explain?name=a%20b&type=A',
      '/livez',
      '/querylog?on',
      '/livez',
      '/',
    ]);
    for (const { headers } of dns.seen) {
      expect(
        Object.keys(headers)
          .sort()
          .filter((name) => name !== 'content-length'),
      ).toEqual(['accept', 'connection', 'host']);
      expect(JSON.stringify(headers)).not.toMatch(/abc|a=b|1\.2\.3\.4|text\/html/);
    }
  });

  test('part proxy: who has no right to services/proxy -> 403, and the part hears nothing', async () => {
    const dns = await endpoint(holder);
    const home = await homeWith(dns.url);
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
    const metadata = { name: 'reads', namespace: 'portolan-system' };
    await home.given(
      { ...rbac, kind: 'Role', metadata, rules: [{ apiGroups: [''], resources: ['services/proxy'], verbs: ['get'] }] },
      {
        ...rbac,
        kind: 'RoleBinding',
        metadata,
        subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ann' }],
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reads' },
      },
    );
    expect((await home.nobody(`GET ${way}/status`)).status).toBe(403);
    expect((await home.user('bob')(`GET ${way}/status`)).body.message).toContain(
      'cannot get resource "services/proxy"',
    );
    expect((await home.user('ann')(`POST ${way}/querylog`)).body.message).toContain('cannot create');
    expect(dns.seen).toEqual([]);
    expect((await home.user('ann')(`GET ${way}/status`)).status).toBe(200);
  });

  test.each([
    ['of a stranger', undefined],
    ['of another part', 'east_77'],
  ])(
    'part proxy: the Lease names an address %s -> it gets GET /livez alone, and its answer stays there',
    async (_, names) => {
      const stranger = await endpoint(names, (_request, response) => response.end('the secret'));
      const home = await homeWith(stranger.url);
      const { status, body } = await home.admin(`POST ${way}/shutdown?now`);
      expect([status, body.reason]).toEqual([503, 'ServiceUnavailable']);
      expect(body.message).toBe(
        `part ${part}: it does not answer on the machine of its home; it has stopped, or runs on another one: ask it there with --admin`,
      );
      expect(stranger.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /livez']);
      stranger.seen.length = 0;
      const closed = await homeWith('http://127.0.0.1:1');
      expect((await closed.admin(`GET ${way}/status`)).body.message).toBe(body.message);
    },
  );

  test.each([
    'http://169.254.169.254:80',
    'http://10.0.0.1:9465',
    'http://localhost:9465',
    'http://127.0.0.1.evil.example:80',
    'http://127.0.0.1:80@evil.example:1',
    'https://127.0.0.1:443',
    'http://[::ffff:127.0.0.1]:80',
    'http://0.0.0.0:80',
    'file:///etc/passwd',
  ])('part proxy: the Lease names %s -> refused without a connection', async (url) => {
    const home = await homeWith(url);
    expect((await home.admin(`GET ${way}/status`)).body.message).toContain('is not on loopback');
  });

  test('part proxy: a part on another machine, in a range of the home -> asked with the ticket of the caller and no other header', async () => {
    const host = ownAddress();
    const dns = await endpoint(holder, plain, host);
    const headers = { 'portolan-ticket': 'for this part', authorization: 'Bearer abc' };
    const home = await homeWith(dns.url, 'portolan-system', [`${host}/32`]);
    const asked = await home.user('admin', 'system:masters')(`GET ${way}/status`, undefined, headers);
    expect(asked).toEqual({ status: 200, body: { got: 'GET /status' } });
    expect(dns.seen.map(({ url, headers: got }) => [url, got['portolan-ticket'], got.authorization])).toEqual([
      ['/livez', undefined, undefined],
      ['/status', 'for this part', undefined],
    ]);
    const other = await homeWith(dns.url, 'portolan-system', ['203.0.113.0/24']);
    expect((await other.admin(`GET ${way}/status`)).body.message).toContain('start the home with --parts-in');
    expect(dns.seen).toHaveLength(2);
  });

  test('part proxy: a part beside the home -> the ticket of the caller stays here, but for one to see flows', async () => {
    const dns = await endpoint(holder);
    const home = await homeWith(dns.url, 'portolan-system', ['10.0.0.0/8']);
    await home.user('admin', 'system:masters')(`GET ${way}/status`, undefined, { 'portolan-ticket': 'x' });
    expect(dns.seen.map(({ headers }) => headers['portolan-ticket'])).toEqual([undefined, undefined]);
    await home.user('admin', 'system:masters')(`GET ${way}/flows?after=1`, undefined, { 'portolan-ticket': 'x' });
    expect(dns.seen.at(-1)!.headers['portolan-ticket']).toBe('x');
  });

  test('part proxy: a Lease of another namespace, none, or one without address -> said so', async () => {
    const dns = await endpoint(holder);
    const home = await homeWith(dns.url, 'shop');
    expect((await home.admin(`GET ${way.replace('portolan-system', 'shop')}/status`)).status).toBe(404);
    expect((await home.admin(`GET ${way}/status`)).status).toBe(404);
    expect((await (await homeWith(undefined)).admin(`GET ${way}/status`)).body.message).toContain(
      'names no admin endpoint',
    );
    expect((await (await homeWith(dns.url)).admin(`PUT ${way}/status`)).status).toBe(405);
    expect(dns.seen).toEqual([]);
  });

  test('part proxy: an answer without end, a page, a broken connection -> bounded, harmless, said', async () => {
    const endless = await endpoint(holder, (request, response) => {
      if (request.url === '/cut') return void response.destroy();
      if (request.url === '/page') return void response.setHeader('content-type', 'text/html').end('<script>');
      if (request.url === '/moved') return void response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
      const more = () => response.write(Buffer.alloc(1 << 20), () => setImmediate(more));
      more();
    });
    const home = await homeWith(endless.url);
    expect((await home.admin(`GET ${way}/endless`)).body.message).toContain('more than 8388608 bytes');
    expect((await home.admin(`GET ${way}/cut`)).body.message).toContain('the connection broke');
    const send = (path: string) =>
      home.handle({
        method: 'GET',
        path,
        headers: {},
        clientCertificate: { commonName: 'a', organizations: ['system:masters'] },
      });
    expect((await send(`${way}/page`)).headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
    });
    expect(await send(`${way}/moved`)).toMatchObject({ status: 302, headers: { 'cache-control': 'no-store' } });
    expect((await send(`${way}/moved`)).headers).not.toHaveProperty('location');
  });

  test('part proxy: more than eight at once -> 429; one that never answers -> ended after a minute', async () => {
    const silent = await endpoint(holder, () => {});
    const home = await homeWith(silent.url);
    const waiting = Array.from({ length: 8 }, () => home.admin(`GET ${way}/never`));
    while (silent.seen.filter(({ url }) => url === '/never').length < 8) await new Promise((go) => setTimeout(go, 5));
    expect((await home.admin(`GET ${way}/status`)).status).toBe(429);
    await home.simulation.time.advance(60_001);
    for (const { status, body } of await Promise.all(waiting)) expect([status, body.reason]).toEqual([504, 'Timeout']);
  });
});
