// The certificate authority of a running home is replaced; clients that follow the steps are never refused.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';
import { until } from './support/dns-process.ts';
import { runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

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

function rotate(step: string, ...more: string[]): string {
  return execFileSync(portolan, ['api', 'rotate-ca', step, '--data', directory, ...more], { encoding: 'utf8' });
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

async function step(name: string, ...more: string[]): Promise<void> {
  const before = readFileSync(api.kubeconfig, 'utf8');
  rotate(name, ...more);
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

describe('rotate-ca with members', () => {
  const homes = new Map<string, ApiProcess>();
  const roles = new Map<string, RoleProcess>();
  const quiet = ['--admin-listen', '127.0.0.1:0', '--log-level', 'error'];
  const at = ({ kubeconfig }: ApiProcess) => ['--kubeconfig', kubeconfig];
  const startAgent = async (id: string) => roles.set(id, await startRole(['agent', ...at(homes.get(id)!), ...quiet]));

  async function typed(...words: string[]): Promise<string> {
    const { code, out, err } = await runPortolan(words);
    expect(code, `${words.join(' ')}: ${out}${err}`).toBe(0);
    return out.trim();
  }

  const failed = (step: string, ...more: string[]) => {
    try {
      return rotate(step, ...more);
    } catch (error) {
      return String((error as { stderr?: unknown }).stderr);
    }
  };

  beforeAll(async () => {
    await typed('broker', 'init', '--clusterset', 'prod', ...at(api));
    for (const id of ['east', 'west']) {
      homes.set(id, await startApi({ data: join(directory, 'members', id) }));
      const token = await typed('broker', 'token', id, '--clusterset', 'prod', ...at(api));
      await typed('join', token.split('\n').at(-1)!, ...at(homes.get(id)!));
      await startAgent(id);
    }
    await typed('federation', 'create', 'world', '--nameserver', '127.0.0.53', '--clusterset', 'prod', ...at(api));
    // A copy: the home rewrites its own.
    const kubeconfig = copied('authority.kubeconfig');
    const federation = ['--federation', 'world', '--clusterset', 'prod', '--broker-kubeconfig', kubeconfig];
    roles.set('authority', await startRole(['authority', ...federation, '--listen', '127.0.0.1:0', ...quiet]));
  }, 120_000);

  afterAll(async () => {
    for (const role of roles.values()) await role.stop('SIGKILL');
    for (const home of homes.values()) await home.stop('SIGKILL');
  });

  test('a member is away -> begin waits for it by name, switch is refused; it is back -> nobody is cut off', async () => {
    await roles.get('west')!.stop('SIGKILL');
    expect(failed('begin', '--wait', '--timeout', '45')).toContain(
      'not done after 45 s: cluster west to report trust in the new authority',
    );
    expect(failed('switch')).toMatch(/would cut off members: waiting for cluster west to report/);
    await startAgent('west');
    rotate('switch', '--wait');
    rotate('finish', '--wait');
    // Longer than a lease that is shown as silent.
    await new Promise((resolve) => setTimeout(resolve, 15_000));
    for (const id of ['east', 'west']) {
      await until(`${id} is well`, async () => {
        const { out } = await runPortolan(['status', ...at(homes.get(id)!)]);
        return /^east .* alive /m.test(out) && /^west .* alive /m.test(out) && !/PTL0[12]\d\d|PTL0505/.test(out);
      });
    }
  }, 240_000);

  test('a member is lost by --force -> it says what happened and how to return, and the others see it silent', async () => {
    await roles.get('west')!.stop('SIGKILL');
    await step('begin');
    await until('the others have it', () => failed('switch').includes('waiting for cluster west to'));
    await step('switch', '--force');
    await step('finish', '--force');
    await startAgent('west');
    const told = 'run portolan leave --offline here and join again with what portolan broker token west --renew gives';
    await until('its readiness tells', async () => (await roles.get('west')!.readyz()).text.includes(told));
    const { out } = await runPortolan(['status', ...at(homes.get('west')!)]);
    expect(out).toContain(told);
    await until('east tells', async () => {
      const seen = await runPortolan(['status', ...at(homes.get('east')!)]);
      return seen.out.includes('PTL0202 agent of cluster west');
    });
  }, 240_000);
});
