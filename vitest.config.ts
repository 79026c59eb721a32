import { defineConfig } from 'vitest/config';

// `fast` is what `npm run check` runs, `whole` starts real processes and counterparts, `kubernetes` (npm run test:kubernetes)
// needs the binaries of a Kubernetes API server.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'fast', include: ['src/**/*.test.ts', 'sim/**/*.test.ts'], testTimeout: 20_000 } },
      {
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/kubernetes/**'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Real processes on two cores: one file at a time keeps timings honest.
          fileParallelism: false,
        },
      },
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
