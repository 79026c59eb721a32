// A running set moves from one layout of records to the other under load: agents of the previous release are replaced one by
// one while endpoints and exports change and resolvers of two clusters are asked all the time. Real processes of both.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { service, serviceExport, slice } from '../sim/manifests.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { memberNamespace } from '../src/clusterset/rules/broker-layout.ts';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import type { Client } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../src/kube/objects/lease.ts';
import type { ResourceType } from '../src/kube/objects/object.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { type AgentProcess, makeNamespace, TestClusterSet, type TestHome, type, until } from './support/clusterset.ts';
import { type DnsProcess, startDnsProcess } from './support/dns-process.ts';
import { portolan } from './support/portolan.ts';
import { buildPreviousRelease, hasHistory } from './support/previous-release.ts';

const ids = ['east', 'north', 'west'];
/** Clusters whose resolvers are asked: the first to get a new agent, and the last. */
const asking = ['east', 'west'];
const key = 'shop/checkout';
const question = 'checkout.shop.svc.clusterset.local A';
const stable = ids.map((_, at) => `10.${at + 1}.0.1`);

const directory = mkdtempSync(join(tmpdir(), 'portolan-move-'));
const set = new TestClusterSet();
const homes = new Map<string, TestHome>();
const kubeconfigs = new Map<string, string>();
const agents = new Map<string, AgentProcess>();
const resolvers: DnsProcess[] = [];
let broker: { readonly process: ApiProcess; readonly client: Client };
let previous: string;

async function startAgent(id: string, program: string): Promise<void> {
  await agents.get(id)?.stop();
  agents.set(id, await set.startAgent(kubeconfigs.get(id)!, [], program));
}

const atBroker = (words: string) => type(`broker ${words} --clusterset prod --kubeconfig ${broker.process.kubeconfig}`);

async function countAt(kind: ResourceType): Promise<number> {
  const lists = ids.map((id) => broker.client.list(kind, { namespace: memberNamespace('prod', id) }));
  return (await Promise.all(lists)).flatMap(({ items }) => items).length;
}

/** Endpoints beside the stable one come and go, and services are exported and withdrawn, until stopped. */
function startLoad(): () => Promise<number> {
  let isStopped = false;
  let changes = 0;
  const work = ids.map(async (id, at) => {
    const { client } = homes.get(id)!;
    for (let turn = 0; !isStopped; turn += 1) {
      const { metadata, endpoints } = slice(key, { endpoints: [stable[at]!, `10.${at + 1}.1.${1 + (turn % 250)}`] });
      await client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
      const other = { namespace: 'shop', name: 'other' };
      if (turn % 2 === 0) await client.create(serviceExportType, serviceExport('shop/other'));
      else await client.delete(serviceExportType, other);
      changes += 2;
      await pause(100);
    }
  });
  return async () => {
    isStopped = true;
    await Promise.all(work);
    return changes;
  };
}

/** Asks all resolvers without a break; resolves to the number of answers and to those that lacked an endpoint. */
function startQueries(): () => Promise<{ asked: number; wrong: string[] }> {
  let isStopped = false;
  let asked = 0;
  const wrong: string[] = [];
  const beganMs = performance.now();
  const work = resolvers.map(async ({ target }, at) => {
    while (!isStopped) {
      const answer = await askUdp(target, question);
      asked += 1;
      if (!stable.every((address) => answer.includes(address)))
        wrong.push(`${asking[at]} after ${Math.round(performance.now() - beganMs)} ms: ${answer}`);
      await pause(10);
    }
  });
  return async () => {
    isStopped = true;
    await Promise.all(work);
    return { asked, wrong };
  };
}

describe.skipIf(!hasHistory())('layout move (needs the history)', () => {
  beforeAll(async () => {
    previous = buildPreviousRelease(join(directory, 'previous')).program;
    const process = await startApi({ data: join(directory, 'broker') });
    const access = await findHome({ host: createRealHost(), clock: createRealWorld().clock, ...process });
    broker = { process, client: set.clientAt(access) };
    await atBroker('init --layout PerMember');
    for (const [at, id] of ids.entries()) {
      const home = await set.startHome(id);
      homes.set(id, home);
      await makeNamespace(home.client, 'shop');
      for (const name of [key, 'shop/other']) {
        await home.client.create(serviceType, service(name, { clusterIP: 'None' }));
        await home.client.create(endpointSliceType, slice(name, { endpoints: [stable[at]!] }));
      }
      await home.client.create(serviceExportType, serviceExport(key));
      const token = (await atBroker(`token ${id}`)).lines[0]!;
      await type(`join ${token} --kubeconfig ${home.kubeconfig}`);
      kubeconfigs.set(id, await set.agentKubeconfig(home));
      await startAgent(id, previous);
    }
    for (const id of asking)
      resolvers.push(await startDnsProcess(['--cluster-id', id, '--kubeconfig', homes.get(id)!.kubeconfig]));
    for (const { target } of resolvers)
      await until('all endpoints are known', async () => {
        const answer = await askUdp(target, question);
        return stable.every((address) => answer.includes(address));
      });
  });

  afterAll(async () => {
    await Promise.all(resolvers.map((dns) => dns.stop('SIGKILL')));
    await set.stop();
    await broker?.process.stop('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  test('agents of the previous release are replaced one by one under load -> no answer lacks an endpoint, and the older records go', async () => {
    const [stopLoad, stopQueries] = [startLoad(), startQueries()];
    expect(await countAt(leaseType)).toBe(ids.length);
    await atBroker('init --layout AllNamespaces');
    for (const id of ids) {
      expect(await countAt(endpointSliceType)).toBeGreaterThanOrEqual(ids.length);
      await startAgent(id, portolan);
      await until(`${id} has a heartbeat`, async () => {
        const { items } = await broker.client.list(heartbeatType, { namespace: memberNamespace('prod', id) });
        return items.length > 0;
      });
    }
    await until('the older records are gone', async () => {
      return (await countAt(endpointSliceType)) === 0 && (await countAt(leaseType)) === 0;
    });
    expect(await countAt(endpointShardType)).toBeGreaterThanOrEqual(ids.length);
    expect(await stopLoad()).toBeGreaterThan(50);
    const { asked, wrong } = await stopQueries();
    expect(wrong).toEqual([]);
    expect(asked).toBeGreaterThan(200);
  });
});
