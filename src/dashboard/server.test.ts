import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { type Dashboard, startDashboard } from './server.ts';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

describe('dashboard server', () => {
  let dashboard: Dashboard;
  const lines: string[] = [];
  beforeAll(async () => {
    const asset = (text: string, type: string) => ({ type, body: Buffer.from(text), gzip: () => Buffer.from(text) });
    dashboard = await startDashboard({
      world: createRealWorld(),
      log: createLog({ level: 'debug', clock: createRealWorld().clock, write: (line) => void lines.push(line) }),
      listen: { host: '127.0.0.1', port: 0 },
      homes: [],
      hosts: ['dash.example.com'],
      assets: new Map([
        ['/', asset('<html>', 'text/html')],
        ['/assets/main-1a2b3c4d.js', asset('1', 'text/javascript')],
      ]),
    });
  });
  afterAll(() => dashboard.stop());

  function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const { port } = new URL(dashboard.url);
    return new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path, method, headers }, (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        incoming.on('end', () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers as Record<string, string>, text }),
        );
      });
      outgoing.on('error', reject).end();
    });
  }

  test('any answer -> strict headers, no cookie', async () => {
    for (const path of ['/', '/services/shop/cart', '/api/stream', '/nothing.js']) {
      const { headers } = await ask(path);
      const policy = headers['content-security-policy'] ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
      expect(headers['set-cookie']).toBeUndefined();
    }
  });

  test.each([
    ['a name that somebody points here', { host: 'evil.example' }, 403],
    ['a page of another origin', { host: '127.0.0.1', origin: 'https://evil.example' }, 403],
    ['a page of another site', { host: '127.0.0.1', 'sec-fetch-site': 'cross-site' }, 403],
    ['the name of its proxy', { host: 'dash.example.com', origin: 'https://dash.example.com' }, 200],
    ['the name of its proxy, another origin', { host: 'dash.example.com', origin: 'https://evil.example' }, 403],
    ['localhost', { host: 'localhost:80', origin: 'http://localhost:80' }, 200],
  ])('%s -> %j: %d', async (_what, headers, status) => {
    expect((await ask('/', headers)).status).toBe(status);
  });

  test('files: with a digest in the name -> kept for ever; the page -> never; none of that name -> 404', async () => {
    expect((await ask('/assets/main-1a2b3c4d.js')).headers['cache-control']).toContain('immutable');
    expect((await ask('/clusters')).headers['cache-control']).toBe('no-store');
    expect((await ask('/clusters')).text).toBe('<html>');
    expect((await ask('/assets/../../etc/passwd')).text).not.toContain('root:');
    expect((await ask('/assets/other.js')).status).toBe(404);
    expect((await ask('/', {}, 'POST')).status).toBe(405);
  });

  test('a path that is no URL, many times -> 400 each time, and no line in the log', async () => {
    for (let i = 0; i < 50; i++) expect((await ask('//[')).status).toBe(400);
    expect(lines).toEqual([]);
  });

  test('api: without a token, with nonsense, before a page is open -> 401 with the reason', async () => {
    expect(await ask('/api/stream')).toMatchObject({ status: 401 });
    expect(await ask('/api/stream', { authorization: 'Bearer two words' })).toMatchObject({ status: 401 });
    const early = await ask('/api/demo?verb=break&cluster=east', { authorization: 'Bearer abc' }, 'POST');
    expect(early).toMatchObject({ status: 401, text: expect.stringContaining('no page of this bearer is open') });
  });
});
