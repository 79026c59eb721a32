// `npm run bench:dashboard` in small: that every figure it promises is still printed. How large they are is another matter.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { describeWith } from './support/counterparts.ts';

const program = fileURLToPath(new URL('../bench/dashboard.ts', import.meta.url));

describeWith(['chromium'], 'bench:dashboard', () => {
  test('with 100 services and 10 clusters -> every figure and its goal', async () => {
    const args = [program, '--services=100', '--clusters=10', '--changes=300'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 100_000, killSignal: 'SIGKILL' });
    for (const figure of [
      /first view, first page of a bearer +\d.* under 2 s: /,
      /first view of the next page +\d.* under 2 s: /,
      /a change until it is shown, p50 +\d/,
      /a change until it is shown, p95 +\d.* within 500 ms: /,
      /memory of the page after 300 changes +-?\d.* within 10 %: /,
      /rows of services in the document +\d.* under 100: /,
      /memory of the page +\d/,
    ])
      expect(stdout).toMatch(figure);
  });
});
