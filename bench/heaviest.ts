// `npm run bench:heaviest`: the heaviest request that each verb accepts, and how long it holds the event loop of a real
// home at most. `--objects 100000` is how many it holds, `--only PART` runs the rows whose text contains it, `--rounds 3`
// takes the median of so many, `--json FILE` keeps the figures.

import { mkdtempSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect, startApi } from '../test/support/api-process.ts';
import { inFlight, median } from './api/load.ts';
import { heavyRequests, prepare } from './heaviest/cases.ts';
import { type Measured, measure, openProbe } from './heaviest/measure.ts';
import { dump, type Place, sent } from './heaviest/requests.ts';
import { type Figure, report } from './report.ts';

const wantedMs = 50;

const { values } = parseArgs({
  options: {
    objects: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    json: { type: 'string' },
  },
});

const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
const socket = `${directory}/probe`;
const figures: Figure[] = [];
// Inherited by the process that is started: it loads the probe before its own code.
process.env['HEAVIEST_PROBE'] = socket;
process.env['NODE_OPTIONS'] = `--import=${fileURLToPath(new URL('heaviest/probe.mjs', import.meta.url))}`;
const api = await startApi({ data: `${directory}/data`, args: ['--log-level', 'error', '--keep-history', '3600'] });
try {
  const connection = await connect(api.kubeconfig);
  const probe = await openProbe(socket);
  const place: Place = { connection, floor: 0 };
  await fill(place, Number(values.objects));
  await prepare(place);
  const workMs: number[] = [];
  for (const heavy of heavyRequests) {
    const name = `${heavy.verb}: ${heavy.what}`;
    if (!name.includes(values.only)) continue;
    const rounds: Measured[] = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      rounds.push(await measure(probe, async () => void (await heavy.run(place, round))));
      await heavy.after?.(place, round);
    }
    const value = median(rounds.map(({ turnMs }) => turnMs));
    workMs.push(...rounds.map((each) => each.workMs));
    const seen = median(rounds.map(({ delayMs }) => delayMs));
    const cpuMs = median(rounds.map((each) => each.cpuMs));
    const wanted = `at most ${wantedMs} ms (by the clock ${seen.toFixed(0)} ms, in all ${cpuMs.toFixed(0)} ms of CPU)`;
    figures.push({ name, value, unit: 'ms', wanted, isMet: value <= wantedMs });
    console.log(
      `${value.toFixed(1).padStart(8)} ms  by the clock ${seen.toFixed(0)} ms, in all ${cpuMs.toFixed(0)} ms  ${name}`,
    );
  }
  figures.push({ name: 'fixed work beside it, CPU', value: median(workMs), unit: 'ms' });
  probe.close();
  connection.close();
} finally {
  await api.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
report('The heaviest requests, and how long each holds the event loop', figures);

async function fill(place: Place, count: number): Promise<void> {
  const json = { 'content-type': 'application/json' };
  await sent(place, 'POST', '/api/v1/namespaces', dump({ metadata: { name: 'many' } }), json);
  let made = 0;
  await inFlight(200, count, async () => {
    const at = made++;
    const metadata = { name: `map-${at}`, labels: { team: 'bench', app: `app-${at % 1000}` } };
    await sent(
      place,
      'POST',
      '/api/v1/namespaces/many/configmaps',
      dump({ metadata, data: { a: 'x'.repeat(200) } }),
      json,
    );
    if (at === count >> 1) place.floor = await revision(place);
  });
}

async function revision({ connection }: Place): Promise<number> {
  const { body } = await connection.request('GET', '/api/v1/namespaces?limit=1');
  return Number(JSON.parse(body.toString()).metadata.resourceVersion);
}
