// A broker that puts older states of sealed records back while nobody looks: agents remember at home how far they have seen.

import { expect, test } from 'vitest';
import { type SealedRecord, sealedRecordType } from '../../src/clusterset/kinds/sealed-record.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { sealedMemoryName, sealingSecretName } from '../../src/clusterset/membership/membership.ts';
import { rotationData } from '../../src/clusterset/membership/sealing-secret.ts';
import { deleteIfPresent } from '../../src/kube/client/absent.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { sealingNamespace } from '../../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { memberNamespace, type SimClusterSet } from '../clusterset.ts';
import { sliceLines } from '../look.ts';
import { slice } from '../manifests.ts';
import { exportSealed, isImported, sealedRecords, sealing, startSealing } from '../sealing.ts';

const place = { namespace: 'shop', name: 'db-a' };

async function setEndpoint(set: SimClusterSet, address: string): Promise<void> {
  const body = { endpoints: slice('shop/db', { endpoints: [address] }).endpoints };
  await set.home('east').admin.patch(endpointSliceType, place, { kind: 'merge', body });
  await set.time.advance(10_000);
}

/** By command; the clock of who gives it may be ahead. */
async function rotate(set: SimClusterSet, aheadSeconds = 0): Promise<void> {
  const nowSeconds = Math.ceil(set.simulation.world('a clock').clock.wallMs() / 1000);
  const keys = { namespace: sealingNamespace, name: sealingSecretName };
  const body = { data: rotationData(nowSeconds + aheadSeconds) };
  await set.home('east').admin.patch(secretType, keys, { kind: 'merge', body });
  await set.time.advance(15_000);
}

async function putBack(set: SimClusterSet, records: readonly SealedRecord[]): Promise<void> {
  const present = await sealedRecords(set, 'east');
  for (const { metadata } of present) await deleteIfPresent(set.broker.admin, sealedRecordType, metadata);
  for (const { metadata, ...record } of records) {
    const { name } = metadata;
    await set.broker.admin.create(sealedRecordType, {
      ...record,
      metadata: { name, namespace: memberNamespace('east') },
    });
  }
}

/** East and west are away while the broker goes back to `older`; then west starts, and 40 s later east. */
async function replayed(set: SimClusterSet, older: readonly SealedRecord[]) {
  set.killAgent('west');
  await set.stopAgent('east');
  await putBack(set, older);
  set.startAgent('west');
  const seen = new Set<string>();
  for (let second = 0; second < 40; second += 1) {
    await set.time.advance(1_000);
    for (const line of await sliceLines(set.home('west').admin, 'shop/db')) seen.add(line.split(' ')[1]!);
  }
  const said = await sealing(set, 'west');
  set.startAgent('east');
  await set.time.advance(40_000);
  return { seen, said };
}

const lines = (set: SimClusterSet) => sliceLines(set.home('west').admin, 'shop/db');

test('an older state while the reader is away -> refused and reported when it starts, right again when the exporter does', async () => {
  const set = await startSealing();
  await exportSealed(set, 'east', 'shop/db', ['west']);
  await set.time.advance(10_000);
  const older = await sealedRecords(set, 'east');
  await setEndpoint(set, '10.1.0.9');
  const { seen, said } = await replayed(set, older);
  expect([...seen]).not.toContain('10.1.0.4');
  expect(said).toMatch(/^False\/RecordsRefused: \d of east: an older state of it was put back/);
  expect(await sealing(set, 'west')).toMatch(/^True/);
  expect(await lines(set)).toEqual([expect.stringContaining('10.1.0.9')]);
});

test('all of an earlier key while the reader is away -> refused, and the next key is later than any seen', async () => {
  const set = await startSealing();
  await exportSealed(set, 'east', 'shop/db', ['west']);
  await set.time.advance(10_000);
  const older = await sealedRecords(set, 'east');
  await setEndpoint(set, '10.1.0.9');
  await rotate(set, 3_600);
  const highest = Math.max(...(await sealedRecords(set, 'east')).map(({ spec }) => spec.epoch));
  const { seen, said } = await replayed(set, older);
  expect([...seen]).not.toContain('10.1.0.4');
  expect(said).toMatch(/^False\/RecordsRefused: \d of east: its key of epoch \d+ was replaced before/);
  expect(await lines(set)).toEqual([expect.stringContaining('10.1.0.9')]);
  const after = await sealedRecords(set, 'east');
  expect(Math.max(...after.map(({ spec }) => spec.epoch))).toBeGreaterThan(highest);
});

test('records of a withdrawn export come back while the reader is away -> refused', async () => {
  const set = await startSealing();
  await exportSealed(set, 'east', 'shop/db', ['west']);
  await set.time.advance(10_000);
  const older = await sealedRecords(set, 'east');
  await set.home('east').admin.delete(serviceExportType, { namespace: 'shop', name: 'db' });
  await set.time.advance(10_000);
  expect(await isImported(set, 'west')).toBe(false);
  const { seen } = await replayed(set, older);
  expect([...seen]).toEqual([]);
  expect(await isImported(set, 'west')).toBe(false);
});

test('the memory is lost -> it works on, and remembers anew', async () => {
  const set = await startSealing();
  await exportSealed(set, 'east', 'shop/db', ['west']);
  await set.time.advance(10_000);
  const memory = { namespace: sealingNamespace, name: sealedMemoryName };
  const { admin } = set.home('west');
  const kept = async () => (await admin.get<Secret>(secretType, memory)).data;
  const before = await kept();
  expect(before).toHaveProperty('east');
  set.killAgent('west');
  await admin.delete(secretType, memory);
  set.startAgent('west');
  await set.time.advance(20_000);
  expect(await isImported(set, 'west')).toBe(true);
  expect(await kept()).toHaveProperty('east');
});
