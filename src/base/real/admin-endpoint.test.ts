import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMetrics } from '../metrics.ts';
import { type AdminEndpoint, startAdminEndpoint } from './admin-endpoint.ts';

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
  const registration = (holder: string) => ({
    ...{ part: holder, holder, announce: ({ url }: { url: string }) => void told.push(url) },
    problem: () => (holder === 'a_1' ? '' : 'away'),
  });
  const made = await startAdminEndpoint({
    listen: { host: '0.0.0.0', port: 0 },
    metrics: createMetrics(),
    notReady: () => 'no home',
    status: () => ({}),
    registrations: [registration('a_1'), registration('b,2')],
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
