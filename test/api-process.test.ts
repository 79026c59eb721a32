// `portolan api` as a process: how it starts, what it leaves on disk, how it stops, and what it does when killed.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type ApiProcess, type ApiProcessOptions, type Connection, connect, startApi } from './support/api-process.ts';
import { until } from './support/kubectl.ts';
import { runPortolan } from './support/portolan.ts';

const root = mkdtempSync(join(tmpdir(), 'portolan-api-process-'));
const running: ApiProcess[] = [];
const connections: Connection[] = [];
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  for (const api of running.splice(0)) await api.stop('SIGKILL');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let homes = 0;
const newData = () => join(root, `home-${homes++}`);

async function start(options: ApiProcessOptions): Promise<ApiProcess> {
  const api = await startApi(options);
  running.push(api);
  return api;
}

async function open(api: ApiProcess): Promise<Connection> {
  const connection = await connect(api.kubeconfig);
  connections.push(connection);
  return connection;
}

const maps = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string) => ({ metadata: { name }, data: { value: 'x'.repeat(200) } });

// biome-ignore lint/suspicious/noExplicitAny: an answer is looked at as it comes.
async function json(connection: Connection, path: string): Promise<any> {
  return JSON.parse((await connection.request('GET', path)).body.toString());
}

async function names(connection: Connection): Promise<Set<string>> {
  const { items } = await json(connection, maps);
  return new Set(items.map((item: { metadata: { name: string } }) => item.metadata.name));
}

/** Plain HTTP/1.1 without any credentials. */
function anonymous(api: ApiProcess, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = https.get(
      { host: '127.0.0.1', port: api.port, path, agent: false, rejectUnauthorized: false },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    request.on('error', reject);
  });
}

describe('portolan api: starting', () => {
  test('port 0 -> a free port, printed with ready once it answers, and written into the kubeconfig', async () => {
    const [one, two] = [await start({ data: newData() }), await start({ data: newData() })];
    expect(one.port).toBeGreaterThan(0);
    expect(two.port).not.toBe(one.port);
    const { clusters } = parse(readFileSync(one.kubeconfig, 'utf8'));
    expect(clusters[0].cluster.server).toBe(`https://127.0.0.1:${one.port}`);
    expect((await (await open(one)).request('GET', '/readyz')).status).toBe(200);
  });

  test('what is secret -> readable by its owner alone', async () => {
    const data = newData();
    const api = await start({ data });
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    expect(modeOf(api.kubeconfig)).toBe('600');
    for (const key of ['ca.key', 'server.key', 'service-account.key'])
      expect(modeOf(join(data, 'pki', key))).toBe('600');
    expect(modeOf(join(data, 'store', 'facts.db'))).toBe('600');
  });

  test('the same folder twice -> the second is refused and says why, the first goes on', async () => {
    const data = newData();
    const api = await start({ data });
    const second = await runPortolan(['api', '--data', data, '--listen', '127.0.0.1:0']);
    expect(second.code).toBe(1);
    expect(second.out).toBe('');
    expect(second.err).toContain('another process has it open; stop that one first');
    expect((await (await open(api)).request('POST', maps, configMap('still'))).status).toBe(201);
  });

  test('a port that is taken -> refused and says which, nothing is left running', async () => {
    const api = await start({ data: newData() });
    const second = await runPortolan(['api', '--data', newData(), '--listen', `127.0.0.1:${api.port}`]);
    expect(second.code).toBe(1);
    expect(second.err).toContain(`portolan: cannot listen on 127.0.0.1:${api.port}: another process has this port`);
    expect(second.err).not.toContain('"level":"error"');
  });

  test('--san and --service-cidr -> the certificate names it, addresses come from there', async () => {
    const api = await start({ data: newData(), args: ['--san', 'home.example.com', '--service-cidr', '10.7.0.0/24'] });
    const certificate = await new Promise<tls.PeerCertificate>((resolve, reject) => {
      const socket = tls.connect({ host: '127.0.0.1', port: api.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate());
        socket.destroy();
      });
      socket.on('error', reject);
    });
    expect(certificate.subjectaltname).toContain('DNS:home.example.com');
    const service = { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } };
    const { body } = await (await open(api)).request('POST', '/api/v1/namespaces/default/services', service);
    expect(JSON.parse(body.toString()).spec.clusterIP).toMatch(/^10\.7\.0\./);
  });
});

