// `npm run chaos:peering [kills]`: the consumer killed with -9 at random moments, 200 times unless told otherwise.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crashRun } from '../support/peering-crash.ts';

const kills = Number(process.argv[2] ?? 200);
const folder = mkdtempSync(join(tmpdir(), 'peering-chaos-'));
try {
  const onKill = (kill: number, acknowledged: number) => {
    if ((kill + 1) % 10 === 0) console.log(`${kill + 1} kills, ${acknowledged} services acknowledged at the last`);
  };
  const { checked } = await crashRun({ folder, kills, services: 300, random: Math.random, onKill });
  console.log(`${kills} kills, ${checked} acknowledgements checked, none lost`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
