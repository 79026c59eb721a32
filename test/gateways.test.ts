// Services of a cluster in another network, through its gateway: real Envoys in network namespaces that all have the same Pod
// range, with no route between them but the address of the gateway. Needs root.

import { expect, test } from 'vitest';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { describeWith } from './support/counterparts.ts';
import {
  connect,
  exportService,
  type GatewayCluster,
  introduce,
  startCluster,
  startGateway,
  startNode,
} from './support/gateway-world.ts';
import { pause, until } from './support/xds-meshes.ts';

const pod = '10.70.2.1';
const web = { name: 'web', ip: '243.9.0.1', port: 8080, endpoint: pod };
const db = { name: 'db', ip: '243.9.0.2', port: 5432, endpoint: pod, exportTo: ['south'] };

async function world() {
  const east = await startCluster('east', { gateways: 1 });
  const west = await startCluster('west');
  const south = await startCluster('south');
  const links = new Map([west, south].map((caller) => [caller.id, connect(east, caller)[0]]));
  // The same address in each cluster: an answer of another one than east would show a connection that stayed at home.
  for (const each of [east, west, south])
    await each.inside.ask({ do: 'serve', name: `web of ${each.id}`, address: pod, port: 8080 });
  await east.inside.ask({ do: 'serve', name: 'db of east', address: pod, port: 5432 });
  await exportService(east, web);
  await exportService(east, db);
  await introduce(east, [west, south], links);
  const gateway = await startGateway(east);
  for (const each of [west, south]) await startNode(each);
  return { east, west, south, links, gateway };
}

const get = (from: GatewayCluster, { ip, port }: { ip: string; port: number }) =>
  from.inside.ask({ do: 'get', to: `http://${ip}:${port}/` }) as Promise<string>;
const answers = (from: GatewayCluster, to: { ip: string; port: number }, wanted: string) =>
  until(`${from.id} gets ${wanted}`, async () => ((await get(from, to)) === wanted ? true : undefined));

describeWith(['envoy', 'ip', 'nft'], 'gateways: a service in another network', () => {
  test('exported to all, to one, to nobody -> reached by those alone, in the other cluster, by clusterset IP', async () => {
    const { east, west, south, gateway } = await world();
    await answers(west, web, 'web of east').catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${await east.inside.ask({do:'get',to:'http://127.0.0.1:19100/stats?usedonly&filter=gateway|rbac|ssl|vhds|rds'})}\n====\n${await west.inside.ask({do:'get',to:'http://127.0.0.1:19200/stats?usedonly&filter=gateway|ssl|no_filter'})}`);
    });
    await answers(south, web, 'web of east');
    await answers(south, db, 'db of east');
    expect(await get(west, db)).toMatch(/^failed/);
    expect(await get(west, { ip: '243.9.0.9', port: 8080 })).toMatch(/^failed/);
    await east.client.delete(serviceExportType, { namespace: 'shop', name: 'web' });
    await pause(1000);
    expect(await get(west, web)).toMatch(/^failed/);
  });
});
