import { expect, test } from 'vitest';
import type { Lease } from '../../kube/objects/lease.ts';
import { complaintsAnnotation, complaintsIn, formatComplaints } from './lease-report.ts';
import type { Complaint } from './verdicts.ts';

const cause = { at: 'home', kind: 'ServiceImport', namespace: 'shop', name: 'checkout' } as const;
const complaint = (message: string): Complaint => ({ cause, reason: 'RefusedByProxy', message });
const leaseWith = (text: string) =>
  ({ metadata: { name: 'x', annotations: { [complaintsAnnotation]: text } } }) as unknown as Lease;

test('lease report: written and read -> the same complaints, long messages cut', () => {
  const [short, long] = [complaint('no'), complaint('x'.repeat(1000))];
  expect(complaintsIn(leaseWith(formatComplaints([short, long])))).toEqual([short, complaint('x'.repeat(300))]);
});

test('lease report: more complaints than fit -> as many as 64 KiB hold', () => {
  const text = formatComplaints(Array.from({ length: 5000 }, (_, at) => complaint(`no ${at}`)));
  expect(text.length).toBeLessThanOrEqual(64 * 1024);
  expect(complaintsIn(leaseWith(text)).length).toBeGreaterThan(300);
});

test.each([
  ['no annotation', undefined],
  ['no JSON', '{'],
  ['no list', '{"cause":{}}'],
  ['nonsense in a list', '[null, 7, {"cause":null}, {"cause":{"kind":1}}, {"cause":{"kind":"a"}, "message":"x"}]'],
])('lease report: %s -> no complaint', (_what, text) => {
  const lease = text === undefined ? ({ metadata: { name: 'x' } } as unknown as Lease) : leaseWith(text);
  expect(complaintsIn(lease)).toEqual([]);
});
