// A demo with its dashboard, and Debian's Chromium to look at it.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { requestToken } from '../../src/kube/client/account-token.ts';
import { install } from '../../src/kube/client/apply.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { manifest } from '../../src/kube/objects/manifest.ts';
import { roleBindingType, roleRefOf, roleType, serviceAccountType } from '../../src/kube/objects/rbac.ts';
import type { DemoFile } from '../../src/main/demo/part.ts';
import { pathOf } from './counterparts.ts';
import { portolan } from './portolan.ts';

export interface RunningDemo {
  readonly file: DemoFile;
  readonly directory: string;
  readonly child: ChildProcess;
  client(cluster: string): Promise<Client>;
  stop(): void;
}

export async function startDemo(): Promise<RunningDemo> {
  const directory = mkdtempSync(`${tmpdir()}/portolan-dashboard-`);
  const child = spawn(portolan, ['demo', '--dir', directory], {
    env: { ...process.env, PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the demo ended with ${code}: ${printed}`)));
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        printed += chunk;
        if (/^ready$/m.test(printed)) resolve();
      });
  });
  const file = JSON.parse(readFileSync(`${directory}/demo.json`, 'utf8')) as DemoFile;
  const clients: Client[] = [];
  return {
    file,
    directory,
    child,
    client: async (cluster) => {
      const kubeconfig = cluster === 'broker' ? file.broker.kubeconfig : file.clusters[cluster]!.kubeconfig;
      const client = await clientOf(kubeconfig);
      clients.push(client);
      return client;
    },
    stop: () => {
      for (const client of clients) client.close();
      child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function clientOf(kubeconfig: string): Promise<Client> {
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  return createClient(world.network.http(access), { world, userAgent: 'portolan-test' });
}

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: pathOf('chromium')!, args: ['--no-sandbox'] });
}

/** A page that fails the test on errors of scripts and on what the security policy blocks. */
export async function openPage(context: BrowserContext, url: string): Promise<{ page: Page; errors: string[] }> {
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|net::ERR/.test(message.text()))
      errors.push(message.text());
  });
  await page.goto(url);
  return { page, errors };
}

/** By link, as a person goes there: without loading the page anew. */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.waitForTimeout(150);
}

/** Faults that axe-core calls serious or critical, each with its elements; of all rules, or of the named ones. */
export async function seriousFaults(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(axe.source);
  const options = { resultTypes: ['violations'], ...(rules === undefined ? {} : { runOnly: rules }) };
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

/** Token of an account that may read exports, imports and slices of one namespace. */
export async function limitedToken(client: Client): Promise<string> {
  const namespace = 'shop';
  const rules = [
    { apiGroups: ['multicluster.x-k8s.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
  ];
  const subjects = [{ kind: 'ServiceAccount', name: 'viewer', namespace }];
  await install(client, manifest(serviceAccountType, { name: 'viewer', namespace }, {}));
  await install(client, manifest(roleType, { name: 'viewer', namespace }, { rules }));
  await install(
    client,
    manifest(roleBindingType, { name: 'viewer', namespace }, { subjects, roleRef: roleRefOf('Role', 'viewer') }),
  );
  return (await requestToken(client, { namespace, name: 'viewer', lifetimeMs: 3_600_000 })).token;
}
