// What is made of the suite's own report: cases counted, failures named, nothing passed that was not run.

import { expect, test } from 'vitest';
import { reportText } from './report.ts';
import { readReport, summaryOf } from './suite.ts';

const suiteText = (isPassed: boolean) => `
groups:
  - name: Required
    tests:
      - {desc: exported, ref: 'https://example.com/kep', labels: [ClusterIP], passed: true, message: ''}
      - {desc: merged | ports, ref: '', labels: null, passed: ${isPassed}, skipped: ${!isPassed}, message: ' - two clusters needed'}
  - name: Optional
    tests: null
suitefailure: ''
passed: 9
total: 9
`;
const about = {
  environment: { kernel: '6.1', clusters: ['east: 1 node(s), Kubernetes v1.36.4'] },
  ...{ policies: 'defaults', suiteVersion: 'v0.5.0', images: 'pulled', contexts: ['east', 'west'] },
};

test('report: a skipped case -> counted from the cases, not from the totals, and named', () => {
  const report = { ...readReport(suiteText(false)), seconds: 7 };
  expect([report.passed, report.total]).toEqual([1, 2]);
  expect(summaryOf(report)).toBe('1 of 2 passed in 7 s\n  failed: merged | ports: two clusters needed');
});

test('report: a case that failed in one run of two -> the page says so', () => {
  const runs = [true, false].map((isPassed) => ({ ...readReport(suiteText(isPassed)), seconds: 7 }));
  const text = reportText(runs, about);
  expect(text).toContain('Run 1: **2 of 2**, 7 s. Run 2: **1 of 2**, 7 s.');
  expect(text).toContain('| Required | ClusterIP | 1 of 1, 1 of 1 |');
  expect(text).toContain('| Required | - | 1 of 1, 0 of 1 |');
  expect(text).toContain('- run 2: merged | ports: two clusters needed');
});

test('report: a suite that could not begin, and an empty one -> an error, and no case', () => {
  expect(() => readReport('suitefailure: Is the MCS API installed?')).toThrow(
    'could not begin: Is the MCS API installed?',
  );
  expect(readReport('')).toEqual({ groups: [], passed: 0, total: 0 });
});
