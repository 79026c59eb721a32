// Runs the compiled conformance suite of the Multi-Cluster Services API (kubernetes-sigs/mcs-api, folder conformance) and reads the
// report that it writes. Nothing of the suite is changed or left out.

import { existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { version } from '../../src/base/version.ts';
import { spawnTied } from '../support/tied-process.ts';

export interface SuiteOptions {
  /** Path of the compiled suite. */
  readonly suite: string;
  readonly kubeconfig: string;
  readonly contexts: readonly string[];
  /** For report.yaml, report.html and suite.log. */
  readonly folder: string;
  /** As a submitted report names them. */
  readonly organization?: string;
  readonly url?: string;
}

interface SuiteTest {
  readonly desc: string;
  readonly ref: string;
  readonly labels: readonly string[];
  readonly passed: boolean;
  readonly message: string;
}

export interface SuiteReport {
  readonly passed: number;
  readonly total: number;
  readonly seconds: number;
  /** By requirement: Required, Optional. */
  readonly groups: readonly { readonly name: string; readonly tests: readonly SuiteTest[] }[];
}

export async function runSuite(options: SuiteOptions): Promise<SuiteReport> {
  const { suite, kubeconfig, contexts, folder, organization = '', url = '' } = options;
  if (!existsSync(suite)) throw new Error(`conformance suite ${suite}: no such file`);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'report.yaml');
  rmSync(file, { force: true });
  const log = openSync(join(folder, 'suite.log'), 'w');
  const names = ['-project', 'Portolan', '-version', version, '-organization', organization, '-url', url];
  const args = [
    '-kubeconfig',
    resolve(kubeconfig),
    '-contexts',
    contexts.join(),
    ...names,
    '-ginkgo.v',
    '-ginkgo.no-color',
  ];
  const startMs = performance.now();
  const child = spawnTied(resolve(suite), args, { cwd: folder, stdio: ['ignore', log, log] });
  const code = await new Promise<number | null>((done, fail) => child.once('close', done).once('error', fail));
  const seconds = Math.round((performance.now() - startMs) / 1000);
  if (!existsSync(file)) throw new Error(`the suite ended with ${code} and left no report; see ${folder}/suite.log`);
  return { ...readReport(readFileSync(file, 'utf8')), seconds };
}

/** What report.yaml says; a suite that could not begin says why. */
export function readReport(text: string): Omit<SuiteReport, 'seconds'> {
  const raw = parse(text) as Record<string, unknown> | null;
  if (raw?.['suitefailure']) throw new Error(`the suite could not begin: ${raw['suitefailure']}`);
  const groups = ((raw?.['groups'] ?? []) as { name: string; tests: SuiteTest[] | null }[]).map(({ name, tests }) => ({
    name,
    tests: (tests ?? []).map(({ desc, ref, labels, passed, message }) => ({
      ...{ desc, ref, labels: labels ?? [], passed: passed === true },
      message: (message ?? '').replace(/^ - /, ''),
    })),
  }));
  const tests = groups.flatMap((group) => group.tests);
  return { groups, total: tests.length, passed: tests.filter(({ passed }) => passed).length };
}

export function summaryOf({ passed, total, seconds, groups }: SuiteReport): string {
  const failed = groups.flatMap(({ tests }) => tests.filter((test) => !test.passed));
  const lines = failed.map(({ desc, message }) => `\n  failed: ${desc}: ${message}`);
  return `${passed} of ${total} passed in ${seconds} s${lines.join('')}`;
}
