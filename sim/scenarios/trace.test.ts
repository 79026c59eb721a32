// `portolan trace` in a simulated clusterset: every step with its time, and where the way ends.

import { describe, expect, test } from 'vitest';
import type { Step } from '../../src/cli/trace/steps.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { keepMembership, kubeconfigOf, typeAt } from '../command.ts';
import { openScene, partLease, ref, type Scene } from '../made-faults/scene.ts';
import { exportService } from '../manifests.ts';

interface Traced {
  readonly isWhole: boolean;
  readonly steps: readonly Step[];
  readonly exitCode: number;
}

interface PartAnswers {
  readonly dns?: object;
  readonly proxy?: object;
}

async function open(answers: PartAnswers = {}): Promise<Scene> {
  const scene = await openScene('allocate');
  await keepMembership(scene.set, 'east', scene.set.home('east').admin);
  scene.desk.files.set('east', kubeconfigOf('https://east'));
  await addParts(scene, answers);
  return scene;
}

/** A resolver and a proxy of west that answer as they should, unless other answers are given. */
async function addParts(scene: Scene, given: PartAnswers): Promise<void> {
  const { set, desk } = scene;
  const { spec } = await desk.home.get<ServiceImport>(serviceImportType, ref);
  const sources = [{ kind: 'ServiceImport', name: 'shop/checkout', ageMs: 1000 }];
  const answers = {
    dns: { rcode: 'NOERROR', records: [{ text: `A ${spec.ips![0]}`, ttlSeconds: 5, sources }] },
    proxy: { problems: [], lines: ['243.0.0.1:80: 3 connected'] },
    ...given,
  };
  for (const [index, [part, answer]] of Object.entries(answers).entries()) {
    const url = `http://127.0.0.1:${9001 + index}`;
    set.simulation.network.listen(url, async () => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'portolan-part': 'n1_a' },
      body: Buffer.from(JSON.stringify(answer)),
    }));
    const lease = partLease(scene, part, { ageMs: 0 });
    const annotations = { ...lease.metadata.annotations, 'portolan.dev/admin': url };
    const held = { ...lease.spec, holderIdentity: 'n1_a', leaseDurationSeconds: 3600 };
    await desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations }, spec: held });
  }
  await set.time.advance(20_000);
}

async function trace({ set, desk }: Scene, words: string): Promise<Traced> {
  const lines = await set.time.settle(typeAt(desk, `trace ${words} -o json`));
  return { ...(JSON.parse(lines.join('\n')) as Omit<Traced, 'exitCode'>), exitCode: desk.exitCode };
}

const bothHomes = '--kubeconfig home.kubeconfig east';
const shortOf = ({ steps }: Traced) => steps.map(({ step, where, state }) => `${step} ${where}: ${state}`);
const firstStop = ({ steps }: Traced) => steps.find(({ state }) => state === 'stopped');

