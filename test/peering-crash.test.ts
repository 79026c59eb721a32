// The short form; `npm run chaos:peering` kills 200 times.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { crashRun } from './support/peering-crash.ts';

test('peering: the consumer is killed with -9 at random moments -> what it acknowledged is there, and it converges', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'peering-crash-'));
  try {
    const { checked, restarts } = await crashRun({ folder, kills: 5, services: 300, random: Math.random });
    expect(restarts).toBe(5);
    expect(checked).toBeGreaterThan(100);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
