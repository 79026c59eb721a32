// Sealed exports in a simulated clusterset: who sees them, who does not, and what changes that.

import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/clusterset/agent/agent.ts';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { sealedRecordType } from '../../src/clusterset/kinds/sealed-record.ts';
import {
  exportToAnnotation,
  type ServiceExport,
  sealAnnotation,
  serviceExportType,
} from '../../src/clusterset/kinds/service-export.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { sealingSecretName } from '../../src/clusterset/membership/membership.ts';
import { pinsData, rotationData } from '../../src/clusterset/membership/sealing-secret.ts';
import { fingerprintOf, readPublicKey } from '../../src/clusterset/rules/sealing/trusted-keys.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { sealingNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { conditionMessage, exportLine, find, importLine, sliceLines } from '../look.ts';
import { exportService, slice } from '../manifests.ts';
import {
  annotate,
  confirmKeys,
  exportSealed,
  isImported,
  names,
  sealedRecords,
  sealedTo,
  sealing,
  sealingSet,
  startSealing,
} from '../sealing.ts';

async function openRecords(set: SimClusterSet, id: string): Promise<string[]> {
  const found = [serviceShardType, endpointShardType].map((type) =>
    set.broker.admin.list(type, { namespace: memberNamespace(id) }),
  );
  return (await Promise.all(found)).flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
}

/** Of all that east has sealed. */
async function epochs(set: SimClusterSet): Promise<number[]> {
  return [...new Set((await sealedRecords(set, 'east')).map(({ spec }) => spec.epoch))];
}