describe('portolan api: seen while it runs', () => {
  test('anonymous -> the health checks, and nothing else', async () => {
    const api = await start({ data: newData() });
    for (const path of ['/livez', '/readyz', '/healthz']) {
      expect(await anonymous(api, path)).toEqual({ status: 200, body: 'ok' });
    }
    for (const path of ['/metrics', '/api', '/apis', '/openapi/v3', '/version', '/api/v1/namespaces', '/nothing']) {
      const { status, body } = await anonymous(api, path);
      expect([path, status]).toEqual([path, 403]);
      expect(JSON.parse(body)).toMatchObject({ kind: 'Status', reason: 'Forbidden' });
    }
  });

  test('/livez and /readyz?verbose -> what was looked at', async () => {
    const connection = await open(await start({ data: newData() }));
    const { body } = await connection.request('GET', '/readyz?verbose');
    expect(body.toString()).toMatch(/\[\+\]store ok\n[\s\S]*readyz check passed/);
    expect((await connection.request('GET', '/livez')).status).toBe(200);
  });

  test('/metrics -> Prometheus text, all names with our prefix, and requests counted', async () => {
    const connection = await open(await start({ data: newData() }));
    await connection.request('POST', maps, configMap('counted'));
    const { body } = await connection.request('GET', '/metrics');
    const lines = body
      .toString()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) expect(line).toMatch(/^(portolan|process|nodejs)_[a-z0-9_]+(\{.*\})? \S+$/);
    expect(lines).toContain('portolan_api_requests_total{verb="create",resource="configmaps",code="201"} 1');
  });

  test('logs -> a JSON object a line on standard error, with time, level and text', async () => {
    const api = await start({ data: newData(), args: ['--log-level', 'debug'] });
    await api.stop();
    const lines = api.errors().trim().split('\n');
    expect(lines.length).toBeGreaterThan(2);
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({ time: expect.stringMatching(/^20/), level: expect.any(String) });
    }
    expect(api.errors()).toContain('"msg":"stopping","signal":"SIGTERM"');
  });

  test('--audit -> a line for each request: who, what, how it went; those without a user apart; the files are private', async () => {
    const audit = join(root, 'audit', 'log');
    const api = await start({ data: newData(), args: ['--audit', audit] });
    const connection = await open(api);
    await connection.request('POST', maps, configMap('audited'));
    await connection.request('GET', `${maps}/missing`);
    await anonymous(api, '/api');
    const saidIn = (file: string): string[] => {
      const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
      return lines.map((line) => {
        const { user, verb, objectRef, responseStatus } = JSON.parse(line);
        return [user?.username, verb, objectRef?.resource, objectRef?.name, responseStatus.code].join(' ');
      });
    };
    await until(() => saidIn(audit).length > 1 && saidIn(`${audit}.anonymous`).length > 0);
    const said = saidIn(audit);
    expect(said).toContain('admin create configmaps  201');
    expect(said).toContain('admin get configmaps missing 404');
    expect(said.some((line) => line.startsWith('system:anonymous'))).toBe(false);
    expect(saidIn(`${audit}.anonymous`)).toEqual([expect.stringMatching(/^system:anonymous get .*403$/)]);
    for (const file of [audit, `${audit}.anonymous`]) expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect(readFileSync(audit, 'utf8')).not.toContain('xxxxx');
  });

  test('--keep-history -> a watch from before it is told 410 Gone, one from within it goes on', async () => {
    const connection = await open(await start({ data: newData(), args: ['--keep-history', '1'] }));
    const { metadata } = await json(connection, maps);
    for (let index = 0; index < 5; index++) await connection.request('POST', maps, configMap(`m${index}`));
    await until(async () => {
      await connection.request('PUT', `${maps}/m0`, { ...configMap('m0'), data: { tick: String(performance.now()) } });
      const path = `${maps}?watch=1&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=1`;
      const { status, body } = await connection.request('GET', path);
      return status === 410 || /"code":410/.test(body.toString());
    });
    const now = (await json(connection, maps)).metadata.resourceVersion;
    const path = `${maps}?watch=1&resourceVersion=${now}&timeoutSeconds=1`;
    expect((await connection.request('GET', path)).status).toBe(200);
  });
});

