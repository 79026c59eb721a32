import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/clusterset/agent/agent.ts';
import { type Heartbeat, heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { type LivenessReport, livenessReportType } from '../../src/clusterset/kinds/liveness-report.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { livenessReportName } from '../../src/clusterset/rules/broker-layout.ts';
import type { RenewalTimes } from '../../src/clusterset/rules/leases/heartbeat-rate.ts';
import { judgingRules } from '../../src/clusterset/rules/leases/observing.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, memberNamespace, SimClusterSet, type SimClusterSetOptions } from '../clusterset.ts';
import { importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const idsOf = (count: number) => Array.from({ length: count }, (_, index) => `c${String(index + 1).padStart(3, '0')}`);

interface Traffic {
  /** Watches that one process has asked for and not lost, by kind and namespace. */
  readonly watches: Map<string, Set<string>>;
  /** Requests at the broker, by verb and kind, since they were last looked at. */
  readonly requests: Map<string, number>;
}

/** Members named c001, c002, …; the fifth exports a service. */
async function largeSet(count: number, options: Partial<SimClusterSetOptions> = {}) {
  const ids = idsOf(count);
  const traffic: Traffic = { watches: new Map(), requests: new Map() };
  const set = new SimClusterSet({
    clusters: ids,
    onRequest: (home, user, { verb, resource, namespace }) => {
      if (home !== 'broker' || !user.startsWith('agent-')) return;
      if (verb === 'watch') {
        const known = traffic.watches.get(user) ?? new Set();
        traffic.watches.set(user, known.add(`${resource} ${namespace || '*'}`));
      }
      const what = `${verb} ${resource}`;
      traffic.requests.set(what, (traffic.requests.get(what) ?? 0) + 1);
    },
    ...options,
  });
  await set.start({ namespaces: ['shop'] });
  const exporter = ids[4]!;
  await exportService(set.home(exporter).admin, key, { endpoints: ['10.5.0.1'] });
  await set.time.advance(60_000);
  return { set, ids, traffic, exporter };
}

const imported = ['c005: 10.5.0.1 on http>8080'];

/**
 * All members are cut off from the broker for three lease times. The others come back at once, the exporter 15 s later;
 * meanwhile an observer reports it as silent. Gives what was seen of its service in the other clusters since then.
 */
async function allAway(create: typeof createAgent): Promise<string[]> {
  const { set, ids, exporter } = await largeSet(12, { createAgent: create, seed: 2 });
  for (const id of ids) set.setBrokerLink(id, 'silent');
  await set.time.advance(90_000);
  set.killAgent('c002');
  const observer = set.memberClient('c002');
  const others = ids.filter((id) => id !== exporter && id !== 'c002');
  for (const id of [...others, 'c002']) set.setBrokerLink(id, 'up');
  const seen = new Set<string>();
  for (let second = 0; second < 60; second += 1) {
    if (second === 15) set.setBrokerLink(exporter, 'up');
    if (second < 15) await set.time.settle(report(observer, 'c002', [exporter]));
    await set.time.advance(1_000);
    for (const lines of await everywhere(set, others)) seen.add(lines);
  }
  return [...seen];
}

async function everywhere(set: SimClusterSet, ids: readonly string[]): Promise<string[]> {
  const lines = await Promise.all(ids.map((id) => sliceLines(set.home(id).admin, key)));
  return [...new Set(lines.map((all) => all.join('; ')))];
}

/** The last changes of what agents import, by home. */
async function importRevisions(set: SimClusterSet, ids: readonly string[]): Promise<string[]> {
  return Promise.all(
    ids.map(async (id) => {
      const { admin } = set.home(id);
      const lists = await Promise.all([serviceImportType, endpointSliceType].map((type) => admin.list(type)));
      return lists
        .flatMap(({ items }) => items.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`))
        .join(' ');
    }),
  );
}

async function observers(set: SimClusterSet): Promise<string[]> {
  const { items } = await set.broker.admin.list<Heartbeat>(heartbeatType);
  return items.flatMap(({ spec }) => (spec?.judging ? [spec.holderIdentity!] : []));
}

/** Members that have renewed in the last lease time, by the broker's clock and theirs, which agree here. */
async function renewedLately(set: SimClusterSet): Promise<Map<string, number>> {
  const { items } = await set.broker.admin.list<Heartbeat>(heartbeatType);
  const times = items.map(({ spec }): [string, number] => [spec!.holderIdentity!, Date.parse(spec!.renewTime!)]);
  const newestMs = Math.max(...times.map(([, atMs]) => atMs));
  return new Map(times.filter(([, atMs]) => newestMs - atMs < 20_000));
}

/** Writes what an observer might write, as that observer. */
async function report(observer: Client, id: string, silent: readonly string[]): Promise<void> {
  const metadata = { namespace: memberNamespace(id), name: livenessReportName };
  const spec = { renewTime: new Date().toISOString(), silent: [...silent] };
  await observer.patch<LivenessReport>(livenessReportType, metadata, { kind: 'merge', body: { spec } });
}

describe('growth', () => {
  test('growth: sets of 5 and of 15 clusters -> an agent has the same few watches at the broker, none of them per member', async () => {
    const [small, large] = [await largeSet(5), await largeSet(15)];
    const count = ({ traffic }: typeof small, id: string) => [...traffic.watches.get(`agent-${id}`)!].sort();
    expect(count(large, 'c001')).toEqual(count(small, 'c001'));
    const watches = count(large, 'c015');
    expect(watches.filter((text) => text.endsWith('*'))).toEqual([
      'endpointshards *',
      'livenessreports *',
      'serviceshards *',
    ]);
    // Beside these an agent process follows federations, external services and hostname generators.
    expect(watches.filter((text) => !text.includes('endpointslices')).length + 3).toBeLessThanOrEqual(10);
    const perMember = watches.filter((text) => text.includes('-m-') && !text.endsWith(memberNamespace('c015')));
    expect(perMember).toEqual([]);
  });

  test('growth: an idle set -> three members watch heartbeats and report; the others only renew', async () => {
    const { set, ids, traffic } = await largeSet(12);
    expect(await observers(set)).toEqual(['c001', 'c002', 'c003']);
    traffic.requests.clear();
    await set.time.advance(100_000);
    const { requests } = traffic;
    expect(requests.get('update heartbeats')).toBeLessThanOrEqual(ids.length * 23);
    expect(requests.get('update livenessreports')).toBeLessThanOrEqual(3 * 23);
    for (const what of ['get heartbeats', 'list heartbeats', 'get leases', 'update leases', 'update serviceshards'])
      expect(requests.get(what) ?? 0, what).toBe(0);
    expect(await everywhere(set, ids)).toEqual(imported);
  });

  test('growth: a member dies -> all others withdraw it after its lease; it comes back -> back everywhere at once', async () => {
    const { set, ids, exporter } = await largeSet(12);
    const others = ids.filter((id) => id !== exporter);
    set.killAgent(exporter);
    await set.time.advance(25_000);
    expect(await everywhere(set, others)).toEqual(imported);
    await set.time.advance(35_000);
    expect(await everywhere(set, others)).toEqual(['']);
    set.startAgent(exporter);
    await set.time.advance(5_000);
    expect(await everywhere(set, others)).toEqual(imported);
  });

  test('growth: all observers die, then the exporter -> others take their place, and the exporter is withdrawn', async () => {
    const { set, ids, exporter } = await largeSet(12);
    for (const id of ids.slice(0, 3)) set.killAgent(id);
    await set.time.advance(90_000);
    const left = ids.slice(5);
    expect(await everywhere(set, left)).toEqual(imported);
    const now = (await observers(set)).filter((id) => set.isAgentRunning(id));
    expect(now.slice(0, 3)).toEqual(['c004', 'c005', 'c006']);
    set.killAgent(exporter);
    await set.time.advance(70_000);
    expect(await everywhere(set, left)).toEqual(['']);
    for (const id of ids.slice(0, 3)) set.startAgent(id);
    await set.time.advance(60_000);
    expect((await observers(set)).filter((id) => set.isAgentRunning(id))).toEqual(['c001', 'c002', 'c003']);
  });

  test('growth: the observers are cut off from the broker and come back -> nobody is withdrawn but themselves', async () => {
    const { set, ids } = await largeSet(12);
    for (const id of ids.slice(0, 3)) set.setBrokerLink(id, 'silent');
    await set.time.advance(90_000);
    expect(await everywhere(set, ids.slice(3))).toEqual(imported);
    for (const id of ids.slice(0, 3)) set.setBrokerLink(id, 'up');
    for (let second = 0; second < 60; second += 1) {
      await set.time.advance(1_000);
      expect(await everywhere(set, ids)).toEqual(imported);
    }
  });

  test('growth: all lose the broker, and one comes back later and is reported -> nobody is withdrawn, for the time away proves nothing', async () => {
    expect(await allAway(createAgent)).toEqual(imported);
  });

  test('growth: the same with agents that count the time between any two of their renewals -> the last one back is withdrawn', async () => {
    const times = (given: RenewalTimes) => ({ ...given, renewalGapMsMax: Number.POSITIVE_INFINITY });
    const seen = await allAway((options) => createAgent({ ...options, judging: { ...judgingRules, times } }));
    expect(seen).toContain('');
  });

  test('growth: an observer lies that all are silent -> each looks for itself, nobody is withdrawn, and it is not listened to', async () => {
    const { set, ids, traffic } = await largeSet(12);
    set.killAgent('c002');
    const liar = set.memberClient('c002');
    for (let second = 0; second < 100; second += 5) {
      await set.time.settle(report(liar, 'c002', ids));
      await set.time.advance(5_000);
      expect(await everywhere(set, ids.slice(2))).toEqual(imported);
    }
    traffic.requests.clear();
    for (let second = 0; second < 60; second += 5) {
      await set.time.settle(report(liar, 'c002', ids));
      await set.time.advance(5_000);
    }
    expect(traffic.requests.get('list heartbeats') ?? 0).toBe(0);
  });

  test('growth: an observer lies that nobody is silent -> the others report, and the dead are withdrawn', async () => {
    const { set, ids, exporter } = await largeSet(12);
    set.killAgent('c001');
    const liar = set.memberClient('c001');
    set.killAgent(exporter);
    for (let second = 0; second < 70; second += 5) {
      await set.time.settle(report(liar, 'c001', []));
      await set.time.advance(5_000);
    }
    expect(await everywhere(set, ids.slice(5))).toEqual(['']);
  });

  test('growth: the broker restarts under all agents -> they come back spread over time, and no import or slice at home is written', async () => {
    const { set, ids, traffic } = await largeSet(15);
    const before = await importRevisions(set, ids);
    set.broker.kill();
    await set.time.advance(30_000);
    await set.broker.start();
    traffic.requests.clear();
    const perSecond: number[] = [];
    const total = () => traffic.requests.values().reduce((sum, count) => sum + count, 0);
    for (let second = 0; second < 30; second += 1) {
      const sum = total();
      await set.time.advance(1_000);
      perSecond.push(total() - sum);
    }
    expect(new Set((await renewedLately(set)).keys())).toEqual(new Set(ids));
    // Each agent has about ten watches to open, and what it renews.
    expect(total()).toBeGreaterThan(ids.length * 7);
    expect(Math.max(...perSecond)).toBeLessThan(total() / 3);
    expect(await importRevisions(set, ids)).toEqual(before);
    expect(await everywhere(set, ids)).toEqual(imported);
  });

  test('growth: a member floods its namespace, flaps, and is removed while it writes -> imports of others never change', async () => {
    const { set, ids } = await largeSet(8);
    const flooder = set.memberClient('c008');
    const spec = { type: 'ClusterSetIP', exportedAt: '2026-01-01T00:00:00Z', ports: [{ port: 80, protocol: 'TCP' }] };
    const exportedAnnotations = { large: 'x'.repeat(200_000) };
    const watched = ids.slice(0, 7);
    for (let round = 0; round < 40; round += 1) {
      const metadata = { namespace: memberNamespace('c008'), name: `s${round}.flood` };
      const body = {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'ServiceShard',
        metadata,
        spec: { ...spec, exportedAnnotations },
      };
      void flooder.create(serviceShardType, body).catch(() => {});
      if (round % 8 === 3) set.killAgent('c008');
      if (round % 8 === 7) set.startAgent('c008');
      if (round === 30) void set.leave('c008');
      await set.time.advance(2_000);
      expect(await everywhere(set, watched)).toEqual(imported);
    }
    expect(await importLine(set.home('c001').admin, 'flood/s1')).toBe('none');
  });

  test('growth: a member that exports nothing joins a large set -> no request of the others is for it', async () => {
    const ids = idsOf(9);
    const seen: string[] = [];
    const set = new SimClusterSet({
      clusters: ids,
      onRequest: (home, user, { verb, namespace, resource }) => {
        if (home === 'broker' && user !== 'agent-c009' && namespace === memberNamespace('c009'))
          seen.push(`${user} ${verb} ${resource}`);
      },
    });
    await set.start({ namespaces: ['shop'], members: ids.slice(0, 8) });
    await set.time.advance(20_000);
    await set.join('c009');
    await createNamespace(set.home('c009'), 'elsewhere');
    set.startAgent('c009');
    await set.time.advance(120_000);
    const looks = seen.filter((line) => !line.startsWith('admin')).sort();
    expect(looks).toEqual([]);
    await set.home('c009').admin.list(serviceType);
  });

  test('growth: all agents of a new set start at once -> nobody reads the heartbeats of the others one by one', async () => {
    const ids = idsOf(20);
    const reads: string[] = [];
    const set = new SimClusterSet({
      clusters: ids,
      onRequest: (home, user, { verb, namespace = '', resource }) => {
        const isOwn = namespace === memberNamespace(user.slice('agent-'.length));
        if (home === 'broker' && resource === 'heartbeats' && namespace !== '' && !isOwn)
          reads.push(`${user} ${verb} ${namespace}`);
      },
    });
    await set.start({ namespaces: ['shop'] });
    await set.time.advance(60_000);
    expect(reads).toEqual([]);
  });

  test('growth: members that were invited and never run -> judged once, and not looked for again', async () => {
    const ids = idsOf(8);
    const [present, absent] = [ids.slice(0, 5), ids.slice(5).map(memberNamespace)];
    let looks = 0;
    const set = new SimClusterSet({
      clusters: ids,
      onRequest: (home, user, { namespace = '' }) => {
        if (home === 'broker' && user !== 'admin' && absent.includes(namespace)) looks += 1;
      },
    });
    await set.start({ namespaces: ['shop'], members: ids, agents: present });
    await set.time.advance(120_000);
    expect(looks).toBeGreaterThan(0);
    looks = 0;
    await set.time.advance(600_000);
    expect(looks).toBe(0);
  });
});
