import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { keepPartLease } from '../../kube/controller/part-lease.ts';
import { DataPlanes } from './data-planes.ts';

/** Looks every second, as an agent does. */
async function start() {
  const sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  const [agent, proxy] = [sim.world('agent'), sim.world('proxy')];
  let answersForMs = 3_600_000;
  const seen: (boolean | undefined)[] = [];
  const dataPlanes: DataPlanes = new DataPlanes({
    ...{ home: home.clientOf(agent), world: agent, log: silentLog, systemNamespace: 'portolan-system' },
    homeAnswersForMs: () => answersForMs,
    onChange: () => void seen.push(dataPlanes.hasProxy),
    onSilent: () => {},
  });
  keepPartLease({ client: home.clientOf(proxy), world: proxy, log: silentLog, part: 'proxy', id: 'node-1' });
  await sim.time.advance(1_000);
  dataPlanes.start();
  const passSeconds = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      await sim.time.advance(1_000);
      dataPlanes.look();
    }
  };
  await passSeconds(10);
  seen.length = 0;
  expect(dataPlanes.hasProxy).toBe(true);
  const setHomeAnswers = (ms: number) => {
    answersForMs = ms;
  };
  return { sim, home, proxy, dataPlanes, seen, passSeconds, setHomeAnswers };
}

test('data planes: the only proxy is gone -> none within 15 s', async () => {
  const { proxy, dataPlanes, passSeconds } = await start();
  proxy.revoke();
  await passSeconds(6);
  expect(dataPlanes.hasProxy).toBe(true);
  await passSeconds(8);
  expect(dataPlanes.hasProxy).toBe(false);
});

test('data planes: the home was away from the agent for 20 s, or the agent stood still -> the proxy is not blamed', async () => {
  const { sim, home, dataPlanes, seen, passSeconds, setHomeAnswers } = await start();
  sim.network.setLink('agent', home.url, 'silent');
  setHomeAnswers(0);
  await passSeconds(20);
  sim.network.setLink('agent', home.url, 'up');
  setHomeAnswers(1_000);
  await passSeconds(1);
  expect(seen).toEqual([]);
  setHomeAnswers(60_000);
  await passSeconds(30);
  expect(dataPlanes.hasProxy).toBe(true);
});