describe('sealed exports', () => {
  test('sealed for west -> west imports it, north sees nothing, the export says so', async () => {
    const set = await startSealing();
    const east = set.home('east').admin;
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    expect(await exportLine(east, 'shop/db')).toContain('Ready=True/Exported');
    expect(await conditionMessage(east, 'shop/db', 'Ready')).toBe('exported to west only, sealed');
    expect(await importLine(set.home('west').admin, 'shop/db')).toContain('from east');
    expect(await sliceLines(set.home('west').admin, 'shop/db')).toEqual([expect.stringContaining('east: 10.1.0.4')]);
    expect(await isImported(set, 'north')).toBe(false);
    const found = await find<ServiceExport>(east, serviceExportType, 'shop/db');
    expect(found?.status?.clusters).toEqual([{ cluster: 'west' }]);
    const records = await sealedRecords(set, 'east');
    expect(records.map(({ metadata }) => metadata.name.slice(0, 2)).sort()).toEqual(['a-', 's-', 's-']);
    expect(await openRecords(set, 'east')).toEqual([]);
  });

  test('sealed for all -> every member with a key imports it', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', []);
    await annotate(set, 'east', 'shop/db', { [exportToAnnotation]: null });
    await set.time.advance(10_000);
    expect([await isImported(set, 'west'), await isImported(set, 'north')]).toEqual([true, true]);
    expect(await conditionMessage(set.home('east').admin, 'shop/db', 'Ready')).toBe(
      'exported to the clusterset, sealed',
    );
  });

  test('open, sealed, open again -> the other form goes each time, and the import of a reader stays', async () => {
    const set = await startSealing();
    await exportService(set.home('east').admin, 'shop/db', { endpoints: ['10.1.0.1'] });
    await set.time.advance(10_000);
    expect(await isImported(set, 'north')).toBe(true);
    await annotate(set, 'east', 'shop/db', sealedTo('west'));
    for (let second = 0; second < 10; second += 1) {
      await set.time.advance(1_000);
      expect(await isImported(set, 'west')).toBe(true);
    }
    expect([await isImported(set, 'north'), await openRecords(set, 'east')]).toEqual([false, []]);
    await annotate(set, 'east', 'shop/db', { [sealAnnotation]: null, [exportToAnnotation]: null });
    for (let second = 0; second < 10; second += 1) {
      await set.time.advance(1_000);
      expect(await isImported(set, 'west')).toBe(true);
    }
    expect(await isImported(set, 'north')).toBe(true);
    await set.time.advance(240_000);
    expect(await sealedRecords(set, 'east')).toEqual([]);
  });

  test('another audience -> another key; who is no longer in it loses the import; the old key is removed', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    const [before] = await sealedRecords(set, 'east');
    await annotate(set, 'east', 'shop/db', sealedTo('north'));
    await set.time.advance(10_000);
    expect([await isImported(set, 'west'), await isImported(set, 'north')]).toEqual([false, true]);
    await set.time.advance(240_000);
    const records = await sealedRecords(set, 'east');
    expect(new Set(records.map(({ spec }) => spec.audience)).size).toBe(1);
    expect(records[0]?.spec.audience).not.toBe(before?.spec.audience);
    expect([await isImported(set, 'west'), await isImported(set, 'north')]).toEqual([false, true]);
  });

  test('the export is taken back -> nothing of it is left, at the broker or at its readers', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    await set.home('east').admin.delete(serviceExportType, { namespace: 'shop', name: 'db' });
    await set.time.advance(240_000);
    expect([await isImported(set, 'west'), await sealedRecords(set, 'east')]).toEqual([false, []]);
  });

  test('a listed member without a confirmed key -> it gets nothing and is named; with one it gets it', async () => {
    const set = await startSealing({ confirmed: ['east'] });
    await exportSealed(set, 'east', 'shop/db', ['west', 'south']);
    await set.time.advance(10_000);
    expect(await conditionMessage(set.home('east').admin, 'shop/db', 'Ready')).toBe(
      'exported to south, west only, sealed; south sees nothing: is not a member of the clusterset; ' +
        'west sees nothing: its key is not confirmed: compare it, then portolan broker accept west',
    );
    expect(await isImported(set, 'west')).toBe(false);
    expect(await sealing(set, 'west')).toMatch(/^False\/KeyNotConfirmed: its key is SHA256:/);
    const [before] = await sealedRecords(set, 'east');
    await confirmKeys(set, ['west']);
    await set.time.advance(10_000);
    expect(await isImported(set, 'west')).toBe(true);
    expect((await sealedRecords(set, 'east'))[0]?.spec.epoch, 'the same key, for one more').toBe(before?.spec.epoch);
    expect(await sealing(set, 'west')).toBe('True/Ready: without a confirmed key: north');
  });

  test('a member has another key -> it gets nothing until it is trusted; the exporter reports it', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west', 'north']);
    await set.time.advance(10_000);
    const [before] = await sealedRecords(set, 'east');
    await set.stopAgent('west');
    await set.home('west').admin.delete(secretType, { namespace: sealingNamespace, name: sealingSecretName });
    set.startAgent('west');
    await set.time.advance(20_000);
    await confirmKeys(set, ['west']);
    await set.time.advance(20_000);
    expect([await isImported(set, 'west'), await isImported(set, 'north')]).toEqual([false, true]);
    expect(await sealing(set, 'east')).toMatch(/^False\/KeyChanged: west: its key is another one than before/);
    const [after] = await sealedRecords(set, 'east');
    expect(after!.spec.epoch, 'a new key').toBeGreaterThan(before!.spec.epoch);
    const { fingerprint } = await trust(set, 'east', 'west');
    await set.time.advance(20_000);
    expect(await isImported(set, 'west'), fingerprint).toBe(true);
    expect(await sealing(set, 'east')).toMatch(/^True/);
  });

  test('a set that does not allow it -> the export fails and says why; nothing of it is at the broker', async () => {
    const set = await new SimClusterSet({ clusters: names }).start({ namespaces: ['shop'] });
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(20_000);
    expect(await exportLine(set.home('east').admin, 'shop/db')).toContain('Ready=False/Failed');
    expect(await conditionMessage(set.home('east').admin, 'shop/db', 'Ready')).toContain(
      'does not allow sealed exports',
    );
    expect([await openRecords(set, 'east'), await sealedRecords(set, 'east')]).toEqual([[], []]);
  });

  test('a member whose agent knows no sealed exports -> it sees nothing and is named', async () => {
    const older: typeof createAgent = ({ hpke: _, ...options }) => createAgent(options);
    const set = await new SimClusterSet({ clusters: names, set: sealingSet }).start({
      namespaces: ['shop'],
      agents: ['east'],
    });
    set.startAgent('west', older);
    await set.time.advance(15_000);
    await confirmKeys(set, ['east']);
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await exportSealed(set, 'west', 'shop/own', ['east']);
    await set.time.advance(20_000);
    expect(await isImported(set, 'west')).toBe(false);
    expect(await conditionMessage(set.home('east').admin, 'shop/db', 'Ready')).toContain(
      'west sees nothing: has published no key: its agent is older or has not started',
    );
    expect(await conditionMessage(set.home('west').admin, 'shop/own', 'Ready')).toContain('this agent cannot seal');
    expect([await openRecords(set, 'east'), await openRecords(set, 'west')]).toEqual([[], []]);
  });

  test('rotation by command -> a new key at once, also by a clock that is ahead; no reader is without the import', async () => {
    const set = await startSealing({ clusters: ['east', 'west'] });
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    const [first] = await epochs(set);
    const nowSeconds = set.simulation.world('a clock').clock.wallMs() / 1000;
    const body = { data: rotationData(Math.floor(nowSeconds) + 60) };
    const place = { namespace: sealingNamespace, name: sealingSecretName };
    await set.home('east').admin.patch(secretType, place, { kind: 'merge', body });
    for (let second = 0; second < 10; second += 1) {
      await set.time.advance(1_000);
      expect(await sliceLines(set.home('west').admin, 'shop/db')).toHaveLength(1);
    }
    const after = await epochs(set);
    expect(after).toHaveLength(1);
    expect(after[0]).toBeGreaterThan(first!);
    await set.time.advance(120_000);
    expect(await epochs(set)).toEqual(after);
  });

  test('rotation by time -> a new key when the old one is an hour old, and one only', async () => {
    const set = await startSealing({ clusters: ['east'], set: { sealing: { exports: 'Allowed', rotateHours: 1 } } });
    await exportSealed(set, 'east', 'shop/db', ['east']);
    await set.time.advance(10_000);
    const first = await epochs(set);
    await set.time.advance(58 * 60_000);
    expect(await epochs(set)).toEqual(first);
    await set.time.advance(4 * 60_000);
    const second = await epochs(set);
    expect(second).toHaveLength(1);
    expect(second[0]).toBeGreaterThan(first[0]!);
  }, 60_000);

  test('restart of both -> nothing is written anew, the import stays', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    const before = await sealedRecords(set, 'east');
    for (const id of ['east', 'west']) {
      set.killAgent(id);
      set.startAgent(id);
    }
    for (let second = 0; second < 40; second += 1) {
      await set.time.advance(1_000);
      expect(await isImported(set, 'west')).toBe(true);
    }
    expect(await sealedRecords(set, 'east')).toEqual(before);
  });
});

