// What a gateway refuses, bounds and forgets: real Envoys in network namespaces. Needs root.

import { expect, test } from 'vitest';
import type { Credentials } from '../../src/base/x509/certificates.ts';
import { mayUse } from '../../src/clusterset/kinds/service-shard.ts';
import { textIn } from '../../src/kube/client/kept-authority.ts';
import { gatewayAuthoritySecret } from '../../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { namespace } from '../../src/peering/testing/edge/memory-home.ts';
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
  nodeOf,
  startCluster,
  startGateway,
  startNode,
} from '../support/gateway-world.ts';
import type { Loaded } from '../support/xds-inside.ts';
import { pause, until } from '../support/xds-meshes.ts';

const pod = '10.70.2.1';
const echo = { name: 'echo', ip: '243.9.0.3', port: 7000, endpoint: pod };
const web = { name: 'web', ip: '243.9.0.1', port: 8080, endpoint: pod };
const [port] = gatewayPorts;
const listenerPort = 15_101;

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

const get = (from: GatewayCluster) => from.inside.ask({ do: 'get', to: `http://${web.ip}:${web.port}/` });
const answers = (from: GatewayCluster) =>
  until(`${from.id} is answered`, async () => ((await get(from)) === 'web of east' ? true : undefined));

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

  test('a caller that opens more than ten thousand streams -> the rest is refused, and another member is served as before', async () => {
    const at = await world();
    const { west, south, links } = at;
    const pair = await certified(west, nodeOf('west'));
    const to = { address: links.get('west')!, port, sni: `west.${clusterSet}`, authority: echoAuthority };
    const seen = (await west.inside.ask({ do: 'flood', ...to, ...pair, streams: 10_300 })) as Record<string, number>;
    expect(seen['200']).toBeLessThanOrEqual(10_000);
    expect(seen['200']).toBeGreaterThan(9_000);
    expect(seen['503']).toBeGreaterThanOrEqual(300);
    expect(await asked(at, west)).toBe('503');
    expect(await asked(at, south)).toBe('200');
    await west.inside.ask({ do: 'endFlood' });
    await until('west is served again', async () => ((await asked(at, west)) === '200' ? true : undefined));
  });

  test('callers that connect and send nothing, half a handshake or half a request -> closed within 20 s, others are served meanwhile', async () => {
    const at = await world();
    const { west, links } = at;
    const to = { do: 'silent', address: links.get('west')!, port, giveUpMs: 25_000 } as const;
    const pair = { sni: `west.${clusterSet}`, ...(await certified(west, nodeOf('west'))) };
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n').toString('hex');
    const settings = '000000040000000000';
    // HEADERS of stream 1 without END_HEADERS, and its first byte: a header block that never ends.
    const half = '00000101000000000182';
    const silent = Promise.all([
      west.inside.ask({ ...to, hex: '' }),
      west.inside.ask({ ...to, hex: '16030102000100' }),
      west.inside.ask({ ...to, ...pair, hex: `${preface}${settings}${half}` }),
    ]);
    for (let time = 0; time < 5; time += 1) expect(await asked(at, west)).toBe('200');
    for (const closedMs of await silent) {
      expect(closedMs).toBeTypeOf('number');
      expect(closedMs).toBeLessThan(20_000);
    }
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

  test('the address of a gateway leads to that of another member -> nothing is sent to it; as that member it answers', async () => {
    const east = await startCluster('east');
    const west = await startCluster('west');
    const south = await startCluster('south', { gateways: 1 });
    const [address] = connect(south, west);
    await south.inside.ask({ do: 'serve', name: 'web of south', address: pod, port: 8080 });
    await exportService(south, web);
    await introduce(south, [west], new Map([['west', address]]));
    await east.networks({ west: { network: 'network-of-west', gateways: [], trustRoots: [] } });
    await startGateway(south);
    const roots = (of: GatewayCluster) =>
      until(`${of.id} has a root`, async () => {
        const found = await of.roots();
        return found.length > 0 ? found : undefined;
      });
    const gateways = [{ address, port }];
    const known = async (id: string, of: GatewayCluster) =>
      west.networks({ [id]: { network: `network-of-${id}`, gateways, trustRoots: await roots(of), listenerPort } });
    await known('east', east);
    await startNode(west);
    await pause(2000);
    for (let time = 0; time < 3; time += 1) expect(await get(west)).toMatch(/^failed/);
    await known('south', south);
    await until('south answers as itself', async () => ((await get(west)) === 'web of south' ? true : undefined));
  });

  test('the root of a caller is replaced -> the old one, the next and the former are good as long as published, and no longer; nothing that is open or asked fails', async () => {
    const times = { roots: { lifeMs: 24_000, overlapMs: 5000, formerMs: 9000 }, leafLifeMs: 6000 };
    const at = await world(times);
    const { east, west, links } = at;
    await startNode(west);
    await answers(west);
    expect(await west.inside.ask({ do: 'holdPlain', name: 'held', address: echo.ip, port: echo.port })).toBe('open');
    await west.inside.ask({ do: 'load', to: `http://${web.ip}:${web.port}/`, lanes: 2 });
    const gateways = [{ address: links.get('west')!, port }];
    /** As the agents do: what each publishes reaches the other. */
    const publish = async () => {
      const [ofEast, ofWest] = [await east.roots(), await west.roots()];
      await east.networks({ west: { network: 'network-of-west', gateways: [], trustRoots: ofWest } });
      await west.networks({
        east: { network: 'network-of-east', gateways, trustRoots: ofEast, listenerPort },
      });
    };
    const shown = async (root: Credentials) =>
      asked(at, west, echoAuthority, await certified(west, nodeOf('west'), { root }));
    const keys = new Map<string, Credentials>();
    const seen = new Set<string>();
    for (let look = 0; look < 200 && !seen.has('the former one is refused'); look += 1) {
      const secret = await west.client.get<Secret>(secretType, { namespace, name: gatewayAuthoritySecret });
      const text = (key: string) => textIn(secret, key);
      const signing = { certificate: text('tls.crt'), key: text('tls.key') };
      const isNew = !keys.has(signing.certificate);
      const wasNext = seen.has('the next one is published');
      keys.set(signing.certificate, signing);
      // The one that signs is good from its first moment, whatever others have read since.
      expect([look, await shown(signing)]).toEqual([look, '200']);
      if (!isNew && keys.size > 1 && keys.values().next().value !== signing) seen.add('the next one signs');
      const next = { certificate: text('next.crt'), key: text('next.key') };
      const [oldest] = keys.values();
      await publish();
      if (next.certificate !== '') {
        seen.add('the next one is published');
        await until('the next one is trusted', async () => ((await shown(next)) === '200' ? true : undefined));
        keys.set(next.certificate, next);
      }
      if (wasNext && next.certificate === '' && text('former.crt') !== '' && signing !== oldest) {
        expect(await shown(oldest!)).toBe('200');
        seen.add('the former one is good');
      }
      if (seen.has('the former one is good') && text('former.crt') === '') {
        await until('the former one is refused', async () =>
          String(await shown(oldest!)).startsWith('refused') ? true : undefined,
        );
        seen.add('the former one is refused');
      }
      await pause(250);
    }
    expect([...seen].sort()).toEqual([
      'the former one is good',
      'the former one is refused',
      'the next one is published',
      'the next one signs',
    ]);
    const { count, failures } = (await west.inside.ask({ do: 'loaded' })) as Loaded;
    expect(count).toBeGreaterThan(100);
    expect(failures).toEqual([]);
    const before = (await west.inside.ask({ do: 'held', name: 'held' })) as { echoes: number };
    await pause(1000);
    const after = (await west.inside.ask({ do: 'held', name: 'held' })) as { echoes: number; isClosed: boolean };
    expect(after.isClosed).toBe(false);
    expect(after.echoes).toBeGreaterThan(before.echoes);
  });
});
