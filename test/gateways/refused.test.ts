// What a gateway refuses, bounds and forgets: real Envoys in network namespaces. Needs root.

import { afterEach, expect, test } from 'vitest';
import type { Credentials } from '../../src/base/x509/certificates.ts';
import { mayUse } from '../../src/clusterset/kinds/service-shard.ts';
import type { GatewayTimes } from '../../src/xds/sources/gateways.ts';
import { describeWith } from '../support/counterparts.ts';
import {
  certified,
  clusterSet,
  connect,
  exportService,
  type GatewayCluster,
  gatewayPorts,
  introduce,
  limitCallers,
  limitExport,
  nodeOf,
  startCluster,
  startGateway,
} from '../support/gateway-world.ts';
import { endStarted } from '../support/started.ts';
import { until } from '../support/xds-served.ts';

afterEach(endStarted);

const pod = '10.70.2.1';
const echo = { name: 'echo', ip: '243.9.0.3', port: 7000, endpoint: pod };
const web = { name: 'web', ip: '243.9.0.1', port: 8080, endpoint: pod };
const [port] = gatewayPorts;
/** Streams that one member may have open at one gateway, and that may wait for one to end. */
const streamsMax = 10_000;
const waitingMax = 1000;
/** Random ones; `npm run check:access` makes 10,000. */
const attemptCount = Number(process.env['ACCESS_ATTEMPTS'] ?? 150);

interface World {
  readonly east: GatewayCluster;
  readonly west: GatewayCluster;
  readonly south: GatewayCluster;
  readonly links: ReadonlyMap<string, string>;
}

/** East has a gateway; west and south may call, and have no Envoys yet. */
async function world(times: GatewayTimes = {}): Promise<World> {
  const east = await startCluster('east', { gateways: 1, times });
  const west = await startCluster('west', { times });
  const south = await startCluster('south', { times });
  const links = new Map([west, south].map((caller) => [caller.id, connect(east, caller)[0]]));
  await east.inside.ask({ do: 'serve', name: 'web of east', address: pod, port: 8080 });
  await east.inside.ask({ do: 'echo', address: pod, port: 7000 });
  for (const service of [echo, web]) await exportService(east, service);
  await introduce(east, [west, south], links);
  await startGateway(east);
  for (const each of [west, south])
    await until(`${each.id} is admitted`, async () => ((await asked({ links }, each)) === '200' ? true : undefined));
  return { east, west, south, links };
}

const echoAuthority = `${echo.ip}:${echo.port}`;

async function asked(
  { links }: Pick<World, 'links'>,
  caller: GatewayCluster,
  authority = echoAuthority,
  pair?: Credentials,
): Promise<unknown> {
  const to = { address: links.get(caller.id)!, port, sni: `${caller.id}.${clusterSet}` };
  const shown = pair ?? (await certified(caller, nodeOf(caller.id)));
  return caller.inside.ask({ do: 'connect', ...to, ...shown, authority });
}

