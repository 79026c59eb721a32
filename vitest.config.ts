import { defineConfig } from 'vitest/config';

// Two projects: `fast` is what `npm run check` runs, `whole` starts real processes and counterparts.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'fast', include: ['src/**/*.test.ts', 'sim/**/*.test.ts'], testTimeout: 20_000 } },
      {
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Real processes on two cores: one file at a time keeps timings honest.
          fileParallelism: false,
        },
      },
    ],
  },
});
