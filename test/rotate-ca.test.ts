// The certificate authority of a running home is replaced; clients that follow the steps are never refused.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';

const portolan = fileURLToPath(new URL('../bin/portolan', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'portolan-ca-'));
let api: ApiProcess;

beforeAll(async () => {
  api = await startApi({ data: directory });
});
afterAll(async () => {
  await api.stop();
  rmSync(directory, { recursive: true, force: true });
});

function rotate(step: string): string {
  return execFileSync(portolan, ['api', 'rotate-ca', step, '--data', directory], { encoding: 'utf8' });
}

/** A kubeconfig as copied at this moment. */
function copied(name: string): string {
  const path = join(directory, name);
  copyFileSync(api.kubeconfig, path);
  return path;
}

async function statusWith(kubeconfig: string): Promise<number | string> {
  try {
    const connection = await connect(kubeconfig);
    const { status } = await connection.request('GET', '/api/v1/namespaces');
    connection.close();
    return status;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'failed';
  }
}

async function untilRewritten(before: string): Promise<void> {
  for (let tries = 0; tries < 300 && readFileSync(api.kubeconfig, 'utf8') === before; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(readFileSync(api.kubeconfig, 'utf8')).not.toBe(before);
}

async function step(name: string): Promise<void> {
  const before = readFileSync(api.kubeconfig, 'utf8');
  rotate(name);
  await untilRewritten(before);
}

test('rotate-ca: begin, switch, finish on a running home -> both trusted in between, then the new one alone', async () => {
  const first = copied('first');
  expect(() => rotate('finish')).toThrow(/the next step is begin/);
  await step('begin');
  const both = copied('both');
  expect([await statusWith(first), await statusWith(both)]).toEqual([200, 200]);
  const connection = await connect(both);
  const known = await connection.request('GET', '/.well-known/portolan-ca');
  expect(JSON.parse(known.body.toString()).certificates.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  connection.close();
  await step('switch');
  const switched = copied('switched');
  // A client that trusts both is served, with a client certificate of either; one that trusts only the old is not.
  expect([await statusWith(both), await statusWith(switched)]).toEqual([200, 200]);
  expect(await statusWith(first)).not.toBe(200);
  await step('finish');
  expect([await statusWith(switched), await statusWith(api.kubeconfig)]).toEqual([200, 200]);
  expect(await statusWith(both)).not.toBe(200);
  expect(() => rotate('switch')).toThrow(/the next step is begin/);
}, 60_000);
