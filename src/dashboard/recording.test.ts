import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { Sessions } from './sessions.ts';
import { createTestHome, fastWorld, joinTestHome, type TestHome } from './testing/edge/homes.ts';
import { TestPage } from './testing/page.ts';

const token = 'a-token-of-twenty-characters-or-more';
const wait = { timeout: 15_000, interval: 20 };

describe('recording', () => {
  let east: TestHome;
  let sessions: Sessions;
  beforeEach(async () => {
    east = await createTestHome('east');
    await joinTestHome(east);
    const homes = { homes: [east.home], codes: new Map(), isDemo: false, sessionsMax: 1 };
    sessions = new Sessions({ ...homes, world: fastWorld([east], 20), log: silentLog });
  }, 30_000);
  afterEach(() => sessions.stop());

  test('no page is open, and one was closed long ago -> the session that records goes on, and gives its place to nobody', async () => {
    sessions.record(token);
    expect(sessions.size).toBe(1);
    const close = await sessions.open(token, [], new TestPage());
    const session = sessions.find(token, []);
    close();
    const before = east.requests;
    await vi.waitFor(() => expect(east.requests).toBeGreaterThan(before + 20), wait);
    expect(sessions.find(token, [])).toBe(session);
    await expect(sessions.open(`${token}-2`, [], new TestPage())).rejects.toMatchObject({ status: 503 });
  });

  test('a cluster without a proxy -> named with the reason, and no past is shown of it', async () => {
    const page = new TestPage();
    await sessions.open(token, [], page);
    await vi.waitFor(() => expect(page.get('traffic', 'east')?.why).toBe('no proxy reports there'), wait);
    const { clusters, hidden } = sessions.find(token, []).traffic.past('connections', 'hour');
    expect({ clusters, hidden }).toEqual({
      clusters: [],
      hidden: [{ cluster: 'east', why: 'no proxy reports there' }],
    });
  });
});
