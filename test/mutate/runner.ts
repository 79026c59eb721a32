// One process for mutants of one file: `node runner.ts FILE INDEXES TESTS…`. The file on disk is never changed: Vite gets
// the mutated text. Prints a line of JSON per mutant, so that the caller notices a mutant that never ends.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createVitest, type TestSpecification } from 'vitest/node';
import { type Mutant, mutantsOf } from './mutants.ts';

export interface Verdict {
  /** -1 for the file as it is. */
  readonly index: number;
  /** The first failing test; absent if the mutant survived. */
  readonly killedBy?: string;
}

const [file = '', indexes = '', ...tests] = process.argv.slice(2);
const path = resolve(file);
const source = readFileSync(path, 'utf8');
let current: Mutant | undefined;

const vitest = await createVitest(
  'test',
  {
    config: false,
    watch: false,
    include: tests,
    bail: 1,
    pool: 'threads',
    fileParallelism: false,
    testTimeout: 60_000,
    reporters: [{}],
  },
  {
    plugins: [
      {
        name: 'mutate',
        enforce: 'pre',
        transform: (code, id) => (id === path && current !== undefined ? apply(code, current) : undefined),
      },
    ],
  },
);

const specifications = await vitest.globTestSpecifications();
const own = path.replace(/\.ts$/, '.test.ts');
const groups = [
  specifications.filter(({ moduleId }) => moduleId === own),
  specifications.filter(({ moduleId }) => moduleId !== own),
].filter((group) => group.length > 0);

const mutants = mutantsOf(source);
for (const index of indexes.split(',').map(Number)) {
  current = mutants[index];
  vitest.invalidateFile(path);
  report({ index, killedBy: await firstFailure() });
}
await vitest.close();
process.exit(0);

function apply(code: string, { start: from, end, text }: Mutant): string {
  return code.slice(0, from) + text + code.slice(end);
}

async function firstFailure(): Promise<string | undefined> {
  for (const group of groups) {
    const failed = await failureIn(group);
    if (failed !== undefined) return failed;
  }
  return undefined;
}

async function failureIn(group: TestSpecification[]): Promise<string | undefined> {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(group, true);
  for (const module of testModules) {
    if (module.errors().length > 0) return module.relativeModuleId;
    for (const one of module.children.allTests('failed')) return `${module.relativeModuleId}: ${one.fullName}`;
  }
  return unhandledErrors.length > 0 ? 'an error outside of tests' : undefined;
}

function report(verdict: Verdict): void {
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
