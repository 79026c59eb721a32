import { describe, expect, test } from 'vitest';
import { type Code, codes } from '../../doctor/codes.ts';
import type { Finding } from '../../doctor/diagnosis.ts';
import { problemRows, skipRows } from './problems.ts';

function finding(code: Code, cluster: string, subject: string, more: Partial<Finding> = {}): Finding {
  const { title, severity, means, fix } = codes[code];
  return { code, title, severity, means, fix, cluster, subject, message: 'm', observedAt: '', docs: '', ...more };
}

const exportedBy = (cluster: string) => (cluster === 'east' ? ['shop/cart', 'shop/checkout'] : []);

describe('problems', () => {
  test('one agent is silent, seen by three clusters -> one row with the services it hurts', () => {
    const findings = ['broker', 'west', 'south'].map((cluster) =>
      finding('PTL0202', cluster, 'agent of cluster east', { since: '2026-01-01T00:00:00Z' }),
    );
    const rows = problemRows({ findings, exportedBy });
    expect(rows).toMatchObject([
      { code: 'PTL0202', clusters: ['broker', 'south', 'west'], serviceCount: 2, sinceMs: Date.parse('2026-01-01') },
    ]);
  });

  test('a home is away and so its agent is silent -> one row, the other below it', () => {
    const findings = [
      finding('PTL0101', 'east', 'https://east', { message: 'no answer' }),
      finding('PTL0202', 'west', 'agent of cluster east'),
    ];
    const rows = problemRows({ findings, exportedBy });
    expect(rows.map(({ code }) => code)).toEqual(['PTL0101']);
    expect(rows[0]?.follows).toEqual(['PTL0202 agent of cluster east: m']);
  });

  test('a conflict is on two exports -> one row; the same part in two clusters -> two', () => {
    const conflict = ['east', 'west'].map((cluster) => finding('PTL0302', cluster, 'ServiceExport shop/cart'));
    const proxies = ['east', 'west'].map((cluster) => finding('PTL0902', cluster, 'proxy on node-1'));
    const rows = problemRows({ findings: [...conflict, ...proxies], exportedBy });
    expect(rows.map(({ code }) => code)).toEqual(['PTL0902', 'PTL0902', 'PTL0302']);
    expect(rows[2]).toMatchObject({ clusters: ['east', 'west'], services: ['shop/cart'] });
  });

  test('checks that could not run -> each reason once', () => {
    const why = 'you may not read leases';
    const skipped = (['PTL0501', 'PTL0902'] as const).map((code) => ({ code, cluster: 'east', why }));
    expect(skipRows(skipped)).toEqual([{ cluster: 'east', why, codes: ['PTL0501', 'PTL0902'] }]);
  });
});
