import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that keep both cores busy (npm ci, compilers, archives), hold CPU time to a limit, or use fixed ports. */
const alone = [
  'test/demo.test.ts',
  'test/fresh-clone.test.ts',
  'test/image.test.ts',
  'test/package.test.ts',
  'test/xds-process.test.ts',
];
/** The longest of them: one that begins last is waited for alone. */
const longest = [
  'test/gateways/gateways.test.ts',
  'test/frozen.test.ts',
  'test/gateways.test.ts',
  'test/rotate-ca.test.ts',
  'test/prometheus.test.ts',
  'test/faults.test.ts',
  'test/api-process.test.ts',
  'test/traffic-shift.test.ts',
  'test/proxy-clusters.test.ts',
  'test/proxy-node.test.ts',
  'test/dns-process.test.ts',
  'test/clusterset-leave.test.ts',
  'test/dashboard.test.ts',
  'sim/schedule.test.ts',
  'src/home/store/contract.test.ts',
  'sim/cases.test.ts',
];
const realProcesses = { testTimeout: 120_000, hookTimeout: 120_000 };

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((name) => moduleId.endsWith(`/${name}`));
      return index === -1 ? longest.length : index;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

// `fast` is what `npm run check` runs; `whole` and `alone` start real processes and counterparts; `kubernetes` (npm run
// test:kubernetes) needs the binaries of a Kubernetes API server.
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'fast',
          include: ['src/**/*.test.ts', 'sim/**/*.test.ts'],
          testTimeout: 60_000,
          // They leave nothing behind, so that files may share a process and its modules: a quarter less work.
          isolate: false,
          // Vitest would leave one core idle.
          maxWorkers: '100%',
        },
      },
      {
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/kubernetes/**', ...alone],
          ...realProcesses,
          // These mostly wait for timers and for each other. Three at a time, after the fast ones, which leave no core free.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { name: 'alone', include: alone, ...realProcesses, fileParallelism: false } },
      {
        test: {
          name: 'kubernetes',
          include: ['test/kubernetes/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
