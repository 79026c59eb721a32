// Refusals of proxies: bounded, counted, and a condition on the object that caused them.

import { afterEach, expect, test } from 'vitest';
import { addImport, startXdsTest, type XdsTest } from '../../../test/support/xds.ts';
import { clusters, local, node, type Stream } from '../../../test/support/xds-stream.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { formatMicroTime, type Lease, leaseType } from '../../kube/objects/lease.ts';
import { type ProgrammedByRole, programmedAnnotation } from '../../kube/objects/reports/data-plane.ts';
import { namespace } from '../../peering/testing/edge/memory-home.ts';

import type { XdsRoleOptions } from './part.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(changes: Partial<XdsRoleOptions> = {}): Promise<XdsTest> {
  const made = await startXdsTest(changes);
  closing.push(() => made.stop());
  return made;
}

async function proxyOf(xds: XdsTest, id: string): Promise<Stream> {
  const stream = await xds.proxy(id);
  closing.push(() => stream.close());
  return stream;
}

async function programmed(xds: XdsTest, name: string) {
  const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name });
  return object.status?.conditions?.find(({ type }) => type === 'Programmed');
}

/** Refuses the cluster of a service; the stream stays open. */
async function refuse(stream: Stream, id: string, service: string): Promise<void> {
  stream.send({ ...node(id), ...clusters, resource_names_subscribe: [portName(service)] });
  for (;;) {
    const { nonce, type_url, resources } = await stream.next();
    const isBad = JSON.stringify(resources).includes(portName(service)) && type_url === clusters.type_url;
    const error_detail = { code: 13, message: 'no such thing' };
    stream.send({ type_url, response_nonce: nonce, ...(isBad && { error_detail }) });
    if (isBad) return;
  }
}

const portName = (name: string) => `${name}.shop.svc.clusterset.local:80`;

