// `npm run attack [-- PART...]`: attacks on real processes of this machine, over loopback alone and bounded in time, one line
// each: attempt, outcome, held or not. Ends with 1 if one did not hold. docs/threat-model.md has what each of them means.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Attack, Scene } from './attack/attack.ts';
import { clustersetAttacks } from './attack/clusterset.ts';
import { dashboardAttacks } from './attack/dashboard.ts';
import { homeAttacks } from './attack/home.ts';
import { limitAttacks } from './attack/limits.ts';
import { peeringAttacks } from './attack/peering.ts';
import { scenarioAttacks } from './attack/scenarios.ts';

const parts: Readonly<Record<string, readonly Attack[]>> = {
  home: homeAttacks,
  limits: limitAttacks,
  dashboard: dashboardAttacks,
  clusterset: clustersetAttacks,
  peering: peeringAttacks,
  scenarios: scenarioAttacks,
};
const patienceMs = 120_000;

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in parts));
if (unknown.length > 0) throw new Error(`no part ${unknown.join(', ')}, there are ${Object.keys(parts).join(', ')}`);

let lost = 0;
let made = 0;
for (const [part, attacks] of Object.entries(parts)) {
  if (chosen.length > 0 && !chosen.includes(part)) continue;
  for (const { attempt, run } of attacks) {
    made += 1;
    const folder = mkdtempSync(join(tmpdir(), 'portolan-attack-'));
    const closing: (() => unknown)[] = [];
    const scene: Scene = { folder, onClose: (close) => closing.push(close) };
    const late = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => reject(new Error(`no outcome within ${patienceMs / 1000} s`)), patienceMs);
      closing.push(() => clearTimeout(timer));
    });
    const { isHeld, outcome } = await Promise.race([run(scene), late]).catch((error: Error) => ({
      isHeld: false,
      outcome: `failed: ${error.message}`,
    }));
    for (const close of closing.reverse()) await close();
    rmSync(folder, { recursive: true, force: true });
    if (!isHeld) lost += 1;
    console.log(`| ${part} | ${attempt} | ${outcome} | ${isHeld ? 'held' : 'NOT HELD'} |`);
  }
}
console.log(`${made} attacks, ${lost} not held`);
process.exitCode = lost > 0 ? 1 : 0;
