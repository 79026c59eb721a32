// Each fault is made on purpose in a simulated clusterset: status, doctor and conditions show it with the next step, and no
// longer once it is mended. docs/faults.md is written from it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeError, exitCodes, exitKindOf } from '../../src/cli/exit-codes.ts';
import { membershipRef } from '../../src/clusterset/explain/consult.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import type { Diagnosis } from '../../src/doctor/diagnosis.ts';
import { getOrUndefined } from '../../src/kube/client/absent.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { setName } from '../clusterset.ts';
import { typeAt } from '../command.ts';
import { accessFaults } from '../made-faults/access-faults.ts';
import type { Watched } from '../made-faults/fault.ts';
import { partFaults } from '../made-faults/part-faults.ts';
import { openScene, partLease, type Scene } from '../made-faults/scene.ts';
import { sealingFaults } from '../made-faults/sealing-faults.ts';
import { setFaults } from '../made-faults/set-faults.ts';
import { isConditionOld, silences } from '../made-faults/silences.ts';
import { type FaultRow, faultTable, type SilenceRow, steadied } from '../made-faults/table.ts';
import { service, serviceExport } from '../manifests.ts';

const faults = [...setFaults, ...partFaults, ...accessFaults, ...sealingFaults];
const dayMs = 86_400_000;

async function doctor({ set, desk }: Scene, more = ''): Promise<Diagnosis & { exitCode: number }> {
  const lines = await set.time.settle(typeAt(desk, `doctor -o json${more}`));
  return { ...(JSON.parse(lines.join('\n')) as Diagnosis), exitCode: desk.exitCode };
}

/** An error is an answer too. */
async function status({ set, desk }: Scene): Promise<{ text: string; exitCode: number }> {
  try {
    return { text: (await set.time.settle(typeAt(desk, 'status'))).join('\n'), exitCode: desk.exitCode };
  } catch (error) {
    return { text: `portolan: ${describeError(error)}`, exitCode: exitCodes[exitKindOf(error)] };
  }
}

async function conditionsOf({ desk, set }: Scene, { at, type, ref }: Watched): Promise<string> {
  const client = at === 'home' ? desk.home : set.broker.admin;
  const object = await getOrUndefined<
    AnyObject & { status?: { conditions?: { type: string; status: string; reason: string }[] } }
  >(client, type, ref);
  const conditions = object?.status?.conditions ?? [];
  return `${type.kind}: ${conditions.map((one) => `${one.type}=${one.status} ${one.reason}`).join(', ')}`;
}

test('doctor, status: nothing is wrong -> no finding, everything was checked, exit code 0', async () => {
  const scene = await openScene();
  const found = await doctor(scene);
  expect(found).toMatchObject({ complete: true, findings: [], exitCode: 0 });
  const why = (part: string) => `no ${part} reports; start portolan ${part} to have it asked`;
  expect(found.skipped).toEqual([
    { code: 'PTL0502', cluster: 'west', why: why('dns'), isIdle: true },
    { code: 'PTL0503', cluster: 'west', why: why('dns'), isIdle: true },
    { code: 'PTL0506', cluster: 'west', why: why('dns'), isIdle: true },
    { code: 'PTL0901', cluster: 'west', why: why('proxy'), isIdle: true },
  ]);
  const { text, exitCode } = await status(scene);
  expect(text).not.toMatch(/^(problem|warning|not checked|not tried):/m);
  expect(exitCode).toBe(0);
});

const rows: FaultRow[] = [];
const silenceRows: SilenceRow[] = [];

