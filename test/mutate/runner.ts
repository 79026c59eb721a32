// A warm process for mutants of one target: `runner.ts TESTS…`, driven by messages. The file on disk is never changed: Vite
// gets the mutated text. Runs only test files that import the mutated one, those that found most faults first.

import { resolve } from 'node:path';
import { createVitest, type TestSpecification } from 'vitest/node';
import { importersIn } from './importers.ts';
import type { Mutant } from './mutants.ts';

export interface Job {
  readonly file: string;
  /** Absent for the files as they are: all tests run. */
  readonly mutant?: Mutant;
}

export interface Verdict {
  /** The first failing test; absent if the mutant survived. */
  readonly killedBy?: string;
}

let current: { path: string; mutant: Mutant } | undefined;
/** By test file: the faults that it found, and how long it takes. */
const finds = new Map<string, number>();
const durationsMs = new Map<string, number>();

const vitest = await createVitest(
  'test',
  {
    config: false,
    watch: false,
    include: process.argv.slice(2),
    bail: 1,
    pool: 'threads',
    // One thread loads the modules once for all test files of a mutant; no module of the product has state.
    isolate: false,
    fileParallelism: false,
    testTimeout: 10_000,
    reporters: [{}],
    sequence: { sequencer: createSequencer() },
  },
  {
    plugins: [
      {
        name: 'mutate',
        enforce: 'pre',
        transform: (code, id) => (id === current?.path ? apply(code, current.mutant) : undefined),
      },
    ],
  },
);
const specifications = await vitest.globTestSpecifications();
const importers = importersIn(specifications.map(({ moduleId }) => moduleId));

process.on('message', (job: Job) => void judge(job).then((verdict) => process.send?.(verdict)));
process.send?.({});

async function judge({ file, mutant }: Job): Promise<Verdict> {
  if (mutant === undefined) return { killedBy: await firstFailure(specifications) };
  const path = resolve(file);
  current = { path, mutant };
  vitest.invalidateFile(path);
  const asked = specifications.filter(({ moduleId }) => importers(path).has(moduleId));
  const killedBy = asked.length === 0 ? undefined : await firstFailure(asked);
  current = undefined;
  vitest.invalidateFile(path);
  return { killedBy };
}

function apply(code: string, { start, end, text }: Mutant): string {
  return code.slice(0, start) + text + code.slice(end);
}

async function firstFailure(asked: TestSpecification[]): Promise<string | undefined> {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(asked, true);
  const ids = new Set(asked.map(({ moduleId }) => moduleId));
  // Vitest also returns modules that an earlier mutant failed and that were not asked now.
  for (const module of testModules.filter(({ moduleId }) => ids.has(moduleId))) {
    const failed = module.children.allTests('failed').next().value;
    if (module.errors().length === 0 && failed === undefined) {
      if (module.ok()) durationsMs.set(module.moduleId, module.diagnostic().duration);
      continue;
    }
    finds.set(module.moduleId, (finds.get(module.moduleId) ?? 0) + 1);
    return `${module.relativeModuleId}: ${failed?.fullName ?? 'loading'}`;
  }
  return unhandledErrors.length > 0 ? 'an error outside of tests' : undefined;
}

/** The own test first, then by faults found for the time that it takes. */
function createSequencer() {
  const worth = (id: string) => (1 + (finds.get(id) ?? 0)) / (10 + (durationsMs.get(id) ?? 0));
  const isOwn = (id: string) => id === current?.path.replace(/\.ts$/, '.test.ts');
  return class {
    shard = async (files: TestSpecification[]) => files;
    sort = async (files: TestSpecification[]) =>
      files.toSorted(({ moduleId: a }, { moduleId: b }) => Number(isOwn(b)) - Number(isOwn(a)) || worth(b) - worth(a));
  };
}
