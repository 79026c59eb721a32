// The dashboard of a demo in a real browser: what is wrong comes first, everything is live, and nothing is shown as current
// that is not.

import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import type { TrafficView } from '../src/dashboard/wire/views.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { serviceAccountType } from '../src/kube/objects/rbac.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { describeWith } from './support/counterparts.ts';
import {
  go,
  launchBrowser,
  limitedToken,
  openPage,
  type RunningDemo,
  seriousFaults,
  startDemo,
} from './support/dashboard.ts';
import { addressInWest, request, steadily } from './support/demo-traffic.ts';

const views = [
  '/',
  '/flows',
  '/timeline',
  '/services',
  '/services/shop/cart',
  '/ask',
  '/clusters',
  '/?cluster=west',
  '/codes',
  '/codes/PTL0302',
  '/no-such-view',
  '/matrix',
  '/peers',
  '/external',
  '/what-if',
  '/plots',
];

describeWith(['chromium'], 'dashboard', () => {
  let demo: RunningDemo;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    [demo, browser] = await Promise.all([startDemo(), launchBrowser()]);
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  });
  afterAll(async () => {
    await browser?.close();
    demo?.stop();
  });

  const link = (path = '/') => `${demo.file.dashboard}${path}#token=${demo.file.token}`;

  test('sign in: without a token, with a wrong one, with the one of the demo -> asked for, refused, in', async () => {
    const { page } = await openPage(context, demo.file.dashboard);
    await page.getByLabel('Token', { exact: true }).fill('not-a-token-of-this-demo-at-all');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('no home accepts this token').waitFor();
    await page.getByLabel('Token', { exact: true }).fill(demo.file.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('4 of 4 homes answered').waitFor();
    await page.close();
  });

  test('a link in a new tab -> signed in as the open one, out with it; another browser -> asked for a token', async () => {
    const { page: first } = await openPage(context, link());
    await first.getByText('4 of 4 homes answered').waitFor();
    const { page: second } = await openPage(context, `${demo.file.dashboard}/services`);
    await second.getByText('4 of 4 homes answered').waitFor();
    await second.getByRole('button', { name: 'Sign out' }).click();
    for (const page of [first, second]) {
      await page.getByLabel('Token', { exact: true }).waitFor();
      await page.close();
    }
    const stranger = await browser.newContext();
    const { page } = await openPage(stranger, `${demo.file.dashboard}/services`);
    await page.getByLabel('Token', { exact: true }).waitFor();
    await stranger.close();
  });

  test('now: two clusters disagree -> one problem with the code of doctor, and the service it concerns', async () => {
    const { page, errors } = await openPage(context, link());
    const problem = page.getByRole('listitem').filter({ hasText: 'PTL0302' });
    await problem.getByRole('heading', { name: /Exports are in conflict: ServiceExport shop\/cart/ }).waitFor();
    expect(await problem.count()).toBe(1);
    expect(await problem.getByText('east, west', { exact: true }).count()).toBe(1);
    expect(new URL(page.url()).hash).toBe('');
    expect(errors).toEqual([]);
    await page.close();
  });

  test.each([
    ['light', 1280, undefined],
    ['dark', 380, ['color-contrast', 'scrollable-region-focusable']],
  ] as const)(
    'views: %s, %d pixels wide -> axe-core finds no serious fault, nothing sticks out, no script or style is blocked',
    async (colorScheme, width, rules) => {
      const narrow = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
      const { page, errors } = await openPage(narrow, link());
      await page.getByText('PTL0302').first().waitFor();
      for (const path of views) {
        await go(page, path);
        expect(await seriousFaults(page, rules), path).toEqual([]);
        const overhang = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        expect(await page.evaluate(overhang), path).toBe(0);
      }
      expect(errors).toEqual([]);
      await narrow.close();
    },
  );

  test('services: one is exported while the page is open -> it appears without a reload, and goes again', async () => {
    const { page } = await openPage(context, link('/services'));
    await page.getByRole('link', { name: 'shop/checkout' }).waitFor();
    const client = await demo.client('south');
    const metadata = { name: 'payments', namespace: 'shop' };
    const spec = { ports: [{ name: 'http', port: 8080 }] };
    await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
    await client.create(serviceExportType, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata,
    });
    await page.getByRole('link', { name: 'shop/payments' }).waitFor();
    await client.delete(serviceExportType, metadata);
    await page.getByRole('link', { name: 'shop/payments' }).waitFor({ state: 'detached' });
    await client.delete(serviceType, metadata);
    await page.close();
  });

  test('services: a filter that nothing matches -> said so, and cleared by a button', async () => {
    const { page } = await openPage(context, link('/services'));
    await page.getByRole('link', { name: 'shop/checkout' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('nothing-like-it');
    await page.getByText(/None of \d+ match this filter/).waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await page.getByRole('link', { name: 'shop/checkout' }).waitFor();
    await page.close();
  });

  test('map: regions, clusters, a peer and an external service -> each is there, and one chosen says whom it exports to', async () => {
    const { page } = await openPage(context, link());
    const map = page.getByRole('region', { name: 'Map' });
    for (const name of ['north', 'south', 'outside', 'acme', 'rates'])
      await map.getByText(name, { exact: true }).first().waitFor();
    for (const name of ['east', 'west', 'south'])
      await map.getByRole('button', { name: `cluster ${name}: ok` }).waitFor();
    expect(await map.locator('.line').count()).toBeGreaterThanOrEqual(4);
    await map.getByRole('button', { name: 'cluster east: ok' }).click();
    const side = page.getByRole('complementary', { name: 'Chosen cluster' });
    await side.getByRole('heading', { name: 'east' }).waitFor();
    await side.getByText('south, west').first().waitFor();
    await side.getByRole('button', { name: 'shop/checkout' }).waitFor();
    expect(new URL(page.url()).search).toBe('?cluster=east');
    await page.reload();
    await side.getByRole('heading', { name: 'east' }).waitFor();
    await page.close();
  });

  test('map: a known number of connections -> totals, the line and the service say them; one of another place stays idle', async () => {
    const { page } = await openPage(context, link());
    const checkout = await addressInWest(demo, 'checkout');
    const reports = await addressInWest(demo, 'reports');
    for (let count = 0; count < 40; count += 1) expect(await request(count % 4 === 0 ? reports : checkout)).toBe(true);
    const tried = async (service: string) => {
      const text = await page.evaluate(
        `fetch('/api/traffic?cluster=west', { headers: { authorization: 'Bearer ${demo.file.token}' } }).then((one) => one.text())`,
      );
      const { rows } = JSON.parse(String(text)) as TrafficView;
      return rows.filter((one) => one.service === service).reduce((sum, one) => sum + one.tried, 0);
    };
    const wait = { timeout: 20_000 };
    await expect.poll(() => tried('shop/reports'), wait).toBe(10);
    await expect.poll(() => tried('shop/checkout'), wait).toBe(30);
    const stop = [steadily(reports, 50), steadily(checkout, 50)];
    const map = page.getByRole('region', { name: 'Map' });
    await map.locator('.line:not(.is-idle)').first().waitFor();
    await page.getByRole('region', { name: 'Busiest services' }).getByRole('button', { name: 'shop/reports' }).click();
    await map.getByText('path of shop/reports').waitFor();
    await map.locator('.is-faded').getByRole('button', { name: 'cluster south' }).waitFor();
    for (const one of stop) one();
    await page.close();
  });

  test('search: Ctrl-K anywhere, part of a name, Enter -> there; an address that leads nowhere -> said, with a way out', async () => {
    const { page } = await openPage(context, link('/no-such-view'));
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.getByRole('link', { name: 'To the overview' }).click();
    await page.getByRole('heading', { name: /Overview|problems? now/ }).waitFor();
    await page.getByRole('button', { name: 'cluster east: ok' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('checkou');
    await page.getByRole('option', { name: 'shop/checkout' }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'shop/checkout' }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.keyboard.press('/');
    await page.keyboard.type('PTL0302');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'PTL0302' }).waitFor();
    await page.close();
  });

  test('flows: answered and refused connections -> each with its outcome, filtered by the address, and why it was refused', async () => {
    const west = await demo.client('west');
    const { page } = await openPage(context, link('/flows?service=shop/reports'));
    const reports = await addressInWest(demo, 'reports');
    expect(await request(reports)).toBe(true);
    const rows = page.getByRole('row').filter({ hasText: 'shop/reports:' });
    await rows.filter({ hasText: 'answered' }).first().waitFor();
    // West's copy of east's only endpoint leads to a port where nothing listens.
    const { items } = await west.list<EndpointSlice>(endpointSliceType, {
      namespace: 'shop',
      labelSelector: 'multicluster.kubernetes.io/service-name=reports',
    });
    const body = { ports: [{ name: 'http', protocol: 'TCP', port: 9 }] };
    // The agent takes it back soon, so it is written until a connection has met it.
    const isAnswered = async () => {
      await west.patch(endpointSliceType, items[0]!.metadata, { kind: 'merge', body });
      for (let count = 0; count < 20; count += 1) if (!(await request(reports))) return false;
      return true;
    };
    await expect.poll(isAnswered, { timeout: 20_000, interval: 20 }).toBe(false);
    const refused = rows.filter({ hasText: 'refused' }).first();
    await refused.waitFor();
    await refused.getByText('Why?').click();
    await refused.getByText(/answered that nothing listens there/).waitFor();
    await page.getByLabel('Outcome').selectOption('refused');
    await expect
      .poll(() => rows.locator('.badge').filter({ hasText: 'answered' }).count(), { timeout: 10_000 })
      .toBe(0);
    await rows.locator('.badge').filter({ hasText: 'refused' }).first().waitFor();
    expect(new URL(page.url()).searchParams.get('outcome')).toBe('refused');
    await go(page, '/services/shop/reports');
    const traffic = page.getByRole('region', { name: 'Traffic', exact: true });
    await traffic
      .getByRole('row')
      .filter({ hasText: /^west.*east/ })
      .waitFor();
    await page.close();
  });

  test('service: two clusters disagree -> who won and why, the way out, endpoints, and the answer of each resolver', async () => {
    const { page } = await openPage(context, link('/services/shop/cart'));
    const conflict = page.getByRole('listitem').filter({ hasText: 'PortConflict' }).first();
    await conflict.getByText(/"http" TCP\/8080 of cluster east is used/).waitFor();
    await conflict.getByText('Take "http" TCP/8081 instead: change it in east').waitFor();
    const dns = page.getByRole('region', { name: 'DNS' });
    for (const cluster of ['east', 'west', 'south'])
      await dns
        .getByRole('article')
        .filter({ hasText: `from ${cluster}` })
        .getByText('because of ServiceImport')
        .waitFor();
    const endpoints = page.getByRole('region', { name: 'Endpoints', exact: true });
    const cells = await endpoints
      .getByRole('row')
      .filter({ hasText: /^west.*127\.1\.0\./ })
      .first()
      .getByRole('cell')
      .allTextContents();
    expect(cells[3]).toMatch(/ready$/);
    expect(cells[5]).toMatch(/^\d+ (s|min)$/);
    const traffic = page.getByRole('article').filter({ hasText: /Traffic.*(carried|proxy)/ });
    expect(await traffic.count()).toBe(3);
    await page.close();
  });

  test('service: from one to another -> nothing of the first is shown', async () => {
    const { page } = await openPage(context, link('/services/shop/cart'));
    const dns = page.getByRole('region', { name: 'DNS', exact: true });
    await dns.getByText('because of ServiceImport').first().waitFor();
    expect(await dns.getByText('shop/cart', { exact: true }).count()).toBeGreaterThan(0);
    await go(page, '/services/shop/checkout');
    await dns.getByText('because of ServiceImport').first().waitFor();
    expect(await dns.getByText('shop/cart', { exact: true }).count()).toBe(0);
    expect(await dns.getByText('shop/checkout', { exact: true }).count()).toBeGreaterThan(0);
    await page.close();
  });

  test('ask a name: from a cluster, and a federated one -> each record with its reason, also that of the authority', async () => {
    const { page } = await openPage(context, link('/ask'));
    await page.getByLabel('From cluster').selectOption('south');
    await page.getByLabel('Name', { exact: true }).fill('db.shop.svc.clusterset.local');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    const answer = page.getByRole('region', { name: 'Answer' });
    await answer.getByText('A 127.1.0.2').waitFor();
    expect(await answer.getByText(/because of EndpointSlice .* cluster east/).count()).toBeGreaterThan(0);
    await page.getByLabel('Name', { exact: true }).fill('checkout.shop.world.svc.federation');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await answer
      .getByRole('region', { name: 'authority of the federation' })
      .getByText(/own cluster/)
      .waitFor();
    await page.close();
  });

  test('what if: the winner of a conflict is no longer exported -> planned, and not done', async () => {
    const { page } = await openPage(context, link('/what-if?service=shop/cart'));
    await page.getByLabel(/^Cluster/).selectOption('east');
    await page.getByLabel('Change').selectOption('unexport');
    await page.getByRole('button', { name: 'Plan' }).click();
    const plan = page.getByRole('region', { name: 'Plan' });
    await plan.getByText(/spec.sessionAffinity: "ClientIP" would become "None"/).waitFor();
    await plan.getByText(/Conflict True .* would become False/).waitFor();
    await plan.getByText('No conflicts afterwards').waitFor();
    const client = await demo.client('east');
    expect(await client.get(serviceExportType, { namespace: 'shop', name: 'cart' })).toBeDefined();
    await page.close();
  });

  test('matrix: one service differs in one cluster -> first row, marked there; arrow keys move between cells', async () => {
    const { page } = await openPage(context, link('/matrix'));
    const cell = (text: string) => page.getByRole('link', { name: text });
    await cell('shop/cart in west: conflict, differs in spec.ports[http], spec.sessionAffinity, 1 ready').waitFor();
    expect(await page.getByRole('rowheader').first().textContent()).toContain('shop/cart');
    await cell('shop/db in west: exports nothing').waitFor();
    await cell('shop/cart in east: ok, 1 ready').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    const focused = () => page.evaluate(`document.activeElement?.getAttribute('aria-label')`);
    await expect.poll(focused).toMatch(/^shop\/checkout in south: ok/);
    await page.close();
  });

  test('peers, external services, timeline, plots -> what is there', async () => {
    const { page } = await openPage(context, link('/peers'));
    const peer = page.getByRole('article').filter({ hasText: 'acme' });
    await peer.getByText('Synced').first().waitFor();
    await go(page, '/external');
    await page.getByRole('row').filter({ hasText: 'rates' }).getByText('over TLS').waitFor();
    await go(page, '/timeline');
    await page
      .getByRole('listitem')
      .filter({ hasText: 'shop/cart' })
      .filter({ hasText: 'is in conflict' })
      .first()
      .waitFor();
    await go(page, '/plots');
    const row = page.getByRole('table', { name: 'Latest figures' }).getByRole('row').filter({ hasText: 'west' });
    await row.getByText('answers').waitFor();
    const figures = await row.getByRole('cell').allTextContents();
    for (const column of [0, 1, 2, 4]) expect(figures[column], String(column)).toMatch(/^[\d.]+$/);
    for (const title of ['Connections', 'From an export', 'From a change', 'Queries', 'Age of leases'])
      await page
        .getByRole('region', { name: `Plot: ${title}` })
        .locator('canvas')
        .waitFor();
    await page.getByLabel('Time').selectOption('day');
    await page.getByRole('region', { name: 'Plot: Connections' }).locator('canvas').waitFor();
    expect(new URL(page.url()).search).toBe('?range=day');
    await page.close();
  });

  test('a cluster is cut off by its button -> one problem, its services without it; healed -> all is well, without a reload', async () => {
    const { page } = await openPage(context, link('/clusters'));
    await page.evaluate('window.isSame = true');
    await page.getByRole('button', { name: 'Cut east off' }).click();
    await page
      .getByRole('row')
      .filter({ hasText: /^east/ })
      .getByText(/Failed|Stale/)
      .waitFor();
    await go(page, '/');
    const problem = page.getByRole('listitem').filter({ hasText: 'PTL0202' });
    await problem.getByRole('heading', { name: /agent of cluster east/ }).waitFor();
    expect(await problem.count()).toBe(1);
    await problem.getByRole('link', { name: 'shop/checkout' }).waitFor();
    await go(page, '/services/shop/checkout');
    await page.getByRole('heading', { level: 1 }).getByText('without east').waitFor();
    await go(page, '/clusters');
    await page.getByRole('button', { name: 'Heal east' }).click();
    await page.getByRole('row').filter({ hasText: /^east/ }).getByText('OK').waitFor();
    await go(page, '/');
    await problem.waitFor({ state: 'detached' });
    await go(page, '/timeline');
    await page.getByRole('listitem').filter({ hasText: 'cluster east' }).first().waitFor();
    expect(await page.evaluate('window.isSame')).toBe(true);
    await page.close();
  }, 60_000);

  test('a token that may see one namespace of one cluster -> that, and said what it may not see', async () => {
    const { page } = await openPage(context, demo.file.dashboard);
    await page.getByLabel('Token', { exact: true }).fill(await limitedToken(await demo.client('west')));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('1 of 4 homes answered').waitFor();
    await page.getByText('You are not signed in at broker, east, south.').waitFor();
    await go(page, '/services');
    await page.getByRole('link', { name: 'shop/cart' }).waitFor();
    await go(page, '/peers');
    await page.getByText('You may not see this.').waitFor();
    await go(page, '/ask');
    await page.getByLabel('Name', { exact: true }).fill('cart.shop.svc.clusterset.local');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page
      .getByRole('alert')
      .getByText(/you may not see the parts of west/)
      .waitFor();
    await page.close();
  });

  test('the token is revoked while the page is open -> said on top, nothing looks current; signed in again -> live', async () => {
    const client = await demo.client('west');
    const { page } = await openPage(context, demo.file.dashboard);
    await page.getByLabel('Token', { exact: true }).fill(await limitedToken(client));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('1 of 4 homes answered').waitFor();
    await client.delete(serviceAccountType, { namespace: 'shop', name: 'viewer' });
    await page.getByRole('alert', { name: 'Signed out' }).waitFor();
    expect(await page.locator('main.is-old').count()).toBe(1);
    expect(await page.getByRole('banner').getByText('lost').count()).toBe(1);
    await page.getByRole('alert', { name: 'Signed out' }).getByLabel('Token', { exact: true }).fill(demo.file.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('4 of 4 homes answered').waitFor();
    expect(await page.locator('main.is-old').count()).toBe(0);
    await page.close();
  });

  test('the dashboard sends nothing, or the browser slept -> lost with the time; back -> live by itself', async () => {
    const own = await browser.newContext();
    await own.clock.install();
    const { page } = await openPage(own, link());
    await page.getByText('4 of 4 homes answered').waitFor();
    demo.child.kill('SIGSTOP');
    await own.clock.fastForward(15_000);
    await page
      .getByRole('alert')
      .getByText(/The connection to the dashboard is lost .* as of \d\d:\d\d:\d\d/)
      .waitFor();
    expect(await page.locator('main.is-old').count()).toBe(1);
    demo.child.kill('SIGCONT');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.getByText('4 of 4 homes answered').waitFor();
    expect(await page.locator('main.is-old').count()).toBe(0);
    await own.close();
  });

  test('bundle: the first view -> within 115 KB gzip, everything within 230 KB', async () => {
    const { page } = await openPage(context, demo.file.dashboard);
    const first = (await page.evaluate('performance.getEntriesByType("resource").map(({ name }) => name)')) as string[];
    const folder = new URL('../dist/dashboard/', import.meta.url);
    const sizeOf = (name: string) => gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length;
    const files = readdirSync(new URL('assets/', folder)).map((name) => `assets/${name}`);
    const loaded = files.filter((name) => first.some((url) => url.endsWith(name)));
    expect(loaded.length).toBeGreaterThan(1);
    expect(loaded.reduce((sum, name) => sum + sizeOf(name), sizeOf('index.html'))).toBeLessThan(115_000);
    expect(files.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(230_000);
    await page.close();
  });
});
