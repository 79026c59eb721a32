import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownAddress } from '../../../test/support/own-address.ts';
import { createMetrics } from '../metrics.ts';
import { type AdminEndpoint, type AdminRegistration, startAdminEndpoint } from './admin-endpoint.ts';

let admin: AdminEndpoint;
let port = '';
let switched = 0;

beforeAll(async () => {
  admin = await startAdminEndpoint({
    listen: { host: '127.0.0.1', port: 0 },
    metrics: createMetrics(),
    notReady: () => '',
    status: () => ({ secret: 1 }),
    routes: { '/switch': { methods: ['POST'], handle: async () => ({ switched: ++switched }) } },
  });
  port = new URL(admin.url).port;
});
afterAll(() => admin.close());

function ask(method: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once('error', reject).end();
  });
}

describe('admin endpoint', () => {
  test.each([
    ['127.0.0.1', {}],
    ['localhost', {}],
    ['[::1]', {}],
    ['10.1.2.3', {}],
    ['127.0.0.1', { origin: 'same' }],
    ['127.0.0.1', { 'sec-fetch-site': 'none' }],
  ])('Host %s with %o -> answered', async (host, more: Record<string, string>) => {
    const headers: Record<string, string> = { host: `${host}:${port}`, ...more };
    if (headers['origin'] !== undefined) headers['origin'] = `http://${host}:${port}`;
    expect(await ask('GET', '/status', headers)).toBe(200);
  });

  test.each([
    ['evil.example', {}],
    ['evil.example:PORT', {}],
    ['localhost.evil.example:PORT', {}],
    ['127.0.0.1:PORT', { origin: 'http://evil.example' }],
    ['127.0.0.1:PORT', { origin: 'null' }],
    ['127.0.0.1:PORT', { origin: 'http://127.0.0.1:1' }],
    ['127.0.0.1:PORT', { 'sec-fetch-site': 'cross-site' }],
  ])('Host %j with %o -> 403 on every path, and nothing happens', async (host, more: Record<string, string>) => {
    const headers = { host: host.replace('PORT', port), ...more };
    expect(await ask('GET', '/status', headers)).toBe(403);
    expect(await ask('GET', '/metrics', headers)).toBe(403);
    expect(await ask('POST', '/switch', headers)).toBe(403);
    expect(switched).toBe(0);
  });
});

test('admin endpoint: it belongs to Leases -> each gets its address, on loopback if it is on all; answers name the holders', async () => {
  const told: string[] = [];
  /** As the Lease of a part is: its methods need the object they belong to. */
  class Registration implements AdminRegistration {
    readonly part: string;
    readonly holder: string;
    readonly #problem: string;

    constructor(holder: string) {
      this.part = holder;
      this.holder = holder;
      this.#problem = holder === 'a_1' ? '' : 'away';
    }

    announce({ url }: { readonly url: string }): void {
      told.push(url);
    }

    problem(): string {
      return this.#problem;
    }

    async refusalOf(): Promise<undefined> {}
  }
  const made = await startAdminEndpoint({
    listen: { host: '0.0.0.0', port: 0 },
    metrics: createMetrics(),
    notReady: () => 'no home',
    status: () => ({}),
    registrations: [new Registration('a_1'), new Registration('b,2')],
  });
  const url = `http://127.0.0.1:${new URL(made.url).port}`;
  expect(told).toEqual([url, url]);
  const response = await fetch(`${url}/readyz`);
  expect([response.status, response.headers.get('portolan-part')]).toEqual([503, 'a_1,b%2C2']);
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text).toContain('portolan_part_ready 0');
  expect(text).toContain('portolan_home_reachable{part="a_1"} 1');
  expect(text).toContain('portolan_home_reachable{part="b,2"} 0');
  await made.close();
});

describe('admin endpoint asked from another address than loopback', () => {
  const outside = ownAddress();
  const seen: string[] = [];
  let guarded: AdminEndpoint;

  beforeAll(async () => {
    guarded = await startAdminEndpoint({
      listen: { host: '0.0.0.0', port: 0 },
      metrics: createMetrics(),
      notReady: () => '',
      status: () => ({ secret: 1 }),
      routes: {
        '/switch': { methods: ['POST'], handle: async () => ({ switched: ++switched }) },
        '/flows': { methods: ['GET'], isOfFlows: true, handle: async () => ({ flows: [] }) },
      },
      registrations: [
        {
          ...{ part: 'dns', holder: 'a_1', announce: () => {}, problem: () => '' },
          refusalOf: async (ticket, kind) => {
            seen.push(ticket);
            return ticket === 'good' || ticket === kind ? undefined : { status: 403, why: 'not yours' };
          },
        },
      ],
    });
  });
  afterAll(() => guarded.close());

  const from = async (host: string, path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://${host}:${new URL(guarded.url).port}${path}`, init);
    return [response.status, (await response.text()).trim()] as const;
  };

  test.each(['/livez', '/readyz', '/metrics'])('%s -> answered without a ticket', async (path) => {
    expect((await from(outside, path))[0]).toBe(200);
  });

  test.each(['/status', '/switch', '/nothing', '/metrics/', '/livez/../status'])(
    '%s without a ticket, or with a token in Authorization -> 401 with the way to ask, and nothing happens',
    async (path) => {
      for (const headers of [{}, { authorization: 'Bearer good' }, { 'portolan-ticket': '' }]) {
        const [status, text] = await from(outside, path, { method: path === '/switch' ? 'POST' : 'GET', headers });
        expect([status, text]).toEqual([401, expect.stringContaining('ask through the home')]);
      }
      expect([switched, seen]).toEqual([0, []]);
    },
  );

  test('a ticket -> the home of the part decides', async () => {
    expect(await from(outside, '/status', { headers: { 'portolan-ticket': 'stolen' } })).toEqual([403, 'not yours']);
    expect(await from(outside, '/status', { headers: { 'portolan-ticket': 'good' } })).toEqual([200, '{"secret":1}']);
    expect(await from('127.0.0.1', '/status')).toEqual([200, '{"secret":1}']);
  });

  test('what is seen of connections -> only with a ticket for it, from this machine too', async () => {
    for (const host of [outside, '127.0.0.1']) {
      expect(await from(host, '/flows')).toEqual([401, expect.stringContaining('the right to flows')]);
      expect((await from(host, '/flows', { headers: { 'portolan-ticket': 'admin' } }))[0]).toBe(403);
      expect((await from(host, '/flows', { headers: { 'portolan-ticket': 'flows' } }))[0]).toBe(200);
    }
    expect((await from(outside, '/status', { headers: { 'portolan-ticket': 'flows' } }))[0]).toBe(403);
  });

  test('from another address of loopback, as sidecars of service meshes pass requests on -> needs a ticket', async () => {
    const status = await new Promise((resolve, reject) => {
      const to = { host: '127.0.0.1', localAddress: '127.0.0.6', port: new URL(guarded.url).port, path: '/status' };
      const sent = request(to, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.once('error', reject).end();
    });
    expect(status).toBe(401);
  });
});
