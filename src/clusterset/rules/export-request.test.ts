import { describe, expect, test } from 'vitest';
import type { Service } from '../../kube/objects/service.ts';
import type { ServiceExport } from '../kinds/service-export.ts';
import { readExportRequest, unexportable } from './export-request.ts';

const asking = (annotations: Record<string, string>, spec?: ServiceExport['spec']) =>
  readExportRequest({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceExport',
    metadata: { name: 'checkout', namespace: 'shop', annotations },
    spec,
  });

describe('export request', () => {
  test('export request: nothing asked -> everybody, as the clusterset says, nothing to say', () => {
    const nothing = {
      labels: {},
      annotations: {},
      exportTo: undefined,
      onStale: undefined,
      isDraining: false,
      isSealed: false,
      notes: [],
    };
    expect(asking({})).toEqual(nothing);
  });

  test('export request: an id that can be no cluster -> nobody for it, those that can stay, and a note', () => {
    const some = asking({ 'portolan.dev/export-to': 'west, Not_An_Id' });
    expect(some.exportTo).toEqual(['west']);
    expect(some.notes).toEqual([
      'portolan.dev/export-to: "Not_An_Id" cannot be a cluster, only 1 of those named import it',
    ]);
    const none = asking({ 'portolan.dev/export-to': 'Not_An_Id' });
    expect(none.exportTo).toEqual([]);
    expect(none.notes[0]).toContain('nobody else imports it');
  });

  test('export request: many ids that can be no clusters -> five are named, the others counted', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `No_${index}`).join();
    expect(asking({ 'portolan.dev/export-to': ids(5) }).notes[0]).toContain('"No_4" cannot be a cluster');
    expect(asking({ 'portolan.dev/export-to': ids(7) }).notes[0]).toContain('"No_4" and 2 more cannot be a cluster');
  });

  test('export request: more clusters than a record names -> the first thousand, and a note', () => {
    const to = (count: number) =>
      asking({ 'portolan.dev/export-to': Array.from({ length: count }, (_, index) => `c${index}`).join() });
    expect(to(1000)).toMatchObject({ exportTo: { length: 1000 }, notes: [] });
    expect(to(1001)).toMatchObject({
      exportTo: { length: 1000 },
      notes: ['portolan.dev/export-to names more than 1000 clusters'],
    });
  });

  test('export request: asked to drain -> draining, by that word alone', () => {
    expect(asking({ 'portolan.dev/drain': 'true' }).isDraining).toBe(true);
    expect(asking({ 'portolan.dev/drain': 'yes' }).isDraining).toBe(false);
  });

  test('export request: a staleness nobody knows -> the policy of the set, and a note', () => {
    expect(asking({ 'portolan.dev/on-stale': 'not-ready' })).toMatchObject({ onStale: 'NotReady', notes: [] });
    const wrong = asking({ 'portolan.dev/on-stale': 'wihdraw' });
    expect(wrong.onStale).toBeUndefined();
    expect(wrong.notes[0]).toContain('"wihdraw" is none of Withdraw, NotReady and Keep');
  });

  test('export request: more ports than a record holds -> cannot be exported, with both numbers', () => {
    const ports = (count: number): Service => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'checkout', namespace: 'shop' },
      spec: { ports: Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 })) },
    });
    expect(unexportable(ports(1000), 'shop/checkout')).toBeUndefined();
    expect(unexportable(ports(1001), 'shop/checkout')).toContain('has 1001 ports, at most 1000 can be exported');
  });
});
