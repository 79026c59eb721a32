import { expect, test } from 'vitest';
import type { Lease } from '../../../kube/objects/lease.ts';
import { type AccessReport, accessAnnotation } from '../../../kube/objects/reports/access-report.ts';
import type { AccessMode } from '../../kinds/cluster-set.ts';
import { describeRefusal, enforcedWanted, enforcementOf } from './enforcement.ts';

const nowMs = Date.parse('2026-01-01T12:00:00Z');
const fine: AccessReport = { mode: 'Exported', isEnforced: true, reason: 'Enforced', message: '', refused: [] };

function proxy(node: string, report: unknown, { ageMs = 0, part = 'proxy' } = {}): Lease {
  const annotation: Record<string, string> = report === undefined ? {} : { [accessAnnotation]: JSON.stringify(report) };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: `portolan-proxy-${node}`,
      labels: { 'portolan.dev/part': part },
      annotations: { 'portolan.dev/node': node, ...annotation },
    },
    spec: { leaseDurationSeconds: 12, renewTime: new Date(nowMs - ageMs).toISOString() },
  };
}

function said(
  leases: readonly Lease[],
  { mode = 'Exported' as AccessMode, nodes = undefined as string[] | undefined } = {},
) {
  const { status, reason, message } = enforcedWanted(enforcementOf({ mode, leases, nodes, nowMs }));
  return `${status} ${reason}: ${message}`;
}

const failed = (reason: string, message: string) => ({ ...fine, isEnforced: false, reason, message });

test.each([
  ['every node enforces', said([proxy('a', fine), proxy('b', fine)]), /^True Enforced: .* on all 2 nodes$/],
  ['access is open', said([], { mode: 'Open' }), /^False Open: /],
  ['Audit', said([proxy('a', { ...fine, mode: 'Audit' })], { mode: 'Audit' }), /^False Audit: .* counted and pass$/],
  ['no proxy reports', said([]), /^False NoProxy: no portolan proxy reports here$/],
  ['a node has no proxy', said([proxy('a', fine)], { nodes: ['a', 'b'] }), /^False NoProxy: b: no portolan proxy runs/],
  ['a proxy of another version', said([proxy('a', undefined)]), /^False NotReported: a: /],
  ['a report that is nonsense', said([proxy('a', ['x'])]), /^False NotReported: a: /],
  [
    'a node does not prove',
    said([proxy('a', fine), proxy('b', failed('NotProved', 'it passed'))]),
    /^False NotProved: b: it passed$/,
  ],
  [
    'a reason that no condition may have',
    said([proxy('a', failed('no reason; at all', 'x'))]),
    /^False NotEnforced: a: x$/,
  ],
  [
    'a proxy that goes by another mode',
    said([proxy('a', { ...fine, mode: 'Audit' })]),
    /^False OtherMode: a: .*Audit$/,
  ],
  [
    'a silent proxy',
    said([proxy('a', fine), proxy('b', fine, { ageMs: 60_000 })]),
    /^Unknown Silent: b: .*rules .* stay/,
  ],
  [
    'a silent proxy beside one that does not enforce',
    said([proxy('a', failed('NotProved', 'x')), proxy('b', fine, { ageMs: 60_000 })]),
    /^False NotProved: a: x; b: /,
  ],
  ['an xDS server is no proxy', said([proxy('a', fine, { part: 'xds' })]), /^False NoProxy/],
])('AccessEnforced: %s -> the condition has it', (_what, text, wanted) => {
  expect(text).toMatch(wanted);
});

test('AccessEnforced: refusals of several nodes -> added up, the last time counts, the most frequent first', () => {
  const refusal = (packets: number, at: string, service = 'shop/db') => {
    return { from: 'west', service, port: '80/tcp', packets, lastAt: `2026-01-01T${at}Z` };
  };
  const leases = [
    proxy('a', { ...fine, refused: [refusal(3, '10:00:00'), refusal(1, '09:00:00', 'shop/web')] }),
    proxy('b', { ...fine, refused: [refusal(4, '11:00:00'), { packets: 'many' }, null] }),
  ];
  expect(enforcementOf({ mode: 'Exported', leases, nodes: undefined, nowMs })?.refused).toEqual([
    refusal(7, '11:00:00'),
    refusal(1, '09:00:00', 'shop/web'),
  ]);
});

test('refusal: the export names the caller, a policy does not -> it is said of the policy', () => {
  const refusal = { from: 'west', service: 'shop/db', port: '80/tcp', byPolicy: true, packets: 1, lastAt: '' } as const;
  expect(describeRefusal(refusal, { mode: 'Exported', isExported: () => true })).toBe(
    'west is refused at shop/db, port 80/tcp: no ServiceAccessPolicy lets its packets in',
  );
});

test.each([
  ['Exported', 'shop/db', true, 'west is refused at shop/db, port 80/tcp: not exported to it'],
  ['Exported', 'shop/db', false, 'west is refused at shop/db, port 80/tcp: not exported'],
  ['Audit', '10.1.0.7', false, 'west would be refused at 10.1.0.7, port 80/tcp: no Service has this port there'],
] as const)('refusal: access %s, %s, exported %s -> %s', (mode, service, isExported, text) => {
  const refusal = { from: 'west', service, port: '80/tcp', packets: 1, lastAt: '' };
  expect(describeRefusal(refusal, { mode, isExported: () => isExported })).toBe(text);
});