test('xds: a proxy refuses a resource -> a condition on its cause, in status and Lease; a better version -> taken back', async () => {
  const xds = await start();
  await addImport(xds.client, { name: 'checkout', port: 80 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const stream = await proxyOf(xds, 'sidecar~east~web');
  stream.send({ ...node('sidecar~east~web'), ...clusters });
  const name = 'checkout.shop.svc.clusterset.local:80';
  // Longer than what a Lease repeats.
  const complaint = `no such thing ${'x'.repeat(400)}`;
  const ownLease = async () =>
    (await xds.client.list<Lease>(leaseType, { namespace, labelSelector: 'portolan.dev/part=xds' })).items[0];
  const renewedMs = async () => Date.parse((await ownLease())?.spec?.renewTime ?? '') || 0;
  // Just renewed: what comes soon cannot be the next renewal.
  await until(async () => (Date.now() - (await renewedMs()) < 3000 ? true : undefined));
  const before = await renewedMs();
  for (;;) {
    const { nonce, type_url, resources } = await stream.next();
    const isBad = JSON.stringify(resources).includes(name) && type_url === clusters.type_url;
    const error_detail = { code: 13, message: complaint };
    stream.send({ type_url, response_nonce: nonce, ...(isBad && { error_detail }) });
    if (isBad) break;
  }
  const condition = await until(async () => {
    const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
    return object.status?.conditions?.find(({ type }) => type === 'Programmed');
  });
  expect(condition).toMatchObject({
    status: 'False',
    reason: 'RefusedByProxy',
    message: `proxy sidecar~east~web refused cluster ${name}: ${complaint}`,
  });
  expect(xds.role.service.proxies.reports()[0]!.refused).toMatchObject([{ name, isHeldAtLastGood: false }]);
  expect(await xds.metrics.text()).toContain('portolan_xds_refusals_total{type="cluster"} 1');
  expect(await xds.metrics.text()).toContain('portolan_xds_refused_resources 1');
  const reported = await until(async () => {
    const text = (await ownLease())?.metadata.annotations?.['portolan.dev/xds-complaints'] ?? '';
    return text.includes('no such thing') ? text : undefined;
  });
  expect(reported).toContain('"name":"checkout"');
  expect((await renewedMs()) - before).toBeLessThan(10_000);
  // The leading process reads all Leases, and does not count its own beside what it knows.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const shown = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
  expect(shown.status?.conditions?.find(({ type }) => type === 'Programmed')?.message).toBe(condition.message);
  const present = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
  const ports = [{ port: 80, protocol: 'TCP' as const, appProtocol: 'grpc' }];
  await xds.client.update<ServiceImport>(serviceImportType, { ...present, spec: { ...present.spec, ports } });
  const { nonce, type_url } = await stream.next();
  stream.send({ type_url, response_nonce: nonce });
  const mended = await until(async () => {
    const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
    const found = object.status?.conditions?.find(({ type }) => type === 'Programmed');
    return found?.status === 'True' ? found : undefined;
  });
  expect(mended.reason).toBe('Accepted');
});

test('xds: a sidecar acknowledges a listener -> the Lease names it within seconds; one that has not, and one that left -> not', async () => {
  const xds = await start();
  const programmedIn = async () => {
    const { items } = await xds.client.list<Lease>(leaseType, { namespace, labelSelector: 'portolan.dev/part=xds' });
    return JSON.parse(items[0]?.metadata.annotations?.[programmedAnnotation] ?? 'null') as ProgrammedByRole | null;
  };
  await until(async () => ((await programmedIn()) === null ? undefined : true));
  const listeners = { type_url: 'type.googleapis.com/envoy.config.listener.v3.Listener' };
  const stream = await proxyOf(xds, 'sidecar~east~web');
  stream.send({ ...node('sidecar~east~web'), ...listeners });
  const { nonce, type_url } = await stream.next();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(await programmedIn(), 'sent and not answered').toEqual({});
  stream.send({ type_url, response_nonce: nonce });
  const report = await until(async () => (await programmedIn())?.sidecar);
  expect(report).toEqual({ proxies: 1, since: expect.stringMatching(/^20\d\d-/) });
  expect((await programmedIn())?.ingress).toBeUndefined();
  stream.close();
  await until(async () => ((await programmedIn())?.sidecar === undefined ? true : undefined));
});

test('xds: a proxy that refuses everything, again and again -> each version once, counted; another proxy is served', async () => {
  const xds = await start();
  for (const name of ['a', 'b', 'c']) await addImport(xds.client, { name, port: 80 });
  await until(async () => (xds.role.service.views.clusterset.get('cluster', portName('c')) ? true : undefined));
  const stream = await proxyOf(xds, 'sidecar~east~stubborn');
  stream.send({ ...node('sidecar~east~stubborn'), ...clusters });
  const refusals = async () =>
    Number(/refusals_total\{type="cluster"\} (\d+)/.exec(await xds.metrics.text())?.[1] ?? 0);
  let answered = 0;
  void (async () => {
    for (;;) {
      const { nonce, type_url } = await stream.next();
      if (type_url === clusters.type_url) answered += 1;
      stream.send({ type_url, response_nonce: nonce, error_detail: { code: 13, message: 'no' } });
    }
  })();
  // The cluster that closes stray connections is a fourth one.
  await until(async () => ((await refusals()) === 4 ? true : undefined));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect([await refusals(), answered]).toEqual([4, 4]);
  const calm = await proxyOf(xds, 'sidecar~east~calm');
  calm.send({ ...node('sidecar~east~calm'), ...clusters });
  expect(await calm.next()).toMatchObject({ type_url: clusters.type_url });
});

test('xds: a process that does not lead reports a refusal in its Lease -> the leading one writes the condition', async () => {
  const xds = await start();
  await addImport(xds.client, { name: 'checkout', port: 80 });
  const cause = { at: 'home', kind: 'ServiceImport', namespace: 'shop', name: 'checkout' };
  const complaints = [{ cause, reason: 'RefusedByProxy', message: 'proxy sidecar~east~far refused it' }];
  const nowMs = createRealWorld().clock.wallMs();
  const lease = (renewedMs: number) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...{ name: `xds-${renewedMs}`, namespace, labels: { 'portolan.dev/part': 'xds' } },
      annotations: { 'portolan.dev/xds-complaints': JSON.stringify(complaints) },
    },
    spec: { holderIdentity: 'far', leaseDurationSeconds: 40, renewTime: formatMicroTime(renewedMs) },
  });
  const programmed = async () => {
    const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
    return object.status?.conditions?.find(({ type }) => type === 'Programmed');
  };
  // One that stopped without taking its Lease along says nothing any more.
  await xds.client.create(leaseType, lease(nowMs - 3_600_000));
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await programmed()).toBeUndefined();
  await xds.client.create(leaseType, lease(nowMs));
  expect(await until(programmed)).toMatchObject({ status: 'False', message: 'proxy sidecar~east~far refused it' });
});

