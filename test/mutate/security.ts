// Switches off one mend at a time, in a copy of the tree, and runs the test that is named for it: it must fail.
// A test that does not run, or that fails with the mend in place, proves nothing and is reported as such.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runNamedTests } from '../support/named-tests.ts';
import type { Mend } from './mend.ts';

type Verdict = 'red' | 'GREEN' | 'not run' | 'red before' | 'not applied';

export async function switchOff(
  root: string,
  mends: readonly Mend[],
  { match = '' }: { readonly match?: string } = {},
): Promise<boolean> {
  const isInSequence = (test: string) => mends.some((mend) => mend.test === test && mend.isInSequence === true);
  const chosen = mends.filter(({ test, title }) => `${test} ${title}`.includes(match));
  const copy = copyOf(root);
  const counts = new Map<Verdict, number>();
  const startedMs = performance.now();
  try {
    build(copy);
    const good = new Set<string>();
    for (const test of new Set(chosen.map((mend) => mend.test))) {
      const titles = [...new Set(chosen.filter((mend) => mend.test === test).map(({ title }) => title))];
      const outcomes = await runNamedTests(copy, test, titles, { isWholeFile: isInSequence(test) });
      for (const [at, title] of titles.entries()) if (outcomes[at] === 'passed') good.add(`${test} ${title}`);
    }
    for (const mend of chosen) {
      const verdict = good.has(`${mend.test} ${mend.title}`)
        ? await judge(copy, mend, isInSequence(mend.test))
        : 'red before';
      counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
      console.log(`${verdict.padEnd(11)} ${mend.file}: ${mend.test} "${mend.title.slice(0, 80)}"`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const told = [...counts].map(([verdict, count]) => `${count} ${verdict}`).join(', ');
  console.log(`${chosen.length} mends switched off: ${told}; ${seconds} s`);
  return counts.get('red') === chosen.length;
}

/** What the mend became in the file; undefined if its text is not there exactly once. */
export function switchedOff(source: string, { was, became }: Pick<Mend, 'was' | 'became'>): string | undefined {
  const at = source.indexOf(was);
  if (at < 0 || source.indexOf(was, at + 1) >= 0) return undefined;
  return source.slice(0, at) + became + source.slice(at + was.length);
}

async function judge(copy: string, mend: Mend, isWholeFile: boolean): Promise<Verdict> {
  const path = join(copy, mend.file);
  const source = readFileSync(path, 'utf8');
  const without = switchedOff(source, mend);
  if (without === undefined) return 'not applied';
  writeFileSync(path, without);
  try {
    if (isOfProgram(mend.test) && !canBuild(copy)) return 'not run';
    const [outcome] = await runNamedTests(copy, mend.test, [mend.title], { isWholeFile });
    return outcome === 'failed' ? 'red' : outcome === 'passed' ? 'GREEN' : 'not run';
  } finally {
    writeFileSync(path, source);
    if (isOfProgram(mend.test)) build(copy);
  }
}

/** Tests of the compiled program. */
function isOfProgram(test: string): boolean {
  return test.startsWith('test/');
}

/** A mend whose absence the compiler notices needs another text. */
function canBuild(copy: string): boolean {
  try {
    build(copy);
    return true;
  } catch {
    return false;
  }
}

function build(copy: string): void {
  execFileSync(process.execPath, [join(copy, 'scripts/build.mjs')], { cwd: copy, stdio: 'ignore' });
}

function copyOf(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'portolan-mends-'));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  for (const file of listed.split('\n').filter((name) => name !== '' && name !== 'node_modules')) {
    mkdirSync(join(copy, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { dereference: false });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
