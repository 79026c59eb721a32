// Runs all tests, those that failed once more, names those that were skipped or unsteady, and ends with the line `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { formatProofs, proofsOf, readRules } from './proofs.mjs';
import { root } from './setup.mjs';

/** So many files are run a second time at most: where more fail, it is not a matter of luck. */
const mostAgain = 4;

export function runTests({ node, args }) {
  const directory = mkdtempSync(`${tmpdir()}/portolan-tests-`);
  const names = args.includes('--project') ? [] : ['fast', 'whole', 'alone'];
  const projects = names.flatMap((name) => ['--project', name]);
  try {
    const first = runOnce({ node, file: `${directory}/report.json`, args: [...projects, ...args] });
    if (first === undefined) return 1;
    // An option may choose tests by name: only what was chosen by file is run again by file.
    const again = args.some((arg) => arg.startsWith('-')) ? [] : filesToRunAgain(first);
    const file = `${directory}/again.json`;
    const second = again.length === 0 ? undefined : runOnce({ node, file, args: [...projects, ...again] });
    return conclude(second === undefined ? first : withSecondRun(first, second), args);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The suites of one run, and the errors that belong to no test; nothing if the runner itself fell. */
function runOnce({ node, file, args }) {
  const reporters = ['default', 'json', `${root}scripts/count-errors.mjs`].map((name) => `--reporter=${name}`);
  const { status } = spawnSync(
    node,
    [`${root}node_modules/vitest/vitest.mjs`, 'run', ...reporters, `--outputFile.json=${file}`, ...args],
    { cwd: root, stdio: 'inherit', env: { ...process.env, PORTOLAN_TEST_ERRORS: `${file}.errors` } },
  );
  try {
    return {
      suites: JSON.parse(readFileSync(file, 'utf8')).testResults,
      errors: Number(readFileSync(`${file}.errors`, 'utf8')),
    };
  } catch (cause) {
    console.error(`portolan: the test runner left no report (exit ${status}): ${cause.message}`);
    return undefined;
  }
}

/** Files that failed; none if something failed that is no test, or too many did. */
function filesToRunAgain({ suites, errors }) {
  const failed = suites.filter(hasFailed);
  return errors > 0 || failed.length > mostAgain ? [] : failed.map(({ name }) => name);
}

/** The first run with the files of the second in the place of its own; names what failed only once. */
function withSecondRun(first, second) {
  const replaced = new Map(second.suites.map((suite) => [suite.name, suite]));
  const suites = first.suites.map((suite) => replaced.get(suite.name) ?? suite);
  const failing = new Set(suites.flatMap(failuresOf));
  for (const title of first.suites.flatMap(failuresOf))
    if (!failing.has(title)) console.log(`unsteady: failed, and passed when its file ran again: ${title}`);
  return { suites, errors: first.errors + second.errors };
}

/** Titles of the tests that failed; the file itself if it failed to load, or one of its hooks did. */
function failuresOf(suite) {
  const titles = suite.assertionResults.filter(hasFailed).map(titleOf);
  return titles.length > 0 || !hasFailed(suite) ? titles : [suite.name.replace(root, '')];
}

const hasFailed = ({ status }) => status === 'failed';
const titleOf = (test) => test.fullName;

/** Prints what was skipped and the last line, and returns the exit code. */
function conclude({ suites, errors }, args) {
  const tests = suites.flatMap((suite) => suite.assertionResults);
  const skipped = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed');
  for (const test of skipped) console.log(`skipped: ${titleOf(test)}`);
  const passed = tests.filter((test) => test.status === 'passed').length;
  // A part of the tests proves a part of the rules: only a whole run can tell that one is missing.
  const problems = args.length === 0 ? checkProofs(tests) : [];
  for (const problem of problems) console.log(`proofs: ${problem}`);
  const failed = suites.flatMap(failuresOf).length + problems.length + errors;
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
  if (process.env.PORTOLAN_FORBID_SKIPS === '1' && skipped.some((test) => !lacksHistory(test))) return 1;
  return failed === 0 && passed > 0 ? 0 : 1;
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
