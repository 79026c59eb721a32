import { describe, expect, test } from 'vitest';
import { decodeRecord, type PlainRecord } from './plain-record.ts';
import { contentKeyBytes, openRecord, type SealedPlace, sealRecord } from './sealed-content.ts';

const key = Buffer.alloc(contentKeyBytes, 7);
const nonce = Buffer.alloc(12, 9);
const place: SealedPlace = {
  ...{ clusterset: 'prod', exporter: 'east', object: 's-1', audience: 'a-1', epoch: 100, counter: 5 },
};
const shard: PlainRecord = {
  kind: 'ServiceShard',
  metadata: { name: 'ledger.shop' },
  spec: { type: 'ClusterSetIP', exportedAt: '2026-01-01T00:00:00Z', ports: [{ name: 'rare', port: 47113 }] },
};
const slice: PlainRecord = {
  kind: 'EndpointShard',
  metadata: {
    name: 'ledger-a.shop.pods',
    labels: { 'multicluster.kubernetes.io/service-name': 'ledger', 'portolan.dev/service-namespace': 'shop' },
  },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.1.0.7'], conditions: { ready: true } }],
  ports: [{ name: 'rare', port: 47113, protocol: 'TCP' }],
};

describe('sealed content', () => {
  test.each([shard, slice])(
    'sealed and opened at the same place -> the record; nothing of it is in the text',
    (record) => {
      const data = sealRecord(record, place, { key, nonce });
      expect(openRecord(data, place, key)).toEqual({ kind: 'opened', record });
      const bytes = Buffer.from(data, 'base64').toString('latin1');
      for (const word of ['ledger', 'shop', '47113', '10.1.0.7', 'rare']) expect(bytes).not.toContain(word);
    },
  );

  test.each([
    { clusterset: 'other' },
    { exporter: 'west' },
    { object: 's-2' },
    { audience: 'a-2' },
    { epoch: 101 },
    { counter: 4 },
  ])('opened as if it were %o -> refused', (other) => {
    const data = sealRecord(shard, place, { key, nonce });
    expect(openRecord(data, { ...place, ...other }, key)).toMatchObject({ kind: 'refused' });
  });

  test('another key, cut off anywhere, any bit changed -> refused', () => {
    const data = Buffer.from(sealRecord(shard, place, { key, nonce }), 'base64');
    expect(openRecord(data.toString('base64'), place, Buffer.alloc(contentKeyBytes, 8)).kind).toBe('refused');
    for (let length = 0; length < data.length; length += 1)
      expect(openRecord(data.subarray(0, length).toString('base64'), place, key).kind, `${length} bytes`).toBe(
        'refused',
      );
    for (let index = 0; index < data.length; index += 1) {
      const changed = Buffer.from(data);
      changed[index]! ^= 1 << (index % 8);
      expect(openRecord(changed.toString('base64'), place, key).kind, `byte ${index}`).toBe('refused');
    }
    expect(openRecord('no base64 at all !', place, key).kind).toBe('refused');
  });
});

describe('content of a hostile exporter', () => {
  const spec = shard.spec;
  const wrong: readonly unknown[] = [
    ...[
      null,
      7,
      '',
      [],
      {},
      { kind: 'Secret' },
      { ...shard, metadata: null },
      { ...shard, metadata: { name: 'shop' } },
    ],
    ...[
      { ...shard, metadata: { name: 'a.b.c' } },
      { ...shard, metadata: { name: '../etc.shop' } },
      { ...shard, spec: null },
    ],
    ...[
      { ports: null },
      { ports: {} },
      { ports: [null] },
      { ports: [{ port: 70_000 }] },
      { ports: [{ port: '80' }] },
    ].map((some) => ({ ...shard, spec: { ...spec, ...some } })),
    { ...shard, spec: { ...spec, ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] } },
    { ...shard, spec: { ...spec, ports: Array.from({ length: 1001 }, (_, index) => ({ port: index + 1 })) } },
    ...[{ clusterIPs: ['evil'] }, { clusterIPs: null }, { exportedLabels: { a: 1 } }, { exportTo: 'west' }].map(
      (some) => ({
        ...shard,
        spec: { ...spec, ...some },
      }),
    ),
    ...[{ readyEndpoints: -1 }, { readyEndpoints: 1e300 }, { share: 100 }, { onStale: 'No' }, { type: 'Other' }].map(
      (some) => ({ ...shard, spec: { ...spec, ...some } }),
    ),
    ...[{ endpoints: null }, { endpoints: [{}] }, { endpoints: [{ addresses: [] }] }, { addressType: 'FQDN' }].map(
      (some) => ({ ...slice, ...some }),
    ),
    ...[
      { endpoints: [{ addresses: ['10.0.0.1'], conditions: null }] },
      { endpoints: [{ addresses: ['10.0.0.1'], hostname: 'A b' }] },
    ].map((some) => ({ ...slice, ...some })),
    ...[{ ports: [{ port: -1 }] }, { metadata: { name: 'x' } }, { metadata: { name: 'x', labels: {} } }].map(
      (some) => ({
        ...slice,
        ...some,
      }),
    ),
  ];

  test.each(wrong.map((value) => [JSON.stringify(value)?.slice(0, 120), value]))('%s -> refused', (_text, value) => {
    expect(decodeRecord(JSON.stringify(value))).toBeUndefined();
  });

  test('a field of a later release -> not read, and no reason to refuse', () => {
    expect(decodeRecord(JSON.stringify({ ...shard, spec: { ...spec, later: { what: 'ever' } } }))).toBeDefined();
    expect(decodeRecord('{"kind":')).toBeUndefined();
  });
});