describe('portolan api: a broken client', () => {
  test('garbage instead of HTTP/2 frames -> that connection is closed, others are served', async () => {
    const api = await start({ data: newData() });
    const closed = new Promise<void>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: api.port, rejectUnauthorized: false, ALPNProtocols: ['h2'] };
      const socket = tls.connect(options, () => {
        socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
        socket.write(Buffer.alloc(4096, 0xff));
      });
      socket.on('error', () => {}).on('close', () => resolve());
      socket.resume();
      setTimeout(() => reject(new Error('the connection was not closed')), 30_000).unref();
    });
    await closed;
    expect((await anonymous(api, '/livez')).status).toBe(200);
  });

  test('a watcher that reads nothing -> cut off and told to list again; another one gets everything', async () => {
    const api = await start({ data: newData() });
    const [slow, writer] = [await connect(api.kubeconfig, 65_535), await open(api)];
    connections.push(slow);
    const stuck = slow.stream(`${maps}?watch=1`).setEncoding('utf8');
    const opened = new Promise<void>((resolve) => stuck.once('response', () => resolve()));
    stuck.pause();
    await opened;
    let heard = 0;
    const reader = writer.stream(`${maps}?watch=1`);
    reader.setEncoding('utf8').on('data', (chunk: string) => (heard += chunk.split('"name":"large-').length - 1));
    // More than may wait for one watcher.
    const large = 'y'.repeat(900_000);
    const count = 24;
    for (let index = 0; index < count; index++) {
      await writer.request('POST', maps, { metadata: { name: `large-${index}` }, data: { large } });
    }
    await until(() => heard === count);
    let text = '';
    stuck.on('data', (chunk: string) => (text += chunk)).resume();
    await until(() => stuck.closed);
    expect(JSON.parse(text.trim().split('\n').at(-1)!)).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect(text.split('"type":"ADDED"').length).toBeLessThan(count);
  });
});

describe('portolan api: stopping', () => {
  test('SIGTERM under 64 writers -> every acknowledged write is there afterwards, exit 0', async () => {
    const data = newData();
    const api = await start({ data });
    const connection = await open(api);
    const acknowledged: string[] = [];
    let isOver = false;
    const writers = Array.from({ length: 64 }, async (_, writer) => {
      for (let index = 0; !isOver; index++) {
        const name = `w${writer}-${index}`;
        try {
          if ((await connection.request('POST', maps, configMap(name))).status === 201) acknowledged.push(name);
        } catch {
          isOver = true;
        }
      }
    });
    await until(() => acknowledged.length > 500);
    expect(await api.stop('SIGTERM')).toBe(0);
    isOver = true;
    await Promise.all(writers);
    const again = await open(await start({ data }));
    const found = await names(again);
    expect(acknowledged.filter((name) => !found.has(name))).toEqual([]);
  });

  test('SIGTERM with watches open -> they end cleanly, and the process exits with 0', async () => {
    const api = await start({ data: newData() });
    const connection = await open(api);
    const stream = connection.stream(`${maps}?watch=1`);
    const ended = new Promise<string>((resolve) => {
      stream.once('end', () => resolve('end')).once('error', (error) => resolve(`error ${error.message}`));
    });
    stream.resume();
    await new Promise<void>((resolve) => stream.once('response', () => resolve()));
    expect(await api.stop('SIGTERM')).toBe(0);
    expect(await ended).toBe('end');
  });

  test('a request under way -> finished first; two signals at once are one, another one later ends it', async () => {
    const data = newData();
    const api = await start({ data });
    const connection = await open(api);
    const posts = [connection.post(maps), connection.post(maps)];
    for (const post of posts) post.on('error', () => {}).write('{"metadata":');
    await connection.request('GET', '/livez');
    // As under npm, where the terminal and the script both deliver one Ctrl-C.
    api.child.kill('SIGINT');
    api.child.kill('SIGTERM');
    await until(() => api.errors().includes('"msg":"stopping"'));
    const answered = new Promise<number>((resolve) =>
      posts[0]!.once('response', (headers) => resolve(Number(headers[':status']))),
    );
    posts[0]!.end('{"name":"late"}}');
    expect(await answered).toBe(201);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(api.child.exitCode).toBe(null);
    api.child.kill('SIGINT');
    expect(await api.stop()).toBe(1);
    expect(await names(await open(await start({ data })))).toContain('late');
  });

  test('SIGINT -> as SIGTERM; stopped and started on the same port, the old kubeconfig still works', async () => {
    const data = newData();
    const api = await start({ data });
    const before = readFileSync(api.kubeconfig, 'utf8');
    expect(await api.stop('SIGINT')).toBe(0);
    const again = await start({ data, port: api.port });
    expect(parse(before).users).toEqual(parse(readFileSync(again.kubeconfig, 'utf8')).users);
    writeFileSync(join(root, 'old.kubeconfig'), before);
    const connection = await connect(join(root, 'old.kubeconfig'));
    connections.push(connection);
    expect((await connection.request('GET', '/api/v1/namespaces')).status).toBe(200);
  });

  test('SIGKILL and started again -> the same facts, revisions go on from where they were', async () => {
    const data = newData();
    const api = await start({ data });
    const connection = await open(api);
    for (let index = 0; index < 20; index++) await connection.request('POST', maps, configMap(`kept-${index}`));
    const before = await json(connection, maps);
    await api.stop('SIGKILL');
    const after = await json(await open(await start({ data })), maps);
    expect(after.items).toEqual(before.items);
    expect(Number(after.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(before.metadata.resourceVersion));
  });
});
