import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { pagesMax, type Refused, Sessions } from './sessions.ts';
import { createTestHome, exportIn, fastWorld, joinTestHome, type TestHome } from './testing/edge/homes.ts';
import { TestPage } from './testing/page.ts';

const token = 'a-token-of-twenty-characters-or-more';
const speed = 10;
const wait = { timeout: 15_000, interval: 20 };

describe('session', () => {
  let east: TestHome;
  let sessions: Sessions;
  beforeEach(async () => {
    east = await createTestHome('east');
    await joinTestHome(east);
    sessions = new Sessions({
      world: fastWorld([east], speed),
      log: silentLog,
      homes: [east.home],
      codes: new Map(),
      isDemo: false,
      sessionsMax: 2,
    });
  });
  afterEach(() => sessions.stop());

  test('a home goes away -> lost with the reason, one finding, its services stale; back -> live', async () => {
    await exportIn(east, 'checkout');
    const page = new TestPage();
    await sessions.open(token, [], page);
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('live'), wait);
    await vi.waitFor(() => expect(page.get('services', 'shop/checkout')?.health).not.toBe('stale'), wait);
    east.isCut = true;
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('lost'), wait);
    await vi.waitFor(() => expect(page.get('services', 'shop/checkout')?.health).toBe('stale'), wait);
    const codes = () => [...(page.rows.get('problems')?.values() ?? [])].map((row) => (row as { code: string }).code);
    await vi.waitFor(() => expect(codes()).toEqual(['PTL0101']), wait);
    east.isCut = false;
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('live'), wait);
    await vi.waitFor(() => expect(codes()).not.toContain('PTL0101'), wait);
  });

  test('the token expires -> signed out with the reason, and nothing is called current', async () => {
    const page = new TestPage();
    await sessions.open(token, [], page);
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('live'), wait);
    east.isTokenRefused = true;
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('signed out'), wait);
    await vi.waitFor(() => expect(page.get('clusters', 'east')?.health).toBe('failed'), wait);
    await expect(sessions.open(`${token}2`, [], new TestPage())).rejects.toMatchObject({ status: 401 });
  });

  test('a thousand invented tokens from one address -> a request for each of the first, then none; another address signs in', async () => {
    east.isTokenRefused = true;
    const outcomes = new Map<number, number>();
    for (let count = 0; count < 1000; count++) {
      const refused = (await sessions
        .open(`${token}-${count}`, [], new TestPage(), '192.0.2.1')
        .catch((error: unknown) => error)) as Refused;
      outcomes.set(refused.status, (outcomes.get(refused.status) ?? 0) + 1);
    }
    expect(east.requests).toBe(outcomes.get(401));
    expect(east.requests).toBeLessThan(100);
    expect(sessions.size).toBe(0);
    east.isTokenRefused = false;
    const page = new TestPage();
    await sessions.open(token, [], page, '192.0.2.2');
    await vi.waitFor(() => expect(page.get('homes', 'east')?.state).toBe('live'), wait);
  });

  test('a token that was refused a moment ago, or has expired by its own claims -> refused without a request', async () => {
    east.isTokenRefused = true;
    await expect(sessions.open(token, [], new TestPage())).rejects.toMatchObject({ status: 401 });
    expect(east.requests).toBe(1);
    for (let count = 0; count < 5; count++)
      await expect(sessions.open(token, [], new TestPage())).rejects.toMatchObject({ status: 401 });
    const claims = Buffer.from(JSON.stringify({ sub: 'ann', exp: 1000 })).toString('base64url');
    await expect(sessions.open(`e30.${claims}.c2ln`, [], new TestPage())).rejects.toThrow('has expired');
    expect(east.requests).toBe(1);
  });

  test('ten thousand services -> all of them, and one that changes sends one row', async () => {
    const count = 10_000;
    for (let n = 0; n < count; n += 1) await exportIn(east, `service-${n}`);
    const page = new TestPage();
    await sessions.open(token, [], page);
    await vi.waitFor(() => expect(page.rows.get('services')?.size).toBe(count), wait);
    const before = page.messages.length;
    await exportIn(east, 'one-more');
    await vi.waitFor(() => expect(page.get('services', 'shop/one-more')).toBeDefined(), wait);
    const sent = page.messages
      .slice(before)
      .flatMap((message) => (message.kind === 'change' ? Object.keys(message.changes.services ?? {}) : []));
    expect(sent).toEqual(['shop/one-more']);
  }, 60_000);

  test('pages of one bearer, and bearers -> so many and no more; numbers have no gaps', async () => {
    const pages = Array.from({ length: pagesMax }, () => new TestPage());
    for (const page of pages) await sessions.open(token, [], page);
    expect(sessions.size).toBe(1);
    await expect(sessions.open(token, [], new TestPage())).rejects.toThrow(/pages of this bearer are open/);
    await sessions.open(`${token}2`, [], new TestPage());
    const third = sessions.open(`${token}3`, [], new TestPage());
    await expect(third).rejects.toMatchObject({ status: 503 } satisfies Partial<Refused>);
    const numbers = pages[0]!.messages.flatMap((message) => (message.kind === 'change' ? message.number : []));
    expect(numbers).toEqual(numbers.map((_, index) => numbers[0]! + index));
  });

  test('a bearer sees more objects than the bound -> the session ends and says why', async () => {
    for (let n = 0; n < 30; n += 1) await exportIn(east, `service-${n}`);
    const small = new Sessions({
      ...{ world: fastWorld([east], speed), log: silentLog, homes: [east.home], codes: new Map(), isDemo: false },
      objectsMax: 20,
    });
    const page = new TestPage();
    // Before the page is there, or just after.
    await small.open(token, [], page).catch((error: Error) => page.end(error.message));
    await vi.waitFor(() => expect(page.ended).toContain('more objects than'), wait);
    expect(small.size).toBe(0);
  });

  test('all pages are closed -> the session ends a while later, and its watches with it', async () => {
    const close = await sessions.open(token, [], new TestPage());
    close();
    expect(sessions.size).toBe(1);
    await vi.waitFor(() => expect(sessions.size).toBe(0), wait);
  });
});