describeWith(['envoy', 'ip', 'nft'], 'gateways: what is refused', () => {
  test('every caller × every service × all sets of members that an export may name -> admitted as the rule says, by address and by name', async () => {
    const at = await world();
    const members = ['east', 'west', 'south', 'north'];
    const subsets = Array.from({ length: 1 << members.length }, (_, bits) =>
      members.filter((_id, index) => (bits >> index) & 1),
    );
    const limits = [undefined, ...subsets];
    const services = limits.map((exportTo, index) => ({
      ...{ name: `s${index}`, ip: `243.9.1.${index + 1}`, port: 7000, endpoint: pod },
      ...(exportTo && { exportTo }),
    }));
    for (const service of services) await exportService(at.east, service);
    await until('the last one is served', async () =>
      (await asked(at, at.south, '243.9.1.17:7000')) === '200' ? true : undefined,
    );
    const wrong: unknown[] = [];
    let admitted = 0;
    for (const caller of [at.west, at.south])
      for (const { name, ip, exportTo } of services) {
        const wanted = mayUse(exportTo, { exporter: 'east', reader: caller.id }) ? '200' : '403';
        for (const host of [ip, `${name}.shop.svc.clusterset.local`]) {
          const answer = await asked(at, caller, `${host}:7000`);
          if (answer === '200') admitted += 1;
          if (answer !== wanted) wrong.push([caller.id, host, exportTo, answer]);
        }
      }
    expect(wrong).toEqual([]);
    // Eight of the sixteen sets name each caller, and there is the export for all.
    expect(admitted).toBe(2 * 2 * 9);
  });

  test('random attempts while exports change 100 times a second -> what is exported is admitted, nothing else', async () => {
    const at = await world();
    const to = { all: undefined, one: ['west'], both: ['south', 'west'], nobody: [], changing: ['west'] };
    const names = Object.keys(to) as (keyof typeof to)[];
    for (const [index, name] of names.entries()) {
      const exportTo = to[name];
      const ip = `243.9.2.${index + 1}`;
      await exportService(at.east, { name, ip, port: 7000, endpoint: pod, ...(exportTo && { exportTo }) });
    }
    await until('the last one is served', async () =>
      (await asked(at, at.west, '243.9.2.5:7000')) === '200' ? true : undefined,
    );
    let [changes, isOver] = [0, false];
    const startMs = performance.now();
    const change = async () => {
      while (!isOver) {
        const dueMs = startMs + changes * 10 - performance.now();
        if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
        await limitExport(at.east, 'changing', changes % 2 === 0 ? ['nobody'] : ['west']);
        changes += 1;
      }
    };
    const changed = change();
    const pick = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)]!;
    const wrong: unknown[] = [];
    const answers = new Map<unknown, number>();
    for (let each = 0; each < attemptCount; each += 1) {
      const [caller, name, askedPort] = [pick([at.west, at.south]), pick(names), pick([7000, 7000, 7001])];
      const host = pick([`243.9.2.${names.indexOf(name) + 1}`, `${name}.shop.svc.clusterset.local`, pod]);
      const isNamed = host !== pod && askedPort === 7000;
      const isOpen = name === 'changing' && caller === at.west && isNamed;
      const wanted = isNamed && mayUse(to[name], { exporter: 'east', reader: caller.id }) ? '200' : '403';
      const answer = await asked(at, caller, `${host}:${askedPort}`);
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      // What was admitted a moment ago may find its way closed.
      if (isOpen ? answer !== '200' && answer !== '403' && answer !== '503' : answer !== wanted)
        wrong.push([caller.id, host, askedPort, answer]);
    }
    isOver = true;
    await changed;
    const perSecond = changes / ((performance.now() - startMs) / 1000);
    console.log(`${perSecond.toFixed(0)} changes per second`, [...answers]);
    expect(wrong).toEqual([]);
    expect([...answers.keys()]).toEqual(expect.arrayContaining(['200', '403']));
  });

  test('a policy names namespaces -> only certificates of those are admitted, streams of others end; whole clusters by any', async () => {
    const at = await world();
    const { east, west, south } = at;
    const shows = (of: GatewayCluster, namespace: string) =>
      certified(of, `spiffe://${of.id}.${clusterSet}/ns/${namespace}/node/test`);
    const pairs = {
      node: await certified(west, nodeOf('west')),
      billing: await shows(west, 'billing'),
      bill: await shows(west, 'bill'),
      foreign: await certified(west, `spiffe://south.${clusterSet}/ns/billing/node/test`),
      odd: await certified(west, `spiffe://west.${clusterSet}/ns/billing/x/node/test`),
    };
    const all = async () =>
      Object.fromEntries(
        await Promise.all(
          Object.entries(pairs).map(async ([name, pair]) => [
            name,
            String(await asked(at, west, echoAuthority, pair)).slice(0, 7),
          ]),
        ),
      );
    const admitted = { node: '200', billing: '200', bill: '200', foreign: 'refused', odd: 'refused' };
    expect(await all()).toEqual(admitted);
    const wish = { address: at.links.get('west')!, port, sni: `west.${clusterSet}`, authority: echoAuthority };
    expect(await west.inside.ask({ do: 'flood', ...wish, ...pairs.bill, streams: 5 })).toEqual({ 200: 5 });
    const rule = (from: object) => JSON.stringify([{ namespace: 'shop', services: ['echo'], from }]);
    await limitCallers(east, rule({ west: ['billing'] }));
    await until('limited', async () => ((await asked(at, west)) === '403' ? true : undefined));
    expect(await all()).toEqual({ ...admitted, node: '403', bill: '403' });
    expect([await asked(at, south), await asked(at, south, `${web.ip}:${web.port}`)]).toEqual(['403', '200']);
    expect(await asked(at, south, echoAuthority, await shows(south, 'billing'))).toBe('403');
    await limitCallers(east, rule({ west: 'all' }));
    await until('all of west', async () => ((await asked(at, west)) === '200' ? true : undefined));
    expect(await all()).toEqual(admitted);
    await limitCallers(east, '{');
    await until('nobody', async () => ((await asked(at, west, `${web.ip}:${web.port}`)) === '403' ? true : undefined));
    expect(await asked(at, west)).toBe('403');
  });

  test('clocks that differ: certificates of an issuer four minutes ahead -> admitted; an hour ahead, or two behind -> refused', async () => {
    const at = await world();
    const { west } = at;
    const minute = 60_000;
    const with_ = async (aheadMs: number) =>
      asked(at, west, echoAuthority, await certified(west, nodeOf('west'), { aheadMs }));
    expect(await with_(4 * minute)).toBe('200');
    expect(await with_(60 * minute)).toMatch(/^refused/);
    expect(await with_(-120 * minute)).toMatch(/^refused/);
    expect(await with_(0)).toBe('200');
  });

  test('a member that opens more streams than it may and keeps them, beside connections that say nothing -> the rest is refused, the silent are closed, and another member does not notice', async () => {
    const at = await world();
    const { west, south, links } = at;
    const to = { address: links.get('west')!, port };
    // Nothing, and the beginning of a TLS record that never ends.
    const silent = ['', '1603010200'].flatMap((hex) =>
      Array.from({ length: 100 }, () => west.inside.ask({ do: 'silent', ...to, hex, giveUpMs: 25_000 })),
    );
    const pair = await certified(west, nodeOf('west'));
    const wish = { ...to, sni: `west.${clusterSet}`, authority: echoAuthority, ...pair };
    let isFlooded = false;
    const flood = west.inside.ask({ do: 'flood', ...wish, streams: streamsMax + waitingMax + 500 }).then((seen) => {
      isFlooded = true;
      return seen as Record<string, number>;
    });
    const others: { answer: unknown; tookMs: number }[] = [];
    const askSouth = async () => {
      const startMs = performance.now();
      others.push({ answer: await asked(at, south), tookMs: performance.now() - startMs });
    };
    while (!isFlooded) await askSouth();
    expect(await flood).toEqual({ 200: streamsMax, waiting: waitingMax, 503: 500 });
    expect(await asked(at, west)).toBe('503');
    for (let each = 0; each < 20; each += 1) await askSouth();
    expect(others.filter(({ answer }) => answer !== '200')).toEqual([]);
    expect(Math.max(...others.map(({ tookMs }) => tookMs))).toBeLessThan(3000);
    await west.inside.ask({ do: 'endFlood' });
    await until('west may call again', async () => ((await asked(at, west)) === '200' ? true : undefined));
    const open = (await Promise.all(silent)).filter((ms) => ms === 'open');
    expect(open).toEqual([]);
  });
});
