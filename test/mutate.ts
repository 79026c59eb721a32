// `npm run mutate [-- --only NAME] [--sample N] [--json FILE]`: plants small faults into the pure rules, one at a time, and
// counts those that a fast test finds. Prints every survivor. Two processes at a time; a mutant that never ends is found.

import { type ChildProcess, spawn } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { mutantsOf } from './mutate/mutants.ts';
import type { Verdict } from './mutate/runner.ts';
import { type Target, targets } from './mutate/targets.ts';

const wantedShare = 0.85;
/** Far longer than any of these test files takes. */
const silenceMs = 180_000;

interface Survivor {
  readonly file: string;
  readonly line: number;
  readonly was: string;
  readonly became: string;
}

interface Tally {
  mutants: number;
  killed: number;
  readonly survivors: Survivor[];
}

const { values: flags } = parseArgs({
  options: { only: { type: 'string' }, sample: { type: 'string' }, json: { type: 'string' } },
});
const root = join(import.meta.dirname, '..');
const tallies = new Map<string, Tally>();
const chosen = targets.filter(({ name }) => flags.only === undefined || flags.only === name);
if (chosen.length === 0) throw new Error(`--only takes one of ${targets.map(({ name }) => name).join(', ')}`);
const work = chosen.flatMap((target) => filesOf(target).map((file) => ({ target, file })));
const total = work.reduce((sum, { file }) => sum + mutantsIn(file).length, 0);
const step = Math.max(1, Math.ceil(total / Number(flags.sample ?? total)));

await Promise.all([lane(), lane()]);
printResults();

async function lane(): Promise<void> {
  for (let next = work.shift(); next !== undefined; next = work.shift()) await mutate(next.target, next.file);
}

async function mutate({ name, tests }: Target, file: string): Promise<void> {
  const mutants = mutantsIn(file);
  const tally = tallies.get(name) ?? { mutants: 0, killed: 0, survivors: [] };
  tallies.set(name, tally);
  // -1 is the file as it is: if that fails, no verdict on it would mean anything.
  let left = [-1, ...mutants.keys().filter((index) => index % step === 0)];
  while (left.length > 0) {
    const done = await run(file, left, tests, ({ index, killedBy }) => {
      if (index === -1 && killedBy !== undefined) throw new Error(`${file} unchanged: ${killedBy} fails`);
      if (index === -1) return;
      tally.mutants++;
      if (killedBy === undefined) tally.survivors.push(survivorOf(file, mutants[index]!));
      else tally.killed++;
    });
    left = left.slice(done);
    if (left.length === 0) break;
    // The next one never ended or broke the process: a test run would have shown that.
    tally.mutants++;
    tally.killed++;
    left = left.slice(1);
  }
  console.log(`${file}: ${tally.killed} of ${tally.mutants} found in ${name} so far`);
}

/** Resolves with the number of verdicts that came. */
async function run(
  file: string,
  indexes: readonly number[],
  tests: readonly string[],
  onVerdict: (verdict: Verdict) => void,
): Promise<number> {
  const args = [join(root, 'test/mutate/runner.ts'), file, indexes.join(','), ...tests];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] });
  let count = 0;
  let timer = setTimeout(() => stop(child), silenceMs);
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"index"')) continue;
    clearTimeout(timer);
    timer = setTimeout(() => stop(child), silenceMs);
    count++;
    onVerdict(JSON.parse(line) as Verdict);
  }
  clearTimeout(timer);
  stop(child);
  return count;
}

function stop(child: ChildProcess): void {
  child.kill('SIGKILL');
}

function filesOf({ files }: Target): string[] {
  return globSync([...files], { cwd: root })
    .filter((file) => !file.endsWith('.test.ts') && !file.includes('/testing/'))
    .sort();
}

function mutantsIn(file: string): ReturnType<typeof mutantsOf> {
  return mutantsOf(readFileSync(join(root, file), 'utf8'));
}

function survivorOf(file: string, mutant: ReturnType<typeof mutantsOf>[number]): Survivor {
  const was = readFileSync(join(root, file), 'utf8').slice(mutant.start, mutant.end);
  return { file, line: mutant.line, was: was.replaceAll(/\s+/g, ' '), became: mutant.text.replaceAll(/\s+/g, ' ') };
}

function printResults(): void {
  for (const { survivors } of tallies.values()) {
    for (const { file, line, was, became } of survivors) console.log(`survived ${file}:${line}: ${was} -> ${became}`);
  }
  console.log('rules        mutants  found  share');
  let mutants = 0;
  let killed = 0;
  for (const [name, tally] of tallies) {
    mutants += tally.mutants;
    killed += tally.killed;
    console.log(row(name, tally.mutants, tally.killed));
  }
  console.log(row('all', mutants, killed));
  console.log(`wanted: ${wantedShare * 100} % found: ${killed >= wantedShare * mutants ? 'met' : 'MISSED'}`);
  if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify(Object.fromEntries(tallies), undefined, 2));
  process.exitCode = killed >= wantedShare * mutants ? 0 : 1;
}

function row(name: string, mutants: number, killed: number): string {
  const share = `${((100 * killed) / Math.max(mutants, 1)).toFixed(1)} %`;
  return `${name.padEnd(12)} ${String(mutants).padStart(7)}  ${String(killed).padStart(5)}  ${share}`;
}
