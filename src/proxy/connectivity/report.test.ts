import { expect, test } from 'vitest';
import { type Findings, reportOf } from './report.ts';

const backends = [
  { address: '10.1.0.1', port: 8080, cluster: 'east' },
  { address: '10.2.0.1', port: 8080, cluster: 'west' },
];
const wanted = {
  service: 'shop/checkout',
  isImported: true,
  name: 'checkout.shop.svc.clusterset.local',
  ips: ['243.0.0.1'],
  ports: [{ ip: '243.0.0.1', protocol: 'TCP', port: 80, backends }],
  problems: [],
};
const fine: Findings = {
  wanted,
  resolved: { addresses: ['243.0.0.1'] },
  ports: [
    { ip: '243.0.0.1', port: 80, outcomes: { connected: 10 }, answeredBy: { '10.1.0.1:8080': 4, '10.2.0.1:8080': 6 } },
  ],
  proxies: 1,
};
const failing = (direct: object, proxies: number): Findings => ({
  ...fine,
  ports: [
    {
      ip: '243.0.0.1',
      port: 80,
      outcomes: { 'timed out': 3 },
      answeredBy: {},
      direct: direct as Record<string, 'connected'>,
    },
  ],
  proxies,
});

test('report: all connected -> fine, with who answered and in which cluster', () => {
  expect(reportOf(fine)).toMatchObject({
    isFine: true,
    lines: [
      'checkout.shop.svc.clusterset.local: 243.0.0.1',
      '243.0.0.1:80: 10 connected',
      '  4 by 10.1.0.1:8080, cluster east',
      '  6 by 10.2.0.1:8080, cluster west',
    ],
  });
});

test.each([
  [
    'no import',
    { ...fine, wanted: { ...wanted, isImported: false } },
    'no ServiceImport shop/checkout in this cluster',
  ],
  ['no address', { ...fine, wanted: { ...wanted, ips: [], ports: [] } }, 'has no clusterset IP'],
  ['no name', { ...fine, resolved: { error: 'ENOTFOUND' } }, 'does not resolve here (ENOTFOUND)'],
  [
    'another address',
    { ...fine, resolved: { addresses: ['10.9.9.9'] } },
    'resolves to 10.9.9.9, but the import has 243.0.0.1',
  ],
  [
    'no ready endpoint',
    { ...fine, wanted: { ...wanted, ports: [{ ...wanted.ports[0]!, backends: [] }] } },
    'port 80/TCP has no ready endpoint',
  ],
  [
    'the endpoints do not answer either',
    failing({ '10.2.0.1:8080': 'timed out' }, 1),
    '10.2.0.1:8080 timed out. The network between the clusters',
  ],
  ['no proxy', failing({ '10.2.0.1:8080': 'connected' }, 0), 'no proxy reports in this cluster'],
  ['the proxy’s fault', failing({ '10.2.0.1:8080': 'connected' }, 1), "see portolan proxy's log"],
])('report: %s -> says what is wrong', (_what, findings, problem) => {
  const report = reportOf(findings as Findings);
  expect(report.isFine).toBe(false);
  expect(report.problems.join('\n')).toContain(problem);
});

test('report: a headless service, its endpoints answer -> fine; one is called ready and dead -> a problem that names it', () => {
  const headless = { ...wanted, ips: [], ports: [], isByEndpoint: true };
  const asked = (endpoints: Findings['endpoints']) =>
    reportOf({ wanted: headless, resolved: { addresses: ['10.1.0.1'] }, ports: [], proxies: 0, endpoints });
  expect(asked({ '10.1.0.1:8080': 'connected' })).toMatchObject({ isFine: true, problems: [] });
  expect(asked({ '10.1.0.1:8080': 'connected', '10.2.0.1:8080': 'refused' }).problems).toEqual([
    'endpoint 10.2.0.1:8080 is called ready and does not answer: refused',
  ]);
});

test('report: connections by the clusterset IP succeed and one ready endpoint is dead -> a problem that names it', () => {
  const { isFine, problems } = reportOf({
    ...fine,
    endpoints: { '10.1.0.1:8080': 'connected', '10.2.0.1:8080': 'timed out' },
  });
  expect([isFine, problems]).toEqual([
    false,
    ['endpoint 10.2.0.1:8080 is called ready and does not answer: timed out'],
  ]);
});

test('report: an import whose address this proxy does not serve -> that reason, not that it is headless', () => {
  const problems = ['10.96.0.7 is outside the ranges that this proxy serves'];
  const { problems: said } = reportOf({ ...fine, wanted: { ...wanted, ips: [], ports: [], problems }, ports: [] });
  expect(said).toEqual(problems);
});
