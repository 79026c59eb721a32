// `npm run bench:peering` in small: that every figure it promises is still printed. How large they are is another matter.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = fileURLToPath(new URL('../bench/peering.ts', import.meta.url));

test('bench:peering: a hundredth of everything -> every figure, its goal, and one final state after the burst', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--scale=0.01'], {
    timeout: 100_000,
    killSignal: 'SIGKILL',
  });
  for (const figure of [
    /full sync of 41 services, stored and acknowledged +\d/,
    /full sync of 500 services, stored and acknowledged +\d.* 10 s: /,
    /100 services at 20 ms round trip, window 1024 +\d.* 2 s: /,
    /100 services at 20 ms round trip, strict +\d/,
    /10 services to 2 consumers +\d/,
    /burst of 200 updates of 10 services to 2 consumers +\d/,
    /different final states among all of them +1\.00 state +the same final state: met/,
    /single update, changed to acknowledged, p50 +\d/,
    /single update, changed to acknowledged, p99 +\d.* under 10 ms: /,
  ])
    expect(stdout).toMatch(figure);
});
