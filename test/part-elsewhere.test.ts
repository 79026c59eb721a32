// A resolver on another machine than its embedded home, for which an address of this machine stands: the home asks it if it was
// told to, with a ticket of the caller; otherwise commands say why they could not.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Diagnosis } from '../src/doctor/diagnosis.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { until } from './support/dns-process.ts';
import { ownAddress } from './support/own-address.ts';
import { runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-elsewhere-'));
const address = ownAddress();
const running: (ApiProcess | RoleProcess)[] = [];
const name = 'none.default.svc.cluster.local';

afterAll(async () => {
  for (const process of running.reverse()) await process.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

async function start(home: string, ...args: string[]) {
  const api = await startApi({ data: join(directory, home), args });
  running.push(api);
  const at = ['--kubeconfig', api.kubeconfig];
  const words = ['--cluster-id', 'west', '--listen', '127.0.0.1:0', '--admin-listen', `${address}:0`];
  const dns = await startRole(['dns', ...at, ...words, '--log-level', 'error']);
  running.push(dns);
  await until('the resolver is ready', async () => (await dns.readyz()).text === 'ok\n');
  return { dns, portolan: (...line: string[]) => runPortolan([...line, ...at]) };
}

test('the home may ask it -> dig and doctor are answered; who connects to it without a ticket is not', async () => {
  const { dns, portolan } = await start('told', '--parts-in', `${address}/32`);
  const dug = await portolan('dig', name);
  expect([dug.code, dug.err, dug.out]).toEqual([0, '', expect.stringContaining('NXDOMAIN')]);
  const { skipped } = JSON.parse((await portolan('doctor', '-o', 'json')).out) as Diagnosis;
  expect(skipped.filter(({ why }) => why.includes('portolan-dns'))).toEqual([]);
  for (const path of ['/status', `/explain?name=${name}`, '/querylog'])
    expect([path, (await fetch(`${dns.admin}${path}`)).status]).toEqual([path, 401]);
});

test('the home was not told -> dig ends with 6, doctor with 8, and both say what to do', async () => {
  const { portolan } = await start('untold');
  const why =
    /its admin endpoint "http:\/\/\S+" is not on loopback; ask it on its own machine with --admin, or start the home with --parts-in/;
  const dug = await portolan('dig', name);
  expect([dug.code, dug.err]).toEqual([6, expect.stringMatching(why)]);
  const doctor = await portolan('doctor');
  expect([doctor.code, doctor.out]).toEqual([8, expect.stringMatching(why)]);
});

test('a range that is none -> usage', async () => {
  const { code, err } = await runPortolan(['api', '--data', join(directory, 'never'), '--parts-in', 'everywhere']);
  expect([code, err]).toEqual([2, expect.stringContaining('--parts-in everywhere: want an address or a range')]);
});
