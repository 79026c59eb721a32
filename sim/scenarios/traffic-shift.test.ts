// TrafficShifts of one cluster, with a proxy that reports what the import's routing would make of a steady load: steps, going back,
// waiting, pausing, two shifts of one service, and an agent or a home that is away.

import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceImportPolicyType } from '../../src/clusterset/kinds/service-import-policy.ts';
import {
  type TrafficShift,
  type TrafficShiftSpec,
  trafficShiftType,
} from '../../src/clusterset/kinds/traffic-shift.ts';
import { readRouting } from '../../src/clusterset/rules/routing/routing.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { keepPartLease } from '../../src/kube/controller/part-lease.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import {
  addCounts,
  type ConnectionCounts,
  connectionsAnnotation,
  formatConnections,
  noConnections,
} from '../../src/kube/objects/reports/connections.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet } from '../clusterset.ts';
import { find } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';

const ids = ['east', 'west', 'south'];

/** South imports; a proxy there counts 40 connections a second while the shift is on. */
async function scene(failing: (percent: number) => number = () => 0) {
  const set = await new SimClusterSet({ clusters: ids }).start({ namespaces: ['shop'] });
  for (const id of ids) {
    const { admin } = set.home(id);
    await admin.create(serviceType, service('shop/web'));
    await admin.create(endpointSliceType, slice('shop/web', { endpoints: ['10.1.0.1'] }));
    await admin.create(serviceExportType, serviceExport('shop/web'));
  }
  await set.time.advance(3_000);
  const { admin } = set.home('south');
  const counts = new Map<string, ConnectionCounts>(ids.map((id) => [id, noConnections]));
  const load = { perSecond: 40 };
  const world = set.simulation.world('proxy-south');
  keepPartLease({
    client: admin,
    world,
    log: silentLog,
    part: 'proxy',
    id: 'node-1',
    extras: () => ({ [connectionsAnnotation]: formatConnections(new Map([['shop/web', counts]])) }),
  });
  /** Seconds go by, with the load as routed at each of them. */
  const run = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      const percent = await shifted();
      const toWest = Math.round((load.perSecond * (percent ?? 0)) / 100);
      const failed = Math.round(toWest * failing(percent ?? 0));
      const count = (id: string, tried: number, missing: number) =>
        counts.set(id, addCounts(counts.get(id)!, { tried, answered: tried - missing, reset: 0 }));
      count('west', toWest, failed);
      count('east', load.perSecond - toWest, 0);
      await set.time.advance(1_000);
    }
  };
  const shifted = async () => {
    const found = (await find(admin, serviceImportType, 'shop/web')) as ServiceImport | undefined;
    return readRouting(found?.metadata.annotations?.['portolan.dev/routing'] ?? '').shift?.percent;
  };
  const look = async (name = 'web') => (await find(admin, trafficShiftType, `shop/${name}`)) as TrafficShift;
  return { set, south: admin, load, run, shifted, look };
}

function shift(spec: Partial<TrafficShiftSpec> = {}, name = 'web'): TrafficShift {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'TrafficShift',
    metadata: { name, namespace: 'shop' },
    spec: { service: 'web', from: 'east', to: 'west', steps: [5, 25, 100], every: '60s', minConnections: 50, ...spec },
  };
}

const edit = (client: Client, spec: Partial<TrafficShiftSpec>, name = 'web') =>
  client.patch(trafficShiftType, { namespace: 'shop', name }, { kind: 'merge', body: { spec } });

const conditionsOf = ({ status }: TrafficShift) =>
  (status?.conditions ?? []).map(({ type, status: value, reason }) => `${type}=${value} ${reason}`);

