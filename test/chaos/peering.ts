// `npm run chaos:peering [kills] [peering|home|both]`: the consumer killed with -9 at random moments, 200 times by
// default; its peering process, its home and both in turn.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crashRun, type Victim } from '../support/peering-crash.ts';

const kills = Number(process.argv[2] ?? 200);
const victims = process.argv[3] === undefined ? (['peering', 'home', 'both'] as const) : [process.argv[3] as Victim];
const folder = mkdtempSync(join(tmpdir(), 'peering-chaos-'));
try {
  const onKill = (kill: number, acknowledged: number) => {
    if ((kill + 1) % 10 === 0) console.log(`${kill + 1} kills, ${acknowledged} services acknowledged at the last`);
  };
  const { checked, killed } = await crashRun({ folder, kills, victims, services: 300, random: Math.random, onKill });
  console.log(`${kills} kills (${JSON.stringify(killed)}), ${checked} acknowledgements checked, none lost`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