describe('sealed records of a hostile broker', () => {
  test('an older state is put back -> refused and reported; readers keep what they had', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    const older = await sealedRecords(set, 'east');
    await set.stopAgent('north');
    const place = { namespace: 'shop', name: 'db-a' };
    await set.home('east').admin.patch(endpointSliceType, place, {
      kind: 'merge',
      body: { endpoints: slice('shop/db', { endpoints: ['10.1.0.9'] }).endpoints },
    });
    await set.time.advance(10_000);
    const lines = () => sliceLines(set.home('west').admin, 'shop/db');
    expect(await lines()).toEqual([expect.stringContaining('10.1.0.9')]);
    // While the exporter is away nobody puts it right.
    await set.stopAgent('east');
    for (const record of older) {
      await set.broker.admin.patch(sealedRecordType, record.metadata, { kind: 'merge', body: { spec: record.spec } });
    }
    await set.time.advance(10_000);
    expect(await lines()).toEqual([expect.stringContaining('10.1.0.9')]);
    expect(await sealing(set, 'west')).toMatch(/^False\/RecordsRefused: 1 of east: an older state of it was put back/);
    set.startAgent('east');
    await set.time.advance(20_000);
    expect(await sealing(set, 'west')).toMatch(/^True/);
    expect(await lines()).toEqual([expect.stringContaining('10.1.0.9')]);
  });

  test.each([
    ['cut off', (data: string) => data.slice(0, 12)],
    ['cut short', (data: string) => data.slice(0, -8)],
    ['changed', (data: string) => `${data.slice(0, 60)}${data[60] === 'A' ? 'B' : 'A'}${data.slice(61)}`],
    ['empty', () => ''],
  ])('a record is %s -> refused and reported', async (_how, change) => {
    const set = await startSealing({ clusters: ['east', 'west'] });
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    await set.stopAgent('east');
    for (const { metadata, spec } of await sealedRecords(set, 'east')) {
      if (spec.data === undefined) continue;
      const body = { spec: { data: change(spec.data), counter: spec.counter! + 1 } };
      await set.broker.admin.patch(sealedRecordType, metadata, { kind: 'merge', body });
    }
    await set.time.advance(10_000);
    expect(await sealing(set, 'west')).toMatch(/^False\/RecordsRefused: 2 of east: it (is cut off|was changed)/);
    expect(await isImported(set, 'west')).toBe(true);
    set.killAgent('west');
    set.startAgent('west');
    await set.time.advance(60_000);
    expect(await isImported(set, 'west')).toBe(false);
  });

  test('records lie in the namespace of another member, or under another name -> refused', async () => {
    const set = await startSealing();
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(10_000);
    await set.stopAgent('east');
    for (const { metadata, ...record } of await sealedRecords(set, 'east')) {
      const copy = { ...record, metadata: { name: metadata.name, namespace: memberNamespace('north') } };
      await set.broker.admin.create(sealedRecordType, copy);
      if (record.spec.data === undefined) continue;
      const name = `s-${'0'.repeat(39)}${record.spec.data.length % 10}`;
      await set.broker.admin.create(sealedRecordType, { ...record, metadata: { name, namespace: metadata.namespace } });
    }
    await set.time.advance(10_000);
    expect(await importLine(set.home('west').admin, 'shop/db')).toMatch(/from east$/);
    expect(await sealing(set, 'west')).toMatch(
      /RecordsRefused: .*east: it was changed, or was sealed for another place/,
    );
    expect(await sealing(set, 'west')).toMatch(/1 of north: its key is not sealed by north for this cluster/);
  });

  test('a key that is no key -> that member gets nothing and is named, the others get it', async () => {
    const set = await startSealing();
    await set.stopAgent('north');
    const none = new Uint8Array(32);
    const place = { namespace: setName, name: 'north' };
    const status = { sealingKey: Buffer.from(none).toString('base64') };
    await set.broker.admin.patch(clusterType, place, { kind: 'merge', body: { status } }, { subresource: 'status' });
    await confirmKeys(set, ['north']);
    await trust(set, 'east', 'north');
    await exportSealed(set, 'east', 'shop/db', ['west', 'north']);
    await set.time.advance(15_000);
    expect(await isImported(set, 'west')).toBe(true);
    expect(await conditionMessage(set.home('east').admin, 'shop/db', 'Ready')).toBe(
      'exported to north, west only, sealed; north sees nothing: what it published as its key is none',
    );
  });
});

