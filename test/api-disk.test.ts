// `portolan api` on a disk that is really full, and under an fsync that really fails.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, type ApiProcessOptions, type Connection, connect, startApi } from './support/api-process.ts';
import { describeWith } from './support/counterparts.ts';
import { until } from './support/kubectl.ts';

const root = mkdtempSync(join(tmpdir(), 'portolan-api-disk-'));
const running: ApiProcess[] = [];
const connections: Connection[] = [];
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  for (const api of running.splice(0)) await api.stop('SIGKILL');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function start(options: ApiProcessOptions): Promise<{ api: ApiProcess; connection: Connection }> {
  const api = await startApi(options);
  running.push(api);
  const connection = await connect(api.kubeconfig);
  connections.push(connection);
  return { api, connection };
}

const maps = '/api/v1/namespaces/default/configmaps';
/** Without the home's own. */
const written = 'fieldSelector=metadata.name!=kube-root-ca.crt';

class Writer {
  readonly acknowledged: string[] = [];
  readonly refusals: { status: number; body: Record<string, unknown> }[] = [];
  readonly #connection: Connection;

  readonly #prefix: string;

  constructor(connection: Connection, prefix = 'm') {
    this.#connection = connection;
    this.#prefix = prefix;
  }

  async write(valueBytes = 2000): Promise<number> {
    const name = `${this.#prefix}-${this.acknowledged.length}-${this.refusals.length}`;
    const object = { metadata: { name }, data: { value: 'x'.repeat(valueBytes) } };
    const { status, body } = await this.#connection.request('POST', maps, object);
    if (status === 201) this.acknowledged.push(name);
    else this.refusals.push({ status, body: JSON.parse(body.toString()) });
    return status;
  }

  async lost(connection: Connection): Promise<string[]> {
    const { body } = await connection.request('GET', maps);
    const found = new Set(
      JSON.parse(body.toString()).items.map((item: { metadata: { name: string } }) => item.metadata.name),
    );
    return this.acknowledged.filter((name) => !found.has(name));
  }
}

const isRoot = process.getuid?.() === 0;
describe.skipIf(!isRoot)('portolan api: a full disk (needs root to mount a small one)', () => {
  const mount = join(root, 'small');
  beforeAll(() => {
    mkdirSync(mount);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', mount]);
  });
  afterAll(() => execFileSync('umount', ['-l', mount]));

  test.each([
    { args: [], status: 201 },
    { args: ['--audit-required'], status: 503 },
  ])(
    'the disk of the audit log is full, $args -> in /readyz and as a metric; writes get $status; with room again all lines are there',
    async ({ args, status }) => {
      const ballast = join(mount, 'ballast');
      const audit = join(mount, `audit-${status}.log`);
      const { connection } = await start({
        data: join(root, `audited-${status}`),
        args: ['--audit', audit, ...args],
      });
      const writer = new Writer(connection, `a${status}`);
      const text = async (path: string) => (await connection.request('GET', path)).body.toString();
      expect(await writer.write()).toBe(201);
      expect(await text('/readyz')).toBe('ok');
      spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
      await until(async () => (await text('/readyz')).includes('[-]audit failed'));
      expect(await text('/readyz')).toContain('ENOSPC');
      expect(await text('/metrics')).toContain('portolan_audit_log_writable 0');
      expect(await writer.write()).toBe(status);
      if (status === 503) expect(writer.refusals[0]!.body['message']).toContain('--audit-required');
      rmSync(ballast);
      await until(async () => (await text('/readyz')) === 'ok');
      expect(await writer.write()).toBe(201);
      await until(() => {
        const lines = readFileSync(audit, 'utf8').trim().split('\n');
        const posts = lines.map((line) => JSON.parse(line)).filter((line) => line.verb === 'create');
        // A refused write was refused before it was known whose it was.
        return posts.length === (status === 201 ? 3 : 2);
      });
    },
  );

  test('writes are refused and say why, reads and watches go on; with room again it takes writes; nothing is lost', async () => {
    const data = join(mount, 'home');
    const ballast = join(mount, 'ballast');
    const { api, connection } = await start({ data });
    const writer = new Writer(connection);
    for (let index = 0; index < 50; index++) expect(await writer.write()).toBe(201);

    // Fill what is left; a short write is the point.
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
    await until(async () => (await writer.write(100_000)) !== 201);
    const [refusal] = writer.refusals;
    expect(refusal).toMatchObject({ status: expect.any(Number), body: { kind: 'Status', status: 'Failure' } });
    expect(refusal!.status).toBeGreaterThanOrEqual(500);
    expect(refusal!.body['message']).toMatch(/the disk is full/);

    const read = await connection.request('GET', `${maps}/${writer.acknowledged[0]}`);
    expect(read.status).toBe(200);
    expect(await writer.lost(connection)).toEqual([]);
    expect((await connection.request('GET', '/livez')).status).toBe(200);
    const watch = await connection.request('GET', `${maps}?watch=1&resourceVersion=0&timeoutSeconds=1&${written}`);
    expect(watch.body.toString().split('"type":"ADDED"').length - 1).toBe(writer.acknowledged.length);
    expect(api.errors()).toContain('the disk is full');

    rmSync(ballast);
    await until(async () => (await writer.write()) === 201);
    for (let index = 0; index < 20; index++) expect(await writer.write()).toBe(201);

    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
    await until(async () => (await writer.write(100_000)) !== 201);
    await api.stop('SIGKILL');
    rmSync(ballast);
    const again = await start({ data });
    expect(await writer.lost(again.connection)).toEqual([]);
    expect(await new Writer(again.connection, 'again').write()).toBe(201);
  });
});

describeWith(['strace'], 'portolan api: an fsync that fails', () => {
  test('writes are refused for good and say why, reads go on, not ready; restarted, nothing acknowledged is missing', async () => {
    const data = join(root, 'fsync');
    // A first start makes keys and tables, so that the failing one has only its own writes to sync.
    const first = await start({ data });
    const before = new Writer(first.connection, 'before');
    for (let index = 0; index < 5; index++) expect(await before.write()).toBe(201);
    await first.api.stop();

    const inject = 'inject=fsync,fdatasync:error=EIO:when=30+';
    const under = ['strace', '-f', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync', '-e', inject];
    const { api, connection } = await start({ data, under });
    const writer = new Writer(connection);
    await until(async () => (await writer.write()) !== 201);
    expect(writer.refusals[0]!.status).toBeGreaterThanOrEqual(500);
    expect(writer.refusals[0]!.body['message']).toMatch(/the store takes no writes: .*disk I\/O error/);
    for (let index = 0; index < 5; index++) expect(await writer.write()).toBeGreaterThanOrEqual(500);
    expect(await before.lost(connection)).toEqual([]);
    const ready = await connection.request('GET', '/readyz?verbose');
    expect(ready.status).toBe(503);
    expect(ready.body.toString()).toMatch(/\[-\]store failed/);
    await api.stop('SIGKILL');

    const again = await start({ data });
    expect(await before.lost(again.connection)).toEqual([]);
    expect(await writer.lost(again.connection)).toEqual([]);
  });
});
