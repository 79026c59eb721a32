// `npm run bench:dashboard`: the page over a clusterset of 50 clusters and 1,000 services, in Chromium: the first view, how
// soon a change is shown, and the memory of the page after 10,000 changes. --clusters, --services and --changes scale it.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { findCommand, installDebianPrograms } from '../scripts/counterparts.mjs';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { memberNamespace } from '../src/clusterset/rules/broker-layout.ts';
import { issueViewerToken } from '../src/dashboard/viewer.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { clusterId, clusterset, fillBroker, serviceName } from './dashboard/clusterset.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '50' },
    services: { type: 'string', default: '1000' },
    changes: { type: 'string', default: '10000' },
    json: { type: 'string' },
  },
});
const clusters = Number(values.clusters);
const services = Number(values.services);
const changes = Number(values.changes);
const portolan = `${import.meta.dirname}/../bin/portolan`;
const directory = mkdtempSync(`${import.meta.dirname}/.bench-dashboard-`);
const stops: (() => unknown)[] = [];
installDebianPrograms(['chromium']);

try {
  await run();
} finally {
  for (const stop of stops.reverse()) await stop();
  rmSync(directory, { recursive: true, force: true });
}

async function run(): Promise<void> {
  await start(['api', '--data', directory, '--listen', '127.0.0.1:0'], 'ready');
  const kubeconfig = `${directory}/admin.kubeconfig`;
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'portolan-bench' });
  stops.push(() => client.close());
  await fillBroker(client, { clusters, services });
  const token = await issueViewerToken(client, 3_600_000);
  const ready = await start(['dashboard', '--kubeconfig', kubeconfig, '--listen', '127.0.0.1:0'], 'ready');
  const browser = await chromium.launch({ executablePath: findCommand('chromium')!, args: ['--no-sandbox'] });
  stops.push(() => browser.close());
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
  const url = `${ready.split(' ')[1]}`;
  const coldMs = await firstView(page, `${url}/#token=${token}`);
  const warmMs = await firstView(page, `${url}/services`);
  const rows = await page.locator('tbody tr').count();
  const latencies = await liveChanges(page, client);
  const memory = await memoryAfterChanges(page, client);
  const growth = (100 * (memory.after - memory.before)) / memory.before;
  const figures: Figure[] = [
    {
      name: 'first view, first page of a bearer',
      value: coldMs,
      unit: 'ms',
      wanted: 'under 2 s',
      isMet: coldMs < 2_000,
    },
    { name: 'first view of the next page', value: warmMs, unit: 'ms', wanted: 'under 2 s', isMet: warmMs < 2_000 },
    { name: 'a change until it is shown, p50', value: percentile(latencies, 0.5), unit: 'ms' },
    {
      name: 'a change until it is shown, p95',
      value: percentile(latencies, 0.95),
      unit: 'ms',
      wanted: 'within 500 ms',
      isMet: percentile(latencies, 0.95) < 500,
    },
    {
      name: `memory of the page after ${changes} changes`,
      value: growth,
      unit: '%',
      wanted: 'within 10 %',
      isMet: growth < 10,
    },
    { name: 'rows of services in the document', value: rows, unit: '', wanted: 'under 100', isMet: rows < 100 },
    { name: 'memory of the page', value: memory.after / 1e6, unit: 'MB' },
  ];
  report(`Dashboard with ${services} services and ${clusters} clusters`, figures);
}

/** Resolves with the line that begins with `word`. */
async function start(args: string[], word: string): Promise<string> {
  const child = spawn(portolan, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  stops.push(() => child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith(word)) return line;
  throw new Error(`portolan ${args[0]} ended`);
}

/** Until all clusters are counted and the map is drawn, or all services are. */
async function firstView(page: Page, url: string): Promise<number> {
  const startedMs = performance.now();
  await page.goto(url);
  if (url.includes('#'))
    await Promise.all([
      page.getByText(`${clusters} alive`, { exact: true }).waitFor(),
      page.locator('.spot').first().waitFor(),
    ]);
  else await page.getByText(`${services} services`).waitFor();
  return performance.now() - startedMs;
}

/** From the write to the frame that shows it, both by the clock of this machine. */
async function liveChanges(page: Page, client: Client): Promise<number[]> {
  await page.getByRole('searchbox').fill(serviceName(1));
  const cell = page
    .locator('tbody tr', { hasText: serviceName(1) })
    .locator('td')
    .nth(3);
  await cell.waitFor();
  const latencies: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const before = Number(await cell.textContent());
    const wanted = String(before + 1);
    const shown = page.evaluate(
      `new Promise((done) => {
        const look = () => document.querySelector('tbody tr:not(.gap) td:nth-of-type(4)')?.textContent === '${wanted}'
          ? done(Date.now()) : requestAnimationFrame(look);
        look();
      })`,
    );
    const own = await shardIn(client, 1);
    const startedMs = Date.now();
    await client.patch(serviceShardType, own.metadata, {
      kind: 'merge',
      body: { spec: { readyEndpoints: (own.spec.readyEndpoints ?? 0) + 1 } },
    });
    latencies.push(((await shown) as number) - startedMs);
  }
  await page.getByRole('searchbox').fill('');
  return latencies.sort((a, b) => a - b);
}

async function shardIn(client: Client, service: number) {
  const { items } = await client.list<ServiceShard>(serviceShardType, {
    namespace: memberNamespace(clusterset, clusterId(service % clusters)),
    fieldSelector: `metadata.name=${serviceName(service)}.shop`,
  });
  return items[0]!;
}

async function memoryAfterChanges(page: Page, client: Client): Promise<{ before: number; after: number }> {
  // The first changes allocate things once; that is no growth.
  await change(client, Math.ceil(changes / 10));
  const before = await usedBytes(page);
  await change(client, changes);
  await page.waitForTimeout(2_000);
  return { before, after: await usedBytes(page) };
}

async function change(client: Client, total: number): Promise<void> {
  const lanes = 16;
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      for (let n = lane; n < total; n += lanes) {
        const service = n % services;
        const ref = {
          namespace: memberNamespace(clusterset, clusterId(service % clusters)),
          name: `${serviceName(service)}.shop`,
        };
        await client.patch(serviceShardType, ref, { kind: 'merge', body: { spec: { readyEndpoints: 1 + (n % 9) } } });
      }
    }),
  );
}

async function usedBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  for (let round = 0; round < 3; round += 1) await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize;
}
