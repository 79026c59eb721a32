// `npm run mutate [-- --only NAME] [--sample N] [--seed N] [--lanes N] [--json FILE]`: plants small faults into the pure
// rules, one at a time, and counts those that a fast test finds. Prints every survivor. `--sample` takes that many of each
// target, chosen by the seed. A mutant that never ends counts as found.
// `npm run mutate -- --only security [--match TEXT]` switches off the mends of the threat model instead: each must turn the test of
// its row red. `--only choice` does the same with what the choice of endpoints relies on.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { choiceMends } from './mutate/choice-mends.ts';
import { reasonOfEquivalence } from './mutate/equivalent.ts';
import { Lane } from './mutate/lane.ts';
import { type Mutant, mutantsOf } from './mutate/mutants.ts';
import { sampleOf } from './mutate/sample.ts';
import { switchOff } from './mutate/security.ts';
import { mends } from './mutate/security-mends.ts';
import { type Target, targets } from './mutate/targets.ts';

const wantedShare = 0.85;

interface Planted {
  readonly file: string;
  readonly mutant: Mutant;
  readonly was: string;
}

interface Tally {
  mutants: number;
  killed: number;
  readonly survivors: { readonly file: string; readonly line: number; readonly was: string; readonly became: string }[];
}

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '1' },
    json: { type: 'string' },
    match: { type: 'string' },
  },
});
const root = join(import.meta.dirname, '..');
const switched = { security: mends, choice: choiceMends }[flags.only ?? ''];
if (switched !== undefined) process.exit((await switchOff(root, switched, flags)) ? 0 : 1);
const chosen = targets.filter(({ name }) => flags.only === undefined || flags.only === name);
if (chosen.length === 0)
  throw new Error(`--only takes one of ${targets.map(({ name }) => name).join(', ')}, security, choice`);

const tallies = new Map<string, Tally>();
for (const target of chosen) tallies.set(target.name, await mutate(target));
printTable();

async function mutate(target: Target): Promise<Tally> {
  const all = filesOf(target).flatMap(plantedIn);
  const wanted = flags.sample === undefined ? all.length : Number(flags.sample);
  const work = sampleOf(all, { count: wanted, seed: Number(flags.seed) });
  const tally: Tally = { mutants: work.length, killed: 0, survivors: [] };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: Number(flags.lanes) }, () => runLane(target, work, tally)));
  const secondsEach = (performance.now() - startedMs) / 1000 / Math.max(tally.mutants, 1);
  console.log(`${target.name}: ${tally.killed} of ${tally.mutants} found, ${secondsEach.toFixed(2)} s each`);
  return tally;
}

async function runLane({ tests }: Target, work: Planted[], tally: Tally): Promise<void> {
  const lane = new Lane(root, tests);
  try {
    // If the unchanged files fail, no verdict would mean anything.
    const failing = await lane.judgeUnchanged();
    if (failing !== undefined) throw new Error(`unchanged files: ${failing} fails`);
    for (let next = work.shift(); next !== undefined; next = work.shift()) {
      const { file, mutant, was } = next;
      if ((await lane.judge({ file, mutant })) !== undefined) {
        tally.killed += 1;
        continue;
      }
      const survivor = { file, line: mutant.line, was: onOneLine(was), became: onOneLine(mutant.text) };
      tally.survivors.push(survivor);
      console.log(`survived ${survivor.file}:${survivor.line}: ${survivor.was} -> ${survivor.became}`);
    }
  } finally {
    lane.stop();
  }
}

function filesOf({ files }: Target): string[] {
  return globSync([...files], { cwd: root })
    .filter((file) => !file.endsWith('.test.ts') && !file.includes('/testing/'))
    .sort();
}

function plantedIn(file: string): Planted[] {
  const source = readFileSync(join(root, file), 'utf8');
  return mutantsOf(source)
    .map((mutant) => ({ file, mutant, was: source.slice(mutant.start, mutant.end) }))
    .filter(({ was, mutant }) => reasonOfEquivalence({ file, was, became: mutant.text }) === undefined);
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

function printTable(): void {
  console.log('rules        mutants  found  share');
  for (const [name, { mutants, killed }] of tallies) {
    const share = `${((100 * killed) / Math.max(mutants, 1)).toFixed(1)} %`;
    console.log(`${name.padEnd(12)} ${String(mutants).padStart(7)}  ${String(killed).padStart(5)}  ${share}`);
  }
  const isMet = [...tallies.values()].every(({ mutants, killed }) => killed >= wantedShare * mutants);
  console.log(`wanted: ${wantedShare * 100} % of each found: ${isMet ? 'met' : 'MISSED'}`);
  if (flags.json !== undefined) writeFileSync(flags.json, JSON.stringify(Object.fromEntries(tallies), undefined, 2));
  process.exitCode = isMet ? 0 : 1;
}
