// A clusterset of real processes that Debian's Prometheus scrapes: every query of the dashboards and every series of the
// alerts is there, and alerts fire in made faults and go away after.

import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { issueCertificate } from '../src/base/x509/certificates.ts';
import { generatePrivateKey } from '../src/base/x509/edge/keys.ts';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import { alerts } from '../src/install/monitoring/alerts.ts';
import { alertCases, promtoolTests } from './support/alert-cases.ts';
import { AlertWatch, alertsOfTests, hastyRules, rulesFile } from './support/alert-watch.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith } from './support/counterparts.ts';
import { until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { type PortolanProcess, runPortolan, startPortolan } from './support/portolan.ts';
import {
  homeTarget,
  promtool,
  seriesOfAlerts,
  seriesOfDashboards,
  TestPrometheus,
  targetsIn,
} from './support/prometheus.ts';

const part = await takeLoopbackPart();
const waitMs = 60_000;
/** Made faults are reported in the logs. */
const quiet = ['--log-level', 'error'];

describeWith(['prometheus', 'promtool'], 'prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-prometheus-'));
  const stops: (() => Promise<unknown>)[] = [];
  const processes = new Map<string, PortolanProcess>();
  let brokerPort = 0;
  let broker: ApiProcess;
  let prometheus: TestPrometheus;
  let watch: AlertWatch;
  let stopServer: () => Promise<unknown>;

  const kubeconfigOf = (name: string) => join(folder, name, 'admin.kubeconfig');
  const at = async (name: string, line: string, input?: string) => {
    const finished = await runPortolan([...line.split(' '), '--kubeconfig', kubeconfigOf(name)], {
      cwd: folder,
      input,
    });
    expect(finished, line).toMatchObject({ code: 0 });
    return finished.out;
  };

  /** Resolves when it has printed what it prints once it runs. */
  async function start(name: string, args: readonly string[], pattern: RegExp): Promise<void> {
    const started = startPortolan(args);
    stops.push(() => started.stop('SIGKILL'));
    processes.set(name, started);
    await until(`${name} runs`, () => pattern.test(started.out()));
  }

  async function startUp(name: string, args: readonly string[]): Promise<void> {
    const own = ['--data', join(folder, name), '--join', join(folder, `${name}.token`), '--namespace', 'shop'];
    await start(
      name,
      ['up', ...own, '--dns-listen', '127.0.0.1:0', '--dashboard', 'none', ...quiet, ...args],
      /Ctrl-C/,
    );
  }
  const startEast = () => {
    const peering = ['--trust-domain', 'east.example', '--peering-listen', '127.0.0.1:0'];
    return startUp('east', [...peering, '--stub-listen', '127.0.0.1:0']);
  };
  const startWest = () => startUp('west', ['--proxy', 'off']);

  const targetsOf = (name: string) => targetsIn(name, processes.get(name)!.out());
  const allTargets = () => [
    ...['broker', 'east', 'west'].map((name) => homeTarget({ name, kubeconfig: kubeconfigOf(name), folder })),
    ...['east', 'west', 'xds-east'].flatMap(targetsOf),
  ];

  /** The home of west has an authority that ends in 20 days. */
  function writeEndingAuthority(): void {
    const key = generatePrivateKey();
    const subject = { commonName: 'portolan-ca' };
    const [nowMs, dayMs] = [Date.now(), 86_400_000];
    const serial = Buffer.from('0102030405060708', 'hex');
    const times = { serial, notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + 20 * dayMs };
    const certificate = issueCertificate({ subject, key, use: { kind: 'authority' }, ...times });
    expect(new X509Certificate(certificate).ca).toBe(true);
    mkdirSync(join(folder, 'west', 'pki'), { recursive: true });
    writeFileSync(join(folder, 'west', 'pki', 'ca.key'), key, { mode: 0o600 });
    writeFileSync(join(folder, 'west', 'pki', 'ca.crt'), certificate);
  }

  const fires = (name: string, about: string) => watch.fires(name, about);
  const ends = (name: string, about: string) => watch.ends(name, about);

  async function startBroker(): Promise<void> {
    const args = ['--audit', join(folder, 'audit.log')];
    broker = await startApi({ data: join(folder, 'broker'), port: brokerPort, args });
  }

  beforeAll(async () => {
    brokerPort = await freePort();
    await startBroker();
    const range = `--clusterset-range 127.${part}.0.0/17`;
    await at('broker', `broker init --clusterset prod ${range} --lease-renew 1 --lease-duration 4`);
    for (const name of ['east', 'west'])
      writeFileSync(join(folder, `${name}.token`), await at('broker', `broker token ${name} --clusterset prod`));
    writeEndingAuthority();
    await Promise.all([startEast(), startWest()]);
    const xds = ['--kubeconfig', kubeconfigOf('east'), '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
    await start('xds-east', ['xds', ...xds, ...quiet], /^admin /m);
    const targets = allTargets();
    prometheus = await TestPrometheus.start({ folder: join(folder, 'prometheus'), rules: hastyRules(), targets });
    stops.push(() => prometheus.stop());
    watch = new AlertWatch({ prometheus, waitMs });
    await until('all parts are scraped', async () => (await prometheus.query('up == 1')).length === targets.length);
  }, 120_000);
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    await broker?.stop('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  test('promtool: the rules are well formed, and every alert fires and ends with its series', async () => {
    expect(await promtool(['check', 'rules', rulesFile])).toContain(`${alerts.length} rules found`);
    expect(Object.keys(alertCases)).toEqual(alerts.map(({ name }) => name));
    const file = join(folder, 'rules.test.yaml');
    writeFileSync(file, stringify(promtoolTests(rulesFile)));
    expect(await promtool(['test', 'rules', file])).toContain('SUCCESS');
  });

  test('promtool: the metrics of every part -> no lint', async () => {
    const parts = targetsOf('east').concat(targetsOf('west'), targetsOf('xds-east'));
    expect(parts.map(({ name }) => name).sort()).toEqual(
      ['agent-east', 'agent-west', 'dns-east', 'dns-west', 'peering-east', 'proxy-east', 'xds-east'].sort(),
    );
    for (const { url, name } of parts) {
      const text = await (await fetch(`${url}/metrics`)).text();
      expect(text).toContain('portolan_build_info{part=');
      expect(text).toContain('process_cpu_seconds_total');
      expect(await promtool(['check', 'metrics'], text), name).toBe('');
    }
  });

  const dnsOfEast = () => {
    const out = processes.get('east')!.out();
    return { host: '127.0.0.1', port: Number(/^dns +127\.0\.0\.1:(\d+)/m.exec(out)![1]) };
  };
  const askCheckout = () => askUdp(dnsOfEast(), 'checkout.shop.svc.clusterset.local A');

  /** Connections to the imported service, through the proxy of east. */
  async function connectTo(address: string, count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1)
      await new Promise<void>((resolve) => {
        const socket = connect({ host: address, port: 80 }, () => socket.end('hello'));
        socket.on('error', () => {}).on('data', () => {});
        socket.once('close', () => resolve());
      });
  }

  async function listenAt(address: string): Promise<void> {
    const server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
    await new Promise<void>((resolve) => server.listen(80, address, resolve));
    stops.push(async () => server.close());
    stopServer = () => new Promise((resolve) => server.close(resolve));
  }

  test('a service is exported and asked for -> all queries of dashboards answer, and all series of alerts are there', async () => {
    await at('west', `register shop/checkout --address 127.${part}.254.1 --port 80:80 --export --wait`);
    await at('east', 'register shop/other --address 127.0.0.1 --port 81:81 --export');
    await expect.poll(askCheckout, { timeout: waitMs }).toMatch(new RegExp(`^127\\.${part}\\.`));
    // Endpoints on loopback are used where the set's admin names them.
    await at('broker', `broker accept west --clusterset prod --allowed-range 127.${part}.254.1/32`);
    await listenAt(`127.${part}.254.1`);
    const address = await askCheckout();
    const passed = async () => {
      await connectTo(address, 1);
      return (await prometheus.query('portolan_proxy_place_bytes_total > 0')).length;
    };
    await expect.poll(passed, { timeout: waitMs }).toBeGreaterThan(0);
    const trust = `--domain north.example --bundle ${join(folder, 'west', 'pki', 'ca.crt')} --allow north.example`;
    await at('east', `peer add north --address 127.0.0.1:9 ${trust}`);
    for (const [metric, least] of [
      ['portolan_clusterset_export_to_import_seconds_count{instance="agent-east"}', 1],
      ['portolan_dns_export_to_answer_seconds_count{instance="dns-east"}', 1],
    ] as const) {
      const count = async () => Number((await prometheus.query(metric))[0]?.value[1] ?? 0);
      await expect.poll(count, { timeout: waitMs }).toBeGreaterThanOrEqual(least);
    }
    for (const expression of seriesOfDashboards()) {
      const ask = () => prometheus.query(expression);
      await expect.poll(ask, { timeout: waitMs, message: expression }).not.toEqual([]);
    }
    for (const { expression } of alerts) await prometheus.query(expression);
    for (const [name, metric] of seriesOfAlerts())
      expect(await prometheus.query(metric), `${name}: ${metric}`).not.toEqual([]);
  });

  test('certificates of homes, stub zones, peering and the discovery server -> the end of each', async () => {
    const found = await prometheus.query('portolan_certificate_expiry_timestamp_seconds > time()');
    const names = found.map(({ metric }) => `${metric['instance']} ${metric['certificate']}`);
    expect(names).toEqual(
      expect.arrayContaining([
        ...['broker', 'east', 'west'].flatMap((name) => [`home-${name} home-authority`, `home-${name} home-serving`]),
        ...['dns-east stub-zones', 'peering-east peering', 'xds-east xds-serving'],
      ]),
    );
  });

  test('a peer that does not answer, and an export without a Service -> alerts, until they are removed', async () => {
    await fires('PortolanPeerDisconnected', 'peering-east');
    await at('east', 'export shop/missing');
    await fires('PortolanExportInvalid', 'agent-east');
    await Promise.all([at('east', 'unexport shop/missing'), at('east', 'peer remove north')]);
    await ends('PortolanExportInvalid', 'agent-east');
    await ends('PortolanPeerDisconnected', 'peering-east');
  });

  test('the endpoint of a service is gone -> an alert while connections fail, until it is back', async () => {
    const address = await askCheckout();
    await stopServer();
    let isOver = false;
    const clients = async () => {
      while (!isOver) {
        await connectTo(address, 10);
        await pause(100);
      }
    };
    const calling = clients();
    await fires('PortolanServiceFailing', 'west');
    await listenAt(`127.${part}.254.1`);
    await ends('PortolanServiceFailing', 'west').finally(() => {
      isOver = true;
    });
    await calling;
  });

  test('a certificate authority with 20 days left -> an alert, until it is replaced', async () => {
    await fires('PortolanCertificateEnds', 'home-west');
    expect(await prometheus.firing('PortolanCertificateEnds')).toEqual(['home-west']);
    for (const step of ['begin', 'switch'])
      expect(await runPortolan(['api', 'rotate-ca', step, '--data', join(folder, 'west')])).toMatchObject({ code: 0 });
    await ends('PortolanCertificateEnds', 'home-west');
  });

  test('the broker stops -> alerts for each cluster, until it is back', async () => {
    await broker.stop('SIGKILL');
    await Promise.all([
      fires('PortolanBrokerUnreachable', 'east'),
      fires('PortolanBrokerUnreachable', 'west'),
      fires('PortolanPartDown', 'home-broker'),
    ]);
    await startBroker();
    await Promise.all([
      ends('PortolanBrokerUnreachable', 'east'),
      ends('PortolanBrokerUnreachable', 'west'),
      ends('PortolanPartDown', 'home-broker'),
    ]);
  });

  test('the agent of a cluster is killed -> the cluster is silent, until it is started again', async () => {
    await processes.get('west')!.stop('SIGKILL');
    await Promise.all([fires('PortolanMemberSilent', 'west'), fires('PortolanPartDown', 'agent-west')]);
    await startWest();
    await prometheus.setTargets(allTargets());
    await Promise.all([ends('PortolanMemberSilent', 'west'), ends('PortolanPartDown', 'agent-west')]);
  });

  test('npm run check:alerts makes faults for the alerts that did not fire and end above', () => {
    expect(watch.seen()).toEqual([...alertsOfTests].sort());
  });
});
