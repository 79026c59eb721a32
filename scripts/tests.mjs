// Runs all tests, names those that were skipped and why, and ends with the line `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { formatProofs, proofsOf, readRules } from './proofs.mjs';
import { root } from './setup.mjs';

export function runTests({ node, args }) {
  const directory = mkdtempSync(`${tmpdir()}/portolan-tests-`);
  const file = `${directory}/report.json`;
  const vitest = [`${root}node_modules/vitest/vitest.mjs`, 'run', '--reporter=default', '--reporter=json'];
  const names = args.includes('--project') ? [] : ['fast', 'whole', 'alone'];
  const projects = names.flatMap((name) => ['--project', name]);
  const { status } = spawnSync(node, [...vitest, `--outputFile.json=${file}`, ...projects, ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    console.error(`portolan: the test runner left no report (exit ${status}): ${cause.message}`);
    return 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const tests = report.testResults.flatMap((suite) => suite.assertionResults);
  const skipped = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed');
  for (const test of skipped) console.log(`skipped: ${test.fullName}`);
  const passed = tests.filter((test) => test.status === 'passed').length;
  // A file that failed to load has no tests of its own and still counts as one failure.
  const broken = report.testResults.filter(
    (suite) => suite.status === 'failed' && !suite.assertionResults.some((test) => test.status === 'failed'),
  );
  const failed = tests.filter((test) => test.status === 'failed').length + broken.length;
  // A part of the tests proves a part of the rules: only a whole run can tell that one is missing.
  const problems = args.length === 0 ? checkProofs(tests) : [];
  for (const problem of problems) console.log(`proofs: ${problem}`);
  console.log(`${passed} passed, ${failed + problems.length} failed, ${skipped.length} skipped`);
  if (problems.length > 0) return 1;
  if (process.env.PORTOLAN_FORBID_SKIPS === '1' && skipped.some((test) => !lacksHistory(test))) return 1;
  return status === 0 && failed === 0 && passed > 0 ? 0 : 1;
}

/** A shallow clone cannot build the previous release; nothing on the machine would help. */
function lacksHistory(test) {
  const { stdout } = spawnSync('git', ['-C', root, 'rev-parse', '--is-shallow-repository'], { encoding: 'utf8' });
  return test.fullName.includes('(needs the history)') && stdout.trim() === 'true';
}

/** Writes the table of rules and the tests that proved them in this run, and returns what is missing. */
function checkProofs(tests) {
  const rules = readRules(readFileSync(`${root}docs/seeds.md`, 'utf8'));
  const titles = tests.filter((test) => test.status === 'passed').map((test) => test.fullName);
  const proofs = proofsOf(rules, titles);
  mkdirSync(`${root}dist`, { recursive: true });
  writeFileSync(`${root}dist/proofs.md`, formatProofs(rules, proofs.tests));
  console.log(`proofs: ${rules.all.length} rules, ${rules.open.size} open; the table is in dist/proofs.md`);
  return proofs.problems;
}
