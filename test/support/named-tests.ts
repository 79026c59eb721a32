// Runs tests by their titles in a process of its own, and reads what came of each.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

interface TestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

const patienceMs = 300_000;

type Outcome = 'passed' | 'failed' | 'not run';

/** Runs some tests of one file, by titles as they stand in the file; the outcome of each. One that never ends has failed. */
export async function runNamedTests(
  root: string,
  test: string,
  titles: readonly string[],
  { isWholeFile = false }: { readonly isWholeFile?: boolean } = {},
): Promise<Outcome[]> {
  const report = join(mkdtempSync(join(tmpdir(), 'portolan-named-')), 'report.json');
  const patterns = titles.map(patternOf);
  const args = [
    'run',
    test,
    ...(isWholeFile ? [] : ['-t', patterns.join('|')]),
    '--reporter=json',
    `--outputFile=${report}`,
  ];
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'ignore',
    detached: true,
  });
  const ended = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), patienceMs);
  });
  const isEnded = await Promise.race([ended, late]);
  clearTimeout(timer);
  // Without its mend a program may well never end.
  if (!isEnded) {
    process.kill(-child.pid!, 'SIGKILL');
    return titles.map(() => 'failed');
  }
  const outcomes = patterns.map((pattern) => readOutcome(report, new RegExp(pattern)));
  rmSync(dirname(report), { recursive: true, force: true });
  return outcomes;
}

function readOutcome(report: string, pattern: RegExp): Outcome {
  let read: TestReport;
  try {
    read = JSON.parse(readFileSync(report, 'utf8')) as TestReport;
  } catch {
    return 'not run';
  }
  const ran = read.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ fullName, status }) => pattern.test(fullName) && (status === 'passed' || status === 'failed'));
  if (ran.length === 0) return 'not run';
  return ran.some(({ status }) => status === 'failed') ? 'failed' : 'passed';
}

/** Placeholders of test.each stand for anything. */
function patternOf(title: string): string {
  return title
    .split(/%[sjdo]|\$\w+/)
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
    .join('.*');
}
