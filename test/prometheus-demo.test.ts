// The demo as a real Prometheus sees it: every query of the dashboards answers, and every alert has the series that it reads.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import type { DemoFile } from '../src/main/demo/part.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { until } from './support/dns-process.ts';
import { portolan } from './support/portolan.ts';
import { homeTarget, seriesOfAlerts, seriesOfDashboards, TestPrometheus } from './support/prometheus.ts';

const patient = { timeout: 60_000, interval: 250 };

describeWith(['prometheus', 'envoy'], 'prometheus over the demo', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-prometheus-demo-'));
  let child: ChildProcess;
  let file: DemoFile;
  let prometheus: TestPrometheus;
  let clustersetUrl: string;

  beforeAll(async () => {
    const PATH = `${dirname(pathOf('envoy')!)}:${process.env['PATH']}`;
    child = spawn(portolan, ['demo', '--dir', folder], {
      env: { ...process.env, PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (printed += chunk));
    await until(`the demo is ready: ${printed}`, () => /^ready$/m.test(printed));
    clustersetUrl = /curl -s (http:\/\/\S+)/.exec(printed)?.[1] ?? '';
    file = JSON.parse(readFileSync(join(folder, 'demo.json'), 'utf8'));
    const homes = { broker: file.broker, [file.neighbour.name]: file.neighbour, ...file.clusters };
    const targets = [
      ...Object.entries(homes).map(([name, { kubeconfig }]) => homeTarget({ name, kubeconfig, folder })),
      ...Object.entries(file.admins).map(([name, url]) => ({ name, url })),
    ];
    prometheus = await TestPrometheus.start({ folder: join(folder, 'prometheus'), rules: 'groups: []', targets });
    await until('all parts are scraped', async () => (await prometheus.query('up == 1')).length === targets.length);
  });
  afterAll(async () => {
    await prometheus?.stop();
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  test('its parts -> each has an admin endpoint', () => {
    expect(Object.keys(file.admins)).toEqual([
      ...['agent-east', 'agent-south', 'agent-west', 'authority', 'dns-east', 'dns-south', 'dns-west'],
      ...['peering-acme', 'peering-west', 'proxy-west', 'xds-acme', 'xds-west'],
    ]);
  });

  test('a name is asked for, and connected to -> every query of the dashboards answers', async () => {
    const [host = '', port = ''] = file.clusters['west']!.dns.split(':');
    await askUdp({ host, port: Number(port) }, 'checkout.shop.svc.clusterset.local A');
    expect((await fetch(clustersetUrl)).status).toBe(200);
    for (const expression of seriesOfDashboards())
      await expect.poll(() => prometheus.query(expression), { ...patient, message: expression }).not.toEqual([]);
  });

  // The demo writes no audit log.
  const series = seriesOfAlerts().filter(([, metric]) => metric !== 'portolan_audit_log_writable');
  test.each(series)('%s -> %s is there', async (_name, metric) => {
    await expect.poll(() => prometheus.query(metric), patient).not.toEqual([]);
  });

  test('certificates -> the ends of all that the demo uses', async () => {
    const found = await prometheus.query('portolan_certificate_expiry_timestamp_seconds > time()');
    const names = new Set(found.map(({ metric }) => metric['certificate']));
    expect([...names].sort()).toEqual([
      'federation-authority',
      'home-authority',
      'home-serving',
      'peering',
      'stub-zones',
      'xds-proxy',
      'xds-serving',
    ]);
  });
});
