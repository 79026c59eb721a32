import { defineConfig } from 'vitest/config';

/** Files that keep both cores busy (npm ci, compilers, archives), hold CPU time to a limit, or use fixed ports. */
const alone = [
  'test/demo.test.ts',
  'test/fresh-clone.test.ts',
  'test/image.test.ts',
  'test/package.test.ts',
  'test/xds-process.test.ts',
];
const realProcesses = { testTimeout: 120_000, hookTimeout: 120_000 };

// `fast` is what `npm run check` runs; `whole` and `alone` start real processes and counterparts; `kubernetes` (npm run
// test:kubernetes) needs the binaries of a Kubernetes API server.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: ['src/**/*.test.ts', 'sim/**/*.test.ts'],
          testTimeout: 60_000,
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
