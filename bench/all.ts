// `npm run report`: runs the benches one after the other, keeps what they measured in bench/results, and draws docs/scale.md
// with its plots. `--only scale,growth` runs some, `--draw` none.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Bench, benches } from './page/benches.ts';
import { commandOf, drawPage, type Result } from './page/page.ts';
import { readResults, resultFile } from './page/results.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const { values } = parseArgs({ options: { only: { type: 'string' }, draw: { type: 'boolean', default: false } } });
const asked = values.draw ? [] : (values.only?.split(',') ?? benches.map(({ name }) => name));
const unknown = asked.filter((name) => !benches.some((bench) => bench.name === name));
if (unknown.length > 0) throw new Error(`report: no bench ${unknown}; there are ${benches.map(({ name }) => name)}`);

const failed = benches.filter(({ name }) => asked.includes(name)).filter((bench) => !measure(bench));
const { text, plots } = drawPage(readResults());
writeFileSync(`${root}docs/scale.md`, text);
for (const [name, svg] of plots) writeFileSync(`${root}docs/images/${name}`, svg);
for (const bench of failed) console.error(`report: ${commandOf(bench)} failed; what it measured before stays`);
console.log(`docs/scale.md is drawn, with ${plots.size} plots`);
process.exitCode = failed.length === 0 ? 0 : 1;

function measure(bench: Bench): boolean {
  const directory = mkdtempSync(`${tmpdir()}/portolan-report-`);
  const file = `${directory}/figures.json`;
  const [load] = loadavg() as [number];
  console.log(`\n— ${commandOf(bench)}`);
  const { status } = spawnSync(process.execPath, [`${root}${bench.script}`, ...bench.args, '--json', file], {
    cwd: root,
    stdio: 'inherit',
  });
  const isDone = status === 0 && existsSync(file);
  if (isDone) {
    const { figures } = JSON.parse(readFileSync(file, 'utf8')) as Pick<Result, 'figures'>;
    const result: Result = { at: new Date().toISOString(), commit: commit(), machine: machine(), load, figures };
    mkdirSync(`${root}bench/results`, { recursive: true });
    writeFileSync(resultFile(bench.name), `${JSON.stringify(result, null, 2)}\n`);
  }
  rmSync(directory, { recursive: true });
  return isDone;
}

function commit(): string {
  return execFileSync('git', ['-C', root, 'rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim();
}

function machine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown';
  return `${availableParallelism()} cores of ${model}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}`;
}