describe('trace', () => {
  test('trace: all kubeconfigs, nothing wrong -> every step with its time in order, exit code 0', async () => {
    const scene = await open();
    const found = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    expect(shortOf(found)).toEqual([
      'export east: ok',
      'endpoints east: ok',
      'record broker, of east: ok',
      'export west: ok',
      'endpoints west: ok',
      'record broker, of west: ok',
      'merged broker: ok',
      'import west: ok',
      'slices west, of east: ok',
      'slices west, of west: ok',
      'answer west, dns on n1: ok',
      'carried west: ok',
      'connection west, proxy on n1: ok',
    ]);
    for (const { at } of found.steps) expect(Date.parse(at!)).toBeGreaterThan(0);
    expect(found).toMatchObject({ isWhole: true, exitCode: 0 });
    const text = (await scene.set.time.settle(typeAt(scene.desk, `trace shop/checkout ${bothHomes}`))).join('\n');
    expect(text).toMatch(/^STEP +WHERE +WHEN +AFTER +STATE +DETAIL$/m);
    expect(text).toMatch(/^record +broker, of east +\d{4}-\S+Z +\+\d+s +ok +1 ready$/m);
  });

  test('trace: only the kubeconfig of the asking cluster -> steps at others are unchecked with what to give, exit code 8', async () => {
    const scene = await open();
    const found = await trace(scene, 'shop/checkout');
    const unchecked = found.steps.filter(({ state }) => state === 'unchecked');
    expect(unchecked).toMatchObject([
      {
        step: 'export',
        where: 'east',
        detail: 'no kubeconfig of east was given',
        next: expect.stringContaining('--kubeconfig'),
      },
    ]);
    expect(found).toMatchObject({ isWhole: true, exitCode: 8 });
  });

  test('trace: a service whose name differs by a letter -> the one that was meant is named', async () => {
    const scene = await open();
    const typed = scene.set.time.settle(typeAt(scene.desk, 'trace shop/chekout'));
    await expect(typed).rejects.toThrow(
      'trace shop/chekout: no cluster exports it; run portolan export shop/chekout where it runs; did you mean shop/checkout?',
    );
  });

  test('trace: a kubeconfig was given and its home does not answer -> unchecked for that reason, not as if none was given', async () => {
    const scene = await open();
    scene.set.home('east').kill();
    const found = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    const { detail } = found.steps.find(({ step, where }) => step === 'export' && where === 'east')!;
    expect(detail).toMatch(/^no home of east answers; .* at https:\/\/east: /);
  });

  test('trace: asked for a cluster without its kubeconfig -> the broker is checked, the rest is named', async () => {
    const scene = await open();
    const found = await trace(scene, 'shop/checkout --from east');
    expect(shortOf(found).slice(-2)).toEqual(['merged broker: ok', 'import east: unchecked']);
  });

  test('trace: the agent of the asking cluster is dead -> stops at the import; started -> goes through', async () => {
    const scene = await open();
    scene.set.killAgent('west');
    await exportService(scene.set.home('east').admin, 'shop/new', { endpoints: ['10.1.0.9'] });
    await scene.set.time.advance(5_000);
    const found = await trace(scene, `shop/new --from west ${bothHomes}`);
    expect(firstStop(found)).toMatchObject({ step: 'import', where: 'west', next: 'look at portolan agent in west' });
    expect(found.exitCode).toBe(7);
    scene.set.startAgent('west');
    await scene.set.time.advance(60_000);
    expect(firstStop(await trace(scene, `shop/new --from west ${bothHomes}`))?.step).not.toBe('import');
  });

  test('trace: no endpoint of the exporter is ready -> stops at the endpoints there', async () => {
    const scene = await open();
    const { admin } = scene.set.home('east');
    const { items } = await admin.list(endpointSliceType, {
      namespace: 'shop',
      labelSelector: 'kubernetes.io/service-name=checkout',
    });
    for (const { metadata } of items)
      await admin.patch(
        endpointSliceType,
        { namespace: 'shop', name: metadata.name },
        { kind: 'json', body: [{ op: 'add', path: '/endpoints/0/conditions', value: { ready: false } }] },
      );
    await scene.set.time.advance(10_000);
    const found = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    expect(found.steps.find(({ step, where }) => step === 'endpoints' && where === 'east')).toMatchObject({
      state: 'stopped',
      detail: 'its Service has no ready endpoint',
    });
    expect(found.exitCode).toBe(7);
  });

  test('trace: the exporter is stale -> its record is there and does not count, since when', async () => {
    const scene = await open();
    scene.set.killAgent('east');
    await scene.set.time.advance(90_000);
    const found = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    expect(found.steps.find(({ where }) => where === 'broker, of east')).toMatchObject({
      state: 'stopped',
      detail: expect.stringContaining('its lease has run out, '),
      next: 'look at portolan agent in east',
    });
  });

  test('trace: the Service of an export is not there -> stops at the export with its condition', async () => {
    const scene = await open();
    const { admin } = scene.set.home('east');
    const metadata = { namespace: 'shop', name: 'gone' };
    await admin.create(serviceExportType, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata,
    });
    await scene.set.time.advance(5_000);
    expect(firstStop(await trace(scene, `shop/gone --from west ${bothHomes}`))).toMatchObject({
      step: 'export',
      where: 'east',
      detail: expect.stringContaining('Valid=False'),
      next: 'mend what its condition names',
    });
  });

  test('trace: the agent of the exporter is dead -> nothing was published, and there is no merged view', async () => {
    const scene = await open();
    scene.set.killAgent('east');
    await exportService(scene.set.home('east').admin, 'shop/new', { endpoints: ['10.1.0.9'] });
    const { steps } = await trace(scene, `shop/new --from west ${bothHomes}`);
    const stops = steps.filter(({ state }) => state === 'stopped').map(({ step, detail }) => `${step}: ${detail}`);
    expect(stops).toContain('record: nothing was published');
    expect(stops).toContain('merged: there is no merged view');
    expect(stops).toContain('import: there is no ServiceImport');
  });

  test('trace: the agent of the asking cluster died before a change -> the import lacks a cluster, slices are old', async () => {
    const scene = await open();
    const [east, west] = [scene.set.home('east').admin, scene.set.home('west').admin];
    await exportService(west, 'shop/new', { endpoints: ['10.2.0.9'] });
    await scene.set.time.advance(10_000);
    scene.set.killAgent('west');
    await exportService(east, 'shop/new', { endpoints: ['10.1.0.9'] });
    const { items } = await east.list<EndpointSlice>(endpointSliceType, {
      namespace: 'shop',
      labelSelector: 'kubernetes.io/service-name=checkout',
    });
    for (const slice of items) {
      const endpoints = [...(slice.endpoints ?? []), { addresses: ['10.1.0.77'], conditions: { ready: true } }];
      await east.update(endpointSliceType, { ...slice, endpoints });
    }
    await scene.set.time.advance(5_000);
    const agent = { state: 'stopped', next: 'look at portolan agent in west' };
    expect((await trace(scene, `shop/new --from west ${bothHomes}`)).steps).toContainEqual(
      expect.objectContaining({ step: 'import', detail: 'it lacks east', ...agent }),
    );
    expect((await trace(scene, `shop/checkout --from west ${bothHomes}`)).steps).toContainEqual(
      expect.objectContaining({ step: 'slices', where: 'west, of east', detail: '1 ready, 2 at the broker', ...agent }),
    );
  });

  test.each([
    ['another address', { rcode: 'NOERROR', records: [{ text: 'A 10.9.9.9', ttlSeconds: 5, sources: [] }] }],
    ['no address', { rcode: 'NOERROR', records: [] }],
    ['NXDOMAIN', { rcode: 'NXDOMAIN', records: [] }],
  ])('trace: the resolver answers %s -> stops at the answer', async (_what, dns) => {
    const found = await trace(await open({ dns }), `shop/checkout --from west ${bothHomes}`);
    expect(firstStop(found)).toMatchObject({ step: 'answer', next: 'portolan dig explains the answer' });
    expect(found.exitCode).toBe(7);
  });

  test('trace: connections of the proxy fail -> stops there with the reason', async () => {
    const proxy = { problems: ['243.0.0.1:80: connection refused'], lines: [] };
    const found = await trace(await open({ proxy }), `shop/checkout --from west ${bothHomes}`);
    expect(firstStop(found)).toMatchObject({ step: 'connection', detail: '243.0.0.1:80: connection refused' });
    expect(found.exitCode).toBe(7);
  });

  test('trace: the parts run on another machine than their home -> unchecked with the reason and what to do, exit code 8', async () => {
    const scene = await open();
    for (const part of ['dns', 'proxy'])
      await scene.desk.home.patch(
        leaseType,
        { namespace: 'portolan-system', name: `portolan-${part}-n1` },
        { kind: 'merge', body: { metadata: { annotations: { 'portolan.dev/admin': 'http://127.0.0.1:7' } } } },
      );
    const found = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    const unchecked = found.steps.filter(({ state }) => state === 'unchecked');
    expect(unchecked.map(({ step, next }) => `${step}: ${next}`)).toEqual([
      'answer: ask it on its own machine',
      'connection: ask it on its own machine',
    ]);
    for (const { detail } of unchecked)
      expect(detail).toMatch(/on the machine of its home; .* another one: ask it there/);
    expect(found.exitCode).toBe(8);
  });

  test('trace: no resolver and no proxy -> the answer is unchecked, and nothing carries the import', async () => {
    const scene = await open();
    for (const part of ['dns', 'proxy'])
      await scene.desk.home.delete(leaseType, { namespace: 'portolan-system', name: `portolan-${part}-n1` });
    await scene.set.time.advance(60_000);
    const { steps, exitCode } = await trace(scene, `shop/checkout --from west ${bothHomes}`);
    expect(steps).toContainEqual(
      expect.objectContaining({ step: 'answer', state: 'unchecked', detail: 'no resolver reports in this cluster' }),
    );
    expect(steps).toContainEqual(
      expect.objectContaining({ step: 'carried', state: 'stopped', next: expect.stringContaining('portolan proxy') }),
    );
    expect(exitCode).toBe(7);
  });

  test('trace: a service that no cluster exports -> not found, with what to do', async () => {
    const scene = await open();
    await expect(trace(scene, 'shop/none')).rejects.toThrow('no cluster exports it; run portolan export shop/none');
  });
});