test('xds: a proxy that refused something leaves -> its refusal counts until it may be back, then the condition is taken back', async () => {
  const xds = await start({ refusalsKeptMs: 1500 });
  await addImport(xds.client, { name: 'checkout', port: 80 });
  await until(async () => (xds.role.service.views.clusterset.get('cluster', portName('checkout')) ? true : undefined));
  const stream = await proxyOf(xds, 'sidecar~east~web');
  await refuse(stream, 'sidecar~east~web', 'checkout');
  expect(await until(() => programmed(xds, 'checkout'))).toMatchObject({ status: 'False' });
  stream.close();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await programmed(xds, 'checkout')).toMatchObject({ status: 'False' });
  await until(async () => ((await programmed(xds, 'checkout'))?.status === 'True' ? true : undefined));
  expect(await xds.metrics.text()).toContain('portolan_xds_refused_resources 0');
});

test('xds: a process that led before has written a condition, and nobody refuses anything -> the next one takes it back', async () => {
  const xds = await start({ refusalsKeptMs: 500 });
  await addImport(xds.client, { name: 'checkout', port: 80 });
  const present = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const left = {
    type: 'Programmed',
    status: 'False',
    reason: 'RefusedByProxy',
    message: 'long gone',
    lastTransitionTime,
  };
  const status = { ...present.status, conditions: [left] } as ServiceImport['status'];
  await xds.client.updateStatus<ServiceImport>(serviceImportType, { ...present, status });
  await xds.restart();
  await until(async () => ((await programmed(xds, 'checkout'))?.status === 'True' ? true : undefined));
});

test('xds: a client of the local socket refuses a resource -> shown in status, and no condition says so; nor does it spoil a proxy of that name', async () => {
  const xds = await start();
  for (const name of ['checkout', 'other']) await addImport(xds.client, { name, port: 80 });
  await until(async () => (xds.role.service.views.clusterset.get('cluster', portName('other')) ? true : undefined));
  const stranger = local(xds.socket);
  closing.push(() => stranger.close());
  await refuse(stranger, 'grpc~east~app', 'checkout');
  await until(async () => (xds.role.service.proxies.reports()[0]?.refused.length === 1 ? true : undefined));
  expect(xds.role.service.proxies.reports()).toMatchObject([{ id: 'grpc~east~app', isIdentified: false }]);
  // What a proxy with a certificate refuses afterwards is there, so there was time for both.
  await refuse(await proxyOf(xds, 'sidecar~east~web'), 'sidecar~east~web', 'other');
  await until(() => programmed(xds, 'other'));
  expect(await programmed(xds, 'checkout')).toBeUndefined();
  const known = await proxyOf(xds, 'grpc~east~app');
  known.send({ ...node('grpc~east~app'), ...clusters, resource_names_subscribe: [portName('checkout')] });
  expect(JSON.stringify(await known.next())).toContain(portName('checkout'));
});

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < 500; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('it did not come');
}
