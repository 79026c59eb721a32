import { expect, test } from 'vitest';
import { groupedReasons } from './status.ts';
import { type JudgedStatus, statusText } from './status-report.ts';

const none = { stale: [], refused: [], behind: [], unpublished: [], problems: [], warnings: [], unchecked: [] };
const service = { type: 'ClusterSetIP', clusters: ['east'], excluded: [], conflicts: [], import: 'in step' } as const;
const status: JudgedStatus = {
  ...none,
  ...{
    clusterset: 'prod',
    broker: 'https://broker',
    cluster: 'east',
    brokerProblem: undefined,
    clusters: [],
    parts: [],
  },
  services: [
    { ...service, service: 'shop/checkout', addresses: ['243.0.0.7', 'fdc5::7'] },
    { ...service, service: 'shop/db', addresses: [] },
  ],
  isIncomplete: false,
};
const rows = (isWide: boolean) => statusText(status, { isWide }).filter((line) => /^(SERVICE|shop)/.test(line));

test('status -o wide -> the addresses of each import; without -> as narrow as before', () => {
  expect(rows(true)).toEqual([
    'SERVICE        TYPE          CLUSTERS  CONFLICTS  IMPORT   ADDRESSES',
    'shop/checkout  ClusterSetIP  east      -          in step  243.0.0.7,fdc5::7',
    'shop/db        ClusterSetIP  east      -          in step  -',
  ]);
  expect(rows(false)[0]).toBe('SERVICE        TYPE          CLUSTERS  CONFLICTS  IMPORT');
});

test('status: several checks that could not run for one reason -> one line, the reason once', () => {
  const unchecked = groupedReasons([
    { code: 'PTL0501', why: 'you may not list leases' },
    { code: 'PTL0502', why: 'you may not list leases' },
    { code: 'PTL0601', why: 'n1 did not answer' },
  ]);
  const lines = statusText({ ...status, unchecked }).filter((line) => line.startsWith('not checked'));
  expect(lines).toEqual(['not checked: PTL0501, PTL0502: you may not list leases; PTL0601: n1 did not answer']);
});
