import { describe, expect, test } from 'vitest';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { verdictsName } from '../../src/clusterset/membership/membership.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { eventLines, exportLine, find, importedIps, importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const bothAlive = ['east: 10.1.0.1 on http>8080', 'west: 10.2.0.1 on http>8080'];

// east is the oldest exporter and the one that dies.
async function bothExport(options: Partial<SimClusterSetOptions> = {}) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], ...options }).start({ namespaces: ['shop'] });
  const east = set.home('east').admin;
  const west = set.home('west').admin;
  await exportService(east, key, { endpoints: ['10.1.0.1'], spec: { sessionAffinity: 'ClientIP' } });
  await set.time.advance(3_000);
  await exportService(west, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(20_000);
  return { set, east, west };
}

describe('lease', () => {
  test('lease: renewed in time -> all stay, for as long as it lasts [003-69]', async () => {
    const { set, west } = await bothExport();
    await set.time.advance(600_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: runs out, Withdraw -> as if it did not export, the next one decides, an Event says so; IP stays [003-68]', async () => {
    const { set, west } = await bothExport();
    const ips = await importedIps(west, key);
    set.killAgent('east');
    await set.time.advance(25_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
    await set.time.advance(25_000);
    expect(await sliceLines(west, key)).toEqual(['west: 10.2.0.1 on http>8080']);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from west');
    expect(await importedIps(west, key)).toEqual(ips);
    expect(await exportLine(west, key)).toBe('Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts');
    expect(await eventLines(west, key)).toContain('Normal DeciderChanged');
  });

  test('lease: back before its verdict could be written down, imports looked at meanwhile -> it stays in them', async () => {
    const held: (() => void)[] = [];
    let isHolding = false;
    const wrap: SimClusterSetOptions['wrap'] = (home, handler) => async (request) => {
      const isVerdict = home === 'west' && Buffer.from(request.body ?? []).includes(`"${verdictsName}"`);
      if (isVerdict && isHolding) await new Promise<void>((resolve) => held.push(resolve));
      return handler(request);
    };
    const { set, east, west } = await bothExport({ wrap });
    isHolding = true;
    set.killAgent('east');
    for (let second = 0; second < 60 && held.length === 0; second += 1) await set.time.advance(1_000);
    expect(held).toHaveLength(1);
    await west.patch(serviceExportType, ref, { kind: 'merge', body: { spec: { exportedLabels: { tier: 'web' } } } });
    await set.time.advance(1_000);
    set.startAgent('east');
    await set.time.advance(1_000);
    isHolding = false;
    for (const release of held) release();
    await set.time.advance(20_000);
    for (const home of [east, west]) expect(await sliceLines(home, key)).toEqual(bothAlive);
  });

  test('lease: runs out, NotReady -> endpoints stay and are marked, the import stays as it was [003-70]', async () => {
    const { set, west } = await bothExport({ set: { staleness: 'NotReady' } });
    set.killAgent('east');
    await set.time.advance(50_000);
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1! on http>8080', bothAlive[1]]);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east,west');
    set.startAgent('east');
    await set.time.advance(3_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: runs out, Keep -> nothing changes [003-70]', async () => {
    const { set, west } = await bothExport({ set: { staleness: 'Keep' } });
    set.killAgent('east');
    await set.time.advance(300_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  for (const [word, expected] of [
    ['Keep', bothAlive],
    ['not-ready', ['east: 10.1.0.1! on http>8080', bothAlive[1]]],
    ['withdraw', [bothAlive[1]]],
  ] as const) {
    test(`lease: runs out, the export is annotated on-stale ${word} -> that holds, whatever the clusterset says`, async () => {
      const { set, east, west } = await bothExport({ set: { staleness: word === 'withdraw' ? 'Keep' : 'Withdraw' } });
      const annotations = { 'portolan.dev/on-stale': word };
      await east.patch(serviceExportType, ref, { kind: 'merge', body: { metadata: { annotations } } });
      await set.time.advance(3_000);
      set.killAgent('east');
      await set.time.advance(50_000);
      expect(await sliceLines(west, key)).toEqual(expected);
    });
  }

  test('lease: comes back the first time -> trusted at once [003-69]', async () => {
    const { set, west } = await bothExport();
    set.killAgent('east');
    await set.time.advance(60_000);
    set.startAgent('east');
    await set.time.advance(3_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: flaps -> held down before it is trusted again [003-69]', async () => {
    const { set, west } = await bothExport();
    for (let round = 0; round < 2; round += 1) {
      set.killAgent('east');
      await set.time.advance(60_000);
      expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
      set.startAgent('east');
      await set.time.advance(15_000);
      expect(await sliceLines(west, key)).toEqual(round === 0 ? bothAlive : [bothAlive[1]]);
    }
    await set.time.advance(70_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: the broker is away for an hour -> nothing is emptied anywhere, and all goes on afterwards [003-71]', async () => {
    const lines: string[] = [];
    const { set, east, west } = await bothExport({ onLog: (line) => void lines.push(line) });
    const before = lines.length;
    for (const id of ['east', 'west']) set.setBrokerLink(id, 'refused');
    await set.time.advance(3_600_000);
    expect(lines.length - before).toBeLessThan(200);
    for (const client of [east, west]) expect(await sliceLines(client, key)).toEqual(bothAlive);
    for (const id of ['east', 'west']) set.setBrokerLink(id, 'up');
    await set.time.advance(90_000);
    for (const client of [east, west]) expect(await sliceLines(client, key)).toEqual(bothAlive);
    await west.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    expect(await sliceLines(east, key)).toEqual([bothAlive[0]]);
  });

  test('lease: only our own way to the broker is cut -> we keep everything, the others do without us [003-71]', async () => {
    const { set, east, west } = await bothExport();
    set.setBrokerLink('east', 'silent');
    await set.time.advance(120_000);
    expect(await sliceLines(east, key)).toEqual(bothAlive);
    expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
    set.setBrokerLink('east', 'up');
    await set.time.advance(60_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: our agent restarts while another member is dead -> still dead, no endpoint comes back for a while', async () => {
    // In which order its first lists come in is for chance to say.
    for (let seed = 1; seed <= 8; seed += 1) {
      const { set, west } = await bothExport({ seed });
      set.killAgent('east');
      await set.time.advance(60_000);
      set.killAgent('west');
      set.startAgent('west');
      for (let second = 0; second < 40; second += 1) {
        await set.time.advance(1_000);
        expect(await sliceLines(west, key), `seed ${seed}`).toEqual([bothAlive[1]]);
      }
    }
  });

  test('lease: clocks hours apart -> judged by what was seen, and nobody is condemned', async () => {
    const hours = 3_600_000;
    const { set, east, west } = await bothExport({
      clock: (name) => ({ wallSkewMs: name === 'agent-east' ? 25 * hours : name === 'home-west' ? 5 * hours : 0 }),
    });
    await set.time.advance(120_000);
    for (const client of [east, west]) {
      expect(await sliceLines(client, key)).toEqual(bothAlive);
    }
  });

  test('lease: clocks that run at different speeds -> nobody alive is condemned, whoever dies still is', async () => {
    const { set, east, west } = await bothExport({
      clock: (name) => ({ clockRate: name.includes('east') ? 0.6 : name.includes('west') ? 1.25 : 1 }),
    });
    for (let minute = 0; minute < 10; minute += 1) {
      await set.time.advance(60_000);
      for (const client of [east, west]) expect(await sliceLines(client, key)).toEqual(bothAlive);
    }
    set.killAgent('west');
    await set.time.advance(80_000);
    expect(await sliceLines(east, key)).toEqual([bothAlive[0]]);
  });

  test('lease: a member without a lease -> given the lease time, then stale', async () => {
    const { set, west } = await bothExport();
    set.killAgent('east');
    await set.broker.admin.delete(heartbeatType, { namespace: memberNamespace('east'), name: 'portolan-agent' });
    await set.time.advance(60_000);
    expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
  });

  test('lease: nobody exports a service any more and the member that would clear its view is dead -> the next one does', async () => {
    const { set, east, west } = await bothExport({ set: { staleness: 'Keep' } });
    const views = async () => (await set.broker.admin.list(serviceImportType, { namespace: setName })).items.length;
    await east.delete(serviceExportType, ref);
    await set.time.advance(3_000);
    set.killAgent('east');
    await west.delete(serviceExportType, ref);
    await set.time.advance(3_000);
    expect(await views()).toBe(1);
    await set.time.advance(60_000);
    expect(await views()).toBe(0);
  });

  test('lease: held down for others and alive to itself -> two write the merged view, and do not write in turns', async () => {
    const writes: string[] = [];
    const { set } = await bothExport({
      onRequest: (home, user, { verb, resource, namespace }) => {
        const isWrite = ['create', 'update', 'delete'].includes(verb);
        if (home === 'broker' && isWrite && resource === 'serviceimports' && namespace === setName) writes.push(user);
      },
    });
    for (let round = 0; round < 2; round += 1) {
      set.killAgent('east');
      await set.time.advance(60_000);
      set.startAgent('east');
      await set.time.advance(5_000);
    }
    expect(await importLine(set.broker.admin, `${setName}/checkout.shop`)).toMatch(/^ClusterSetIP http:80\/TCP from /);
    writes.length = 0;
    await set.time.advance(30_000);
    expect(new Set(writes).size).toBe(2);
    expect(writes.length).toBeLessThan(20);
    await set.time.advance(120_000);
    expect(await importLine(set.broker.admin, `${setName}/checkout.shop`)).toBe(
      'ClusterSetIP http:80/TCP from east,west',
    );
  });

  for (const everyMs of [5_000, 8_000, 20_000]) {
    test(`lease: our agent restarts every ${everyMs / 1000} s, a member dies -> withdrawn all the same, and stays so`, async () => {
      const { set, west } = await bothExport();
      set.killAgent('east');
      const restart = async () => {
        set.killAgent('west');
        set.startAgent('west');
        await set.time.advance(everyMs);
      };
      for (let ms = 0; ms < 80_000; ms += everyMs) await restart();
      for (let round = 0; round < 10; round += 1) {
        await restart();
        expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
      }
    });

    test(`lease: our agent restarts every ${everyMs / 1000} s, everybody lives -> nobody is condemned`, async () => {
      const { set, west } = await bothExport();
      for (let ms = 0; ms < 200_000; ms += everyMs) {
        set.killAgent('west');
        set.startAgent('west');
        await set.time.advance(everyMs);
        expect(await sliceLines(west, key)).toEqual(bothAlive);
      }
    });
  }

  /** east has gone twice and come back twice. */
  async function heldDown(options: Partial<SimClusterSetOptions> = {}) {
    const scene = await bothExport(options);
    for (let round = 0; round < 2; round += 1) {
      scene.set.killAgent('east');
      await scene.set.time.advance(60_000);
      scene.set.startAgent('east');
      await scene.set.time.advance(12_000);
    }
    expect(await sliceLines(scene.west, key)).toEqual([bothAlive[1]]);
    return scene;
  }

  test('lease: our agent restarts while a member is held down -> held down to the same end, not trusted before', async () => {
    const { set, west } = await heldDown();
    for (let round = 0; round < 8; round += 1) {
      set.killAgent('west');
      set.startAgent('west');
      await set.time.advance(5_000);
      expect(await sliceLines(west, key), `round ${round}`).toEqual([bothAlive[1]]);
    }
    await set.time.advance(25_000);
    expect(await sliceLines(west, key)).toEqual(bothAlive);
  });

  test('lease: our agent restarts between two breaks of a member -> the second one is still held down', async () => {
    const { set, west } = await bothExport();
    set.killAgent('east');
    await set.time.advance(60_000);
    set.startAgent('east');
    await set.time.advance(15_000);
    set.killAgent('west');
    set.startAgent('west');
    await set.time.advance(15_000);
    set.killAgent('east');
    await set.time.advance(60_000);
    set.startAgent('east');
    await set.time.advance(15_000);
    expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
  });

  test('lease: a hold-down lasts -> what is remembered says until when, and is written once', async () => {
    const { set, west } = await heldDown();
    const read = () => find<ConfigMap>(west, configMapType, 'portolan-system/portolan-lease-verdicts');
    const before = await read();
    const memory = JSON.parse(before?.data?.['east'] ?? '');
    expect(memory).toMatchObject({ verdict: 'stale', returns: 2 });
    expect(Date.parse(memory.heldUntil) - Date.parse(memory.since)).toBeGreaterThan(60_000);
    await set.time.advance(30_000);
    expect((await read())?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  });

  test('lease: the lease of a stale member is deleted -> it does not come back by that', async () => {
    const { set, west } = await bothExport();
    set.killAgent('east');
    await set.time.advance(60_000);
    await set.broker.admin.delete(heartbeatType, { namespace: memberNamespace('east'), name: 'portolan-agent' });
    for (let second = 0; second < 40; second += 1) {
      await set.time.advance(1_000);
      expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
    }
    set.killAgent('west');
    set.startAgent('west');
    await set.time.advance(10_000);
    expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
  });

  test('lease: what was judged cannot be written at home -> judged and renewed all the same, written later', async () => {
    const faults: Fault[] = [];
    const { set, west } = await bothExport({ wrap: withFaults(faults) });
    faults.push({ home: 'west', method: 'POST', path: '/configmaps', times: 4 });
    set.killAgent('east');
    await set.time.advance(50_000);
    expect(await sliceLines(west, key)).toEqual([bothAlive[1]]);
    await set.time.advance(60_000);
    expect(faults[0]?.times).toBe(0);
    const memory = await find<ConfigMap>(west, configMapType, 'portolan-system/portolan-lease-verdicts');
    expect(JSON.parse(memory?.data?.['east'] ?? '')).toMatchObject({ verdict: 'stale' });
  });
});