describe('traffic shift', () => {
  test('nothing fails -> step by step to the end, over the policy and without a change of it; deleting it goes back', async () => {
    const { south, run, shifted, look } = await scene();
    const policy = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceImportPolicy',
      metadata: { name: 'order' },
      spec: { clusters: [{ clusters: ['east'] }] },
    };
    await south.create(serviceImportPolicyType, policy);
    await south.create(trafficShiftType, shift());
    const seen = new Set<string>();
    for (let second = 0; second < 300; second += 5) {
      await run(5);
      seen.add(`${(await look()).status?.phase} ${await shifted()}`);
    }
    expect([...seen]).toEqual(['Measuring 0', 'Shifting 5', 'Shifting 25', 'Shifting 100', 'Completed 100']);
    expect(await look()).toMatchObject({ status: { phase: 'Completed', percent: 100 } });
    expect(conditionsOf(await look())).toEqual(['Accepted=True Accepted', 'Progressing=True Completed']);
    expect(await find(south, serviceImportPolicyType, '/order')).toMatchObject({ spec: policy.spec });
    await south.delete(trafficShiftType, { namespace: 'shop', name: 'web' });
    await run(3);
    const found = (await find(south, serviceImportType, 'shop/web')) as ServiceImport;
    expect(found.metadata.annotations?.['portolan.dev/routing']).toBe('{"g":[[["east"]]]}');
  });

  test('a failure begins at a quarter -> it goes back by itself within seconds, and says what it saw', async () => {
    const { south, run, shifted, look } = await scene((percent) => (percent >= 25 ? 0.5 : 0));
    await south.create(trafficShiftType, shift());
    await run(110);
    expect(await shifted()).toBe(5);
    await run(45);
    expect(await shifted()).toBeUndefined();
    const found = await look();
    expect(found.status).toMatchObject({ phase: 'RolledBack', percent: 0, step: 2 });
    expect(found.status?.message).toMatch(/^went back at 25 %: to west \d+ of \d+ failed/);
    expect(conditionsOf(found)).toEqual(['Accepted=True Accepted', 'Progressing=False Worse']);
    await run(120);
    expect(await look()).toMatchObject({ status: { phase: 'RolledBack' } });
  });

  test('too few connections -> waits at its step, goes on when they come', async () => {
    const { south, load, run, look } = await scene();
    await south.create(trafficShiftType, shift());
    await run(80);
    load.perSecond = 0;
    await run(200);
    const waiting = await look();
    expect(waiting.status).toMatchObject({ phase: 'Shifting', percent: 5 });
    expect(conditionsOf(waiting)[1]).toBe('Progressing=False TooFewConnections');
    load.perSecond = 40;
    await run(60);
    expect((await look()).status?.percent).toBe(25);
  });

  test('paused and resumed, aborted -> holds, goes on, goes back', async () => {
    const { south, run, shifted, look } = await scene();
    await south.create(trafficShiftType, shift());
    await run(80);
    await edit(south, { paused: true });
    await run(200);
    expect(await shifted()).toBe(5);
    expect(conditionsOf(await look())[1]).toBe('Progressing=False Paused');
    await edit(south, { paused: false });
    await run(80);
    expect(await shifted()).toBe(25);
    await edit(south, { abort: true });
    await run(4);
    expect(await shifted()).toBeUndefined();
    expect((await look()).status?.phase).toBe('Aborted');
  });

  test('two shifts of one service -> the one that has begun goes on, the other names it and moves nothing', async () => {
    const { south, run, shifted, look } = await scene();
    await south.create(trafficShiftType, shift());
    await run(5);
    await south.create(trafficShiftType, shift({ from: 'west', to: 'east' }, 'a'));
    await run(75);
    expect(await shifted()).toBe(5);
    const other = await look('a');
    expect(other.status).toMatchObject({ phase: 'Refused' });
    expect(other.status?.message).toBe('TrafficShift shop/web shifts this service (Shifting): delete one of the two');
    expect(conditionsOf(other)[0]).toBe('Accepted=False OtherShift');
    await south.delete(trafficShiftType, { namespace: 'shop', name: 'web' });
    await run(15);
    expect((await look('a')).status?.phase).toBe('Measuring');
  });

  test('what makes no sense, a cluster that does not export, one that the policy excludes -> refused with a reason', async () => {
    const { south, run, look } = await scene();
    await south.create(serviceImportPolicyType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceImportPolicy',
      metadata: { name: 'never' },
      spec: { exclude: [{ clusters: ['west'] }] },
    } as never);
    await run(3);
    await south.create(trafficShiftType, shift());
    await south.create(trafficShiftType, shift({ steps: [50, 25], service: 'other' }, 'falling'));
    await south.create(trafficShiftType, shift({ to: 'mars', service: 'other' }, 'mars'));
    await run(12);
    const messages = await Promise.all(
      ['web', 'falling', 'mars'].map(async (name) => (await look(name)).status?.message),
    );
    expect(messages).toEqual([
      'west is excluded by never',
      'steps 50, 25: they are whole percents from 1 to 100, each above the one before',
      'this cluster does not import other',
    ]);
  });

  test('the agent is killed and comes back -> the step stayed, its time away does not count', async () => {
    const { set, south, run, shifted, look } = await scene();
    await south.create(trafficShiftType, shift());
    await run(80);
    set.killAgent('south');
    await run(300);
    expect(await shifted()).toBe(5);
    set.startAgent('south');
    await run(12);
    expect((await look()).status).toMatchObject({ phase: 'Shifting', percent: 5 });
    await run(60);
    expect((await look()).status?.percent).toBe(25);
  });

  test('the new cluster stops exporting -> the step is kept, nothing is sent there, and it says why', async () => {
    const { set, south, run, look } = await scene();
    await south.create(trafficShiftType, shift());
    await run(80);
    await set.home('west').admin.delete(serviceExportType, { namespace: 'shop', name: 'web' });
    await run(100);
    const found = await look();
    expect(found.status).toMatchObject({ phase: 'Shifting', percent: 5 });
    expect(found.status?.message).toBe('waits at 5 %: west does not export web to this cluster');
  });
});