describe('sealed exports and others', () => {
  test('two exporters that disagree -> the one whose export is sealed for neither says nothing, nor does the other', async () => {
    const set = await startSealing();
    await exportService(set.home('north').admin, 'shop/db', {
      endpoints: ['10.3.0.1'],
      spec: { ports: [{ name: 'http', port: 81 }] },
    });
    await exportSealed(set, 'east', 'shop/db', ['west']);
    await set.time.advance(15_000);
    for (const id of ['east', 'north'])
      expect(await exportLine(set.home(id).admin, 'shop/db')).toContain('Conflict=False');
    expect(await importLine(set.home('west').admin, 'shop/db')).toMatch(/from (east,north|north)$/);
    await annotate(set, 'east', 'shop/db', sealedTo('west', 'north'));
    await set.time.advance(15_000);
    for (const id of ['east', 'north'])
      expect(await exportLine(set.home(id).admin, 'shop/db')).toContain('Conflict=True');
  });
});

/** As `portolan sealing trust`: the key that the member reports now. */
async function trust(set: SimClusterSet, at: string, id: string): Promise<{ fingerprint: string }> {
  const cluster = await find<Cluster>(set.broker.admin, clusterType, `${setName}/${id}`);
  const fingerprint = fingerprintOf(readPublicKey(cluster?.status?.sealingKey)!);
  const place = { namespace: sealingNamespace, name: sealingSecretName };
  const body = { data: pinsData(new Map([[id, fingerprint]])) };
  await set.home(at).admin.patch(secretType, place, { kind: 'merge', body });
  return { fingerprint };
}
