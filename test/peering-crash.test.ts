// The short form; `npm run chaos:peering` kills 200 times.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { crashRun } from './support/peering-crash.ts';

test('peering: the consumer is killed with -9 at random moments, its peering process, its home or both -> what it acknowledged is there, and it converges', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'peering-crash-'));
  try {
    const victims = ['peering', 'home', 'both'] as const;
    const { checked, killed } = await crashRun({ folder, kills: 6, victims, services: 300, random: Math.random });
    expect(killed).toEqual({ peering: 2, home: 2, both: 2 });
    expect(checked).toBeGreaterThan(100);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
