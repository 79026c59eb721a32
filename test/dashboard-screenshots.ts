// `npm run screenshots`: the pictures of the dashboard in docs/images/, made of a running demo.

import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { animatedPng, type Frame } from './support/animated-png.ts';
import { go, launchBrowser, limitedToken, openPage, type RunningDemo, startDemo } from './support/dashboard.ts';
import { addressInWest, steadily } from './support/demo-traffic.ts';
import { runPortolan } from './support/portolan.ts';

const folder = fileURLToPath(new URL('../docs/images/', import.meta.url));
mkdirSync(folder, { recursive: true });
const [demo, browser] = await Promise.all([startDemo(), launchBrowser()]);
const stops: (() => void)[] = [];
try {
  for (const [name, everyMs] of [
    ['checkout', 40],
    ['reports', 120],
  ] as const)
    stops.push(steadily(await addressInWest(demo, name), everyMs));
  await shootCutAndHealed(demo, browser);
  await shootViews(demo, browser);
  await shootLimited(demo, browser);
} finally {
  for (const stop of stops) stop();
  await browser.close();
  demo.stop();
}

async function shootViews({ file }: RunningDemo, { newContext }: Browser): Promise<void> {
  const context = await newContext.call(browser, { viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  const { page } = await openPage(context, `${file.dashboard}/#token=${file.token}`);
  await page.getByText('PTL0302').first().waitFor();
  await page.locator('.line:not(.is-idle)').first().waitFor();
  await page.waitForTimeout(4_000);
  await page.getByRole('button', { name: 'cluster west: ok' }).click();
  await shoot(page, 'dashboard-map');
  await go(page, '/services/shop/cart');
  await page.getByText('because of ServiceImport').first().waitFor();
  await shoot(page, 'dashboard-service');
  await go(page, '/ask');
  await page.getByLabel('Name', { exact: true }).fill('checkout.shop.world.svc.federation');
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.getByText('authority of the federation').waitFor();
  await shoot(page, 'dashboard-ask');
  await go(page, '/what-if');
  await page.getByLabel(/^Cluster/).selectOption('east');
  await page.getByLabel('Change').selectOption('unexport');
  await page.getByLabel('Service').fill('shop/cart');
  await page.getByRole('button', { name: 'Plan' }).click();
  await page.getByText('No conflicts afterwards').waitFor();
  await shoot(page, 'dashboard-what-if');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 400, height: 800 });
  await go(page, '/services');
  await shoot(page, 'dashboard-narrow');
  await context.close();
}

async function shootLimited(running: RunningDemo, { newContext }: Browser): Promise<void> {
  const context = await newContext.call(browser, { viewport: { width: 1280, height: 620 }, colorScheme: 'light' });
  const { page } = await openPage(context, running.file.dashboard);
  await page.getByLabel('Token', { exact: true }).fill(await limitedToken(await running.client('west')));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('1 of 4 homes answered').waitFor();
  await go(page, '/peers');
  await page.getByText('You may not see this.').waitFor();
  await shoot(page, 'dashboard-one-namespace');
  await context.close();
}

/** A moving picture: traffic, a cluster that is cut off, and all well again. */
async function shootCutAndHealed({ file, directory }: RunningDemo, { newContext }: Browser): Promise<void> {
  const viewport = { width: 1280, height: 640 };
  const context = await newContext.call(browser, { viewport, colorScheme: 'light', reducedMotion: 'no-preference' });
  const { page } = await openPage(context, `${file.dashboard}/#token=${file.token}`);
  await page.locator('.line:not(.is-idle)').first().waitFor();
  await page.waitForTimeout(4_000);
  const frames: Frame[] = [];
  const record = async (count: number, everyMs: number, shownMs = everyMs) => {
    await page.locator('.line:not(.is-idle)').first().waitFor();
    for (let left = count; left > 0; left -= 1) {
      frames.push({ png: await page.screenshot(), shownMs });
      await page.waitForTimeout(everyMs);
    }
  };
  const order = (verb: string) => runPortolan(['demo', verb, 'east', '--dir', directory]);
  await record(3, 400, 600);
  await order('break');
  await page.getByText('PTL0202').first().waitFor();
  await record(4, 900, 900);
  await order('heal');
  await page.getByText('PTL0202').first().waitFor({ state: 'detached' });
  await record(3, 900, 900);
  writeFileSync(`${folder}dashboard-cut-and-healed.png`, animatedPng(frames));
  await context.close();
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${folder}${name}.png` });
}
