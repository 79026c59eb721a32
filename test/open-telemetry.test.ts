// An export told of by OpenTelemetry: one trace through four processes of two clusters, and their metrics, at a receiver of the
// protocol.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { traceparentAnnotation } from '../src/base/telemetry/carried-trace.ts';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import type { Client } from '../src/kube/client/client.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { type AgentProcess, makeNamespace, TestClusterSet, type TestHome, type } from './support/clusterset.ts';
import { type DnsProcess, startDnsProcess, until } from './support/dns-process.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { OtlpReceiver } from './support/otlp-receiver.ts';
import { runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

const loopback = `127.${await takeLoopbackPart()}`;
/** Step, service of OpenTelemetry, cluster. */
const wholeWay = [
  'answer portolan-dns west',
  'carried portolan-proxy west',
  'endpoints portolan-agent east',
  'export portolan-agent east',
  'import portolan-agent east',
  'import portolan-agent west',
  'record portolan-agent east',
  'slices portolan-agent east',
  'slices portolan-agent west',
];
const asked: Record<string, string> = {
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-team=red',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
};

describe('OpenTelemetry', () => {
  const set = new TestClusterSet();
  let receiver: OtlpReceiver;
  let broker: TestHome;
  let east: TestHome;
  let west: TestHome;
  let dns: DnsProcess;
  let proxy: RoleProcess;
  let eastAgent: AgentProcess;
  let eastKubeconfig: string;

  const at = (home: TestHome, words: string) => type(`${words} --kubeconfig ${home.kubeconfig}`);
  const atBroker = (words: string) => at(broker, `broker ${words} --clusterset prod`);
  const spansOf = (name: string) => receiver.spans.filter(({ attributes }) => attributes['portolan.service'] === name);
  const stepsOf = (name: string) =>
    spansOf(name).map(({ name: step, service, attributes }) => `${step} ${service} ${attributes['portolan.cluster']}`);
  const annotationsOf = async (client: Client, type: ResourceType, namespace: string, name: string) =>
    (await client.get<KubernetesObject>(type, { namespace, name })).metadata.annotations ?? {};

  /** A registered process of east, exported. */
  const exportFromEast = async (name: string, port: number) => {
    await at(east, `register shop/${name} --address 10.1.0.5 --port http=${port}:8080`);
    await at(east, `export shop/${name} --wait`);
  };

  beforeAll(async () => {
    receiver = await new OtlpReceiver().start();
    asked['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url;
    Object.assign(process.env, asked);
    broker = await set.startHome('broker');
    [east, west] = await Promise.all([set.startHome('east'), set.startHome('west')]);
    await atBroker(`init --clusterset-range ${loopback}.0.0/17`);
    for (const [home, pods] of [
      [east, '10.1.0.0/16'],
      [west, '10.2.0.0/16'],
    ] as const) {
      const [token] = (await atBroker(`token ${home.name}`)).lines;
      await at(home, `join ${token} --pod-cidr ${pods} --service-cidr 10.96.0.0/12`);
      await makeNamespace(home.client, 'shop');
    }
    eastKubeconfig = await set.agentKubeconfig(east);
    const started = await Promise.all([
      startDnsProcess(['--kubeconfig', west.kubeconfig, '--cluster-id', 'west', '--admin-listen', '127.0.0.1:0']),
      startRole([
        ...'proxy --mode userspace --node n1 --admin-listen 127.0.0.1:0 --range'.split(' '),
        ...[`${loopback}.0.0/17`, '--kubeconfig', west.kubeconfig],
      ]),
      set.startAgent(eastKubeconfig),
      set.agentKubeconfig(west).then((path) => set.startAgent(path)),
    ]);
    [dns, proxy, eastAgent] = started;
    await dns.whenReady();
    await until('the proxy is ready', () => /^ready /m.test(proxy.out()));
  });

  afterAll(async () => {
    for (const name of Object.keys(asked)) delete process.env[name];
    await Promise.all([dns?.stop(), proxy?.stop()]);
    await set.stop();
    receiver.stop();
  });

  test('an export -> one trace through four processes, each step the child of the one before', async () => {
    await exportFromEast('checkout', 18_080);
    await until('every step has arrived', () => stepsOf('checkout').length >= wholeWay.length);
    expect(stepsOf('checkout').sort()).toEqual(wholeWay);
    const spans = spansOf('checkout');
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(new Set(spans.map(({ instance }) => instance)).size, 'processes').toBe(4);
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const chains = spans.map((span) => {
      const chain = [span.name];
      for (let one = byId.get(span.parentId); one !== undefined; one = byId.get(one.parentId)) chain.push(one.name);
      return chain.join(' < ');
    });
    expect([...new Set(chains)].sort()).toEqual([
      'answer < import < record < export',
      'carried < import < record < export',
      'endpoints < export',
      'export',
      'import < record < export',
      'record < export',
      'slices < import < record < export',
    ]);
    for (const { name, startMs, endMs } of spans) {
      expect(endMs, name).toBeGreaterThanOrEqual(startMs);
      expect(Math.abs(Date.now() - startMs), name).toBeLessThan(120_000);
    }
    expect(receiver.headers['x-team']).toBe('red');
  });

  test('portolan trace -> names every step that the trace has', async () => {
    const args = ['trace', 'shop/checkout', '--from', 'west', '--kubeconfig', west.kubeconfig, east.kubeconfig];
    const { out } = await runPortolan([...args, '-o', 'json']);
    const named = new Set((JSON.parse(out).steps as { step: string }[]).map(({ step }) => step));
    expect([...new Set(spansOf('checkout').map(({ name }) => name))].filter((name) => !named.has(name))).toEqual([]);
  });

  test('the metrics of each process -> the receiver has them, with those of the process', async () => {
    const of = (service: string, name: string) =>
      [...receiver.metrics.values()].find((one) => one.service === service && one.name === name);
    await until('all have sent', () =>
      ['agent', 'dns', 'proxy'].every((role) => of(`portolan-${role}`, 'portolan_build_info')),
    );
    await until(
      'the answer was counted',
      () => of('portolan-dns', 'portolan_dns_export_to_answer_seconds')?.values[0] === 1,
    );
    expect(of('portolan-dns', 'portolan_dns_export_to_answer_seconds')).toMatchObject({ kind: 'histogram', unit: 's' });
    expect(of('portolan-proxy', 'portolan_proxy_services')).toMatchObject({ kind: 'gauge', values: [1] });
    expect(of('portolan-agent', 'process_cpu_user_seconds_total')).toMatchObject({
      kind: 'sum',
      scope: 'portolan/process',
    });
  });

  test('an export that brings a trace along -> it goes on; one that brings nonsense -> begins its own', async () => {
    await at(east, 'register shop/cart --address 10.1.0.6 --port http=18081:8080');
    await at(east, 'register shop/odd --address 10.1.0.7 --port http=18082:8080');
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    for (const [name, text] of [
      ['cart', `00-${traceId}-00f067aa0ba902b7-01`],
      ['odd', `<b>${'9'.repeat(5_000)}`],
    ] as const)
      await east.client.create(serviceExportType, {
        apiVersion: 'multicluster.x-k8s.io/v1beta1',
        kind: 'ServiceExport',
        metadata: { namespace: 'shop', name, annotations: { [traceparentAnnotation]: text } },
      });
    await until('every step has arrived', () => stepsOf('cart').length + stepsOf('odd').length >= 2 * wholeWay.length);
    expect(new Set(spansOf('cart').map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect(stepsOf('odd').sort()).toEqual(wholeWay);
    expect(new Set(spansOf('odd').map((span) => span.traceId)).size).toBe(1);
    expect(spansOf('odd').some((span) => span.traceId === traceId)).toBe(false);
  });

  test('the receiver is away -> said once, names and rules go on; stopped -> what is left is sent', async () => {
    const { url } = receiver;
    receiver.stop();
    await exportFromEast('late', 18_083);
    await until(
      'west has it',
      async () =>
        Object.keys(await annotationsOf(west.client, serviceImportType, 'shop', 'late').catch(() => ({}))).length > 0,
    );
    await until('it is said', () => dns.log().includes('OpenTelemetry: not everything is sent'));
    expect(dns.log().match(/OpenTelemetry/g)).toHaveLength(1);
    receiver = await new OtlpReceiver().start(Number(new URL(url).port));
    await proxy.stop();
    expect(proxy.child.exitCode).toBe(0);
    await until('its last words', () =>
      [...receiver.metrics.values()].some(({ service }) => service === 'portolan-proxy'),
    );
  });

  test('not asked for -> nothing is carried; what was carried stays', async () => {
    for (const name of Object.keys(asked)) delete process.env[name];
    await eastAgent.stop();
    await set.startAgent(eastKubeconfig);
    await exportFromEast('quiet', 18_084);
    expect(await annotationsOf(broker.client, serviceShardType, 'prod-m-east', 'quiet.shop')).not.toHaveProperty(
      traceparentAnnotation,
    );
    expect(await annotationsOf(broker.client, serviceShardType, 'prod-m-east', 'late.shop')).toHaveProperty(
      traceparentAnnotation,
    );
  });
});