describe('a fault made on purpose -> status and doctor show its code and the next step, conditions too; mended -> gone', () => {
  test.each(faults.map((one) => [`${one.code} ${one.fault}`, one] as const))('%s', async (_name, one) => {
    const scene = await openScene();
    await one.make(scene);
    const found = await doctor(scene);
    const mine = found.findings.filter(({ code }) => code === one.code);
    expect(mine, JSON.stringify(found)).not.toEqual([]);
    expect(mine.map(({ subject, message }) => `${subject}: ${message}`).join('\n')).toMatch(one.says);
    for (const { fix, docs, means } of mine) expect([fix, docs, means]).not.toContain('');
    expect(found.exitCode).toBe(one.doctorExit);

    const said = await status(scene);
    expect(said.exitCode, said.text).toBe(one.statusExit ?? one.doctorExit);
    const lines = said.text.split('\n');
    const line = lines.find((text) => (one.statusSays ?? new RegExp(`^(problem|warning): ${one.code} `)).test(text));
    expect(line, said.text).toBeDefined();
    if (one.statusSays === undefined) expect(line).toContain(`; next step: ${mine[0]!.fix}`);

    const conditions = one.conditions === undefined ? '' : await conditionsOf(scene, one.conditions.of);
    if (one.conditions?.are !== undefined) expect(conditions).toMatch(one.conditions.are);
    rows.push({
      fault: one.fault,
      status: { line: line!.replace(`; next step: ${mine[0]!.fix}`, ''), exitCode: said.exitCode },
      doctor: { code: one.code, severity: mine[0]!.severity, exitCode: found.exitCode },
      conditions: [conditions, one.conditions?.note].filter(Boolean).join('; '),
    });

    await one.mend(scene);
    const isGone = (findings: Diagnosis['findings']) => findings.every(({ code }) => code !== one.code);
    expect(isGone((await doctor(scene)).findings)).toBe(true);
    expect((await status(scene)).text).not.toMatch(new RegExp(`^(problem|warning): ${one.code} `, 'm'));
    if (one.conditions?.are !== undefined)
      expect(await conditionsOf(scene, one.conditions.of)).not.toMatch(one.conditions.are);
  });

  test.each(silences.map((one) => [one.what, one] as const))(
    '%s -> status tells within 15 s, conditions too',
    async (_name, one) => {
      const scene = await openScene();
      const { set } = scene;
      await one.make(scene);
      const madeMs = set.time.nowMs;
      const seconds = (ms: number) => Math.round((ms - madeMs) / 1000);
      let statusSeconds: number | undefined;
      let conditionSeconds: number | undefined;
      const isTold = () =>
        statusSeconds !== undefined && (conditionSeconds !== undefined || one.condition === undefined);
      while (!isTold() && set.time.nowMs < madeMs + 60_000) {
        await set.time.advance(1_000);
        const askedMs = set.time.nowMs;
        if (one.condition && (await isConditionOld(scene, one.condition))) conditionSeconds ??= seconds(askedMs);
        // A command that waits for a frozen broker takes its time too, in which conditions are not looked at.
        if (statusSeconds === undefined && one.says.test((await status(scene)).text)) statusSeconds = seconds(askedMs);
      }
      expect(statusSeconds).toBeLessThanOrEqual(15);
      if (one.condition) expect(conditionSeconds).toBeLessThanOrEqual(15);
      silenceRows.push({ what: one.what, statusSeconds: statusSeconds!, conditionSeconds });
    },
  );

  test('docs/faults.md: -> has at least 25 faults, as they were seen (vitest -u writes it)', async () => {
    // A run of some faults only has not seen the others.
    if (rows.length < faults.length || silenceRows.length < silences.length) return;
    expect(rows.length).toBeGreaterThanOrEqual(25);
    const page = join(import.meta.dirname, '../../docs/faults.md');
    const steady = steadied(silenceRows, readFileSync(page, 'utf8'));
    await expect(faultTable(rows, steady)).toMatchFileSnapshot(page);
  });
});

test('doctor: --fail-on warning -> a warning ends with 7', async () => {
  const scene = await openScene();
  await faults.find(({ code }) => code === 'PTL0801')!.make(scene);
  expect(await doctor(scene)).toMatchObject({ exitCode: 0 });
  expect(await doctor(scene, ' --fail-on warning')).toMatchObject({ exitCode: 7 });
});

test('doctor: several kubeconfigs, one home away -> both in one document, what could not be checked is listed', async () => {
  const scene = await openScene();
  const { desk, set } = scene;
  desk.files.set(
    'east',
    desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://east').replaceAll('home', 'east'),
  );
  set.home('east').kill();
  const found = await doctor(scene, ' --kubeconfig home.kubeconfig east');
  expect(found.clusters).toEqual([
    { cluster: 'west', reached: true },
    { cluster: 'east', reached: false },
  ]);
  expect(found.findings.map(({ code, cluster }) => `${code} ${cluster}`)).toContain('PTL0101 east');
  expect(found.skipped.every(({ cluster, why, isIdle }) => isIdle || (cluster === 'east' && why !== ''))).toBe(true);
  expect(found).toMatchObject({ complete: false, exitCode: 7 });
});

test('doctor: at the broker -> its members are checked from there', async () => {
  const scene = await openScene();
  const { desk, set } = scene;
  desk.files.set(
    'broker',
    desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://broker').replaceAll('home', 'broker'),
  );
  expect(await doctor(scene, ' --kubeconfig broker')).toMatchObject({ findings: [], exitCode: 0 });
  set.killAgent('east');
  await set.time.advance(60_000);
  const { findings } = await doctor(scene, ' --kubeconfig broker');
  expect(findings.map(({ code, subject }) => `${code} ${subject}`)).toEqual(['PTL0202 agent of cluster east']);
});

test('doctor: the credentials for the broker were not renewed in time -> a warning before they end, an error after', async () => {
  const scene = await openScene();
  const { desk } = scene;
  const nowMs = desk.deps.world.clock.wallMs();
  const write = async (issuedMs: number, endMs: number) => {
    const text = (ms: number) => Buffer.from(new Date(nowMs + ms).toISOString()).toString('base64');
    const body = { data: { 'token-issued-at': text(issuedMs), 'token-expires-at': text(endMs) } };
    await desk.home.patch(secretType, membershipRef, { kind: 'merge', body });
    return (await doctor(scene)).findings.map(({ code, severity }) => `${code} ${severity}`);
  };
  expect(await write(-dayMs, 9 * dayMs)).toEqual([]);
  expect(await write(-9 * dayMs, dayMs)).toEqual(['PTL0204 warning']);
  expect(await write(-9 * dayMs, -dayMs)).toEqual(['PTL0204 error']);
});

