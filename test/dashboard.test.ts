// The dashboard of a demo in a real browser: what is wrong comes first, everything is live, and nothing is shown as current
// that is not.

import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { describeWith } from './support/counterparts.ts';
import { go, launchBrowser, openPage, type RunningDemo, seriousFaults, startDemo } from './support/dashboard.ts';

const views = ['/', '/services', '/clusters'];

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
    ['dark', 1280, ['color-contrast']],
    ['light', 380, ['scrollable-region-focusable']],
  ] as const)(
    'views: %s, %d pixels wide -> axe-core finds no serious fault, nothing sticks out',
    async (colorScheme, width, rules) => {
      const narrow = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
      const { page } = await openPage(narrow, link());
      await page.getByText('PTL0302').waitFor();
      for (const path of views) {
        await go(page, path);
        expect(await seriousFaults(page, rules), path).toEqual([]);
        const overhang = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        expect(await page.evaluate(overhang), path).toBe(0);
      }
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
});