test('doctor, status: parts on another machine than their home -> not checked, with the reason and what to do, never as healthy', async () => {
  const scene = await openScene();
  const { desk, set } = scene;
  for (const [part, url] of [
    ['dns', 'http://127.0.0.1:7'],
    ['proxy', 'http://10.0.0.5:9465'],
  ] as const) {
    const lease = partLease(scene, part, { ageMs: 0 });
    const annotations = { ...lease.metadata.annotations, 'portolan.dev/admin': url };
    await desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations } });
  }
  const found = await doctor(scene);
  expect(found).toMatchObject({ complete: false, findings: [], exitCode: 8 });
  const elsewhere =
    'dns on n1: part portolan-dns-n1: it does not answer on the machine of its home; it has stopped, or runs on another one: ask it there with --admin';
  const notHere =
    'proxy on n1: part portolan-proxy-n1: its admin endpoint "http://10.0.0.5:9465" is not on loopback; ask it on its own machine with --admin, or start the home with --parts-in and a range that has this address';
  expect(found.skipped.map(({ code, why }) => `${code} ${why}`)).toEqual([
    `PTL0502 ${elsewhere}`,
    `PTL0503 ${elsewhere}`,
    `PTL0506 ${elsewhere}`,
    `PTL0901 ${notHere}`,
  ]);
  const lines = await set.time.settle(typeAt(desk, 'doctor'));
  expect(lines.filter((line) => line.startsWith('not checked'))).toEqual([
    `not checked in west: ${elsewhere} (PTL0502, PTL0503, PTL0506); in west: ${notHere} (PTL0901)`,
  ]);
  expect((await status(scene)).text).toMatch(/^not (checked|tried): .*portolan-dns-n1.*ask it there with --admin/m);
});

test('doctor, status: an export without a Service, or of an ExternalName -> PTL0301 alone: it neither lags nor lacks endpoints', async () => {
  const scene = await openScene();
  const { desk, set } = scene;
  await desk.home.create(serviceExportType, serviceExport('shop/ghost'));
  await desk.home.create(serviceType, service('shop/alias', { type: 'ExternalName', externalName: 'a.example' }));
  await desk.home.create(serviceExportType, serviceExport('shop/alias'));
  await set.time.advance(20_000);
  const { findings } = await doctor(scene);
  expect(findings.map(({ code, subject, message }) => `${code} ${subject}: ${message}`).sort()).toEqual([
    expect.stringMatching(/^PTL0301 ServiceExport shop\/alias: InvalidServiceType: .*ExternalName/),
    'PTL0301 ServiceExport shop/ghost: there is no Service of that name',
  ]);
  expect((await status(scene)).text).not.toContain('not at the broker');
});

test('doctor: a proxy tries connections -> it is told to ask each ready endpoint too, and a dead one is a finding', async () => {
  const scene = await openScene();
  const problem = 'endpoint 10.1.0.9:8080 is called ready and does not answer: refused';
  const url = 'http://127.0.0.1:9001';
  scene.set.simulation.network.listen(url, async ({ path }) => ({
    status: 200,
    headers: { 'content-type': 'application/json', 'portolan-part': 'n1_a' },
    body: Buffer.from(JSON.stringify({ problems: path.includes('endpoints=on') ? [problem] : [] })),
  }));
  const lease = partLease(scene, 'proxy', { ageMs: 0 });
  const annotations = { ...lease.metadata.annotations, 'portolan.dev/admin': url };
  const spec = { ...lease.spec, holderIdentity: 'n1_a', leaseDurationSeconds: 3600 };
  await scene.desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations }, spec });
  const { findings } = await doctor(scene);
  expect(findings.map(({ code, subject, message }) => `${code} ${subject}: ${message}`)).toContain(
    `PTL0901 shop/checkout from proxy on n1: ${problem}`,
  );
});

test('doctor: the admin of the set refuses an export -> PTL0304 says so, not that the agent is behind', async () => {
  const scene = await openScene();
  const body = { spec: { mayExport: ['none'] } };
  const west = { namespace: setName, name: 'west' };
  await scene.set.broker.admin.patch(clusterType, west, { kind: 'merge', body });
  await scene.set.time.advance(20_000);
  const { findings } = await doctor(scene);
  expect(findings.map(({ code, message }) => `${code} ${message}`)).toContainEqual(
    expect.stringMatching(
      /^PTL0304 it is not exported: the clusterset does not let cluster west export shop\/checkout/,
    ),
  );
});
