// The process of `portolan demo`, and the orders that a running demo takes.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Parts } from '../../base/parts.ts';
import type { DemoFlags } from '../../cli/roles/demo.ts';
import type { ClusterSetDeps } from '../../cli/with-home.ts';
import { portolanPath, processLog, untilStopped } from '../process.ts';
import { withTelemetry } from '../telemetry.ts';
import { sendControl } from './control.ts';
import { type DemoFile, startDemo } from './part.ts';
import { screen } from './screen.ts';

export async function runDemo(flags: DemoFlags, deps: ClusterSetDeps): Promise<void> {
  const log = processLog(deps.world, flags.logLevel);
  const directory = resolve(flags.dir);
  const parts = new Parts(log);
  try {
    const say = (line: string) => process.stdout.write(`  ${line}\n`);
    const world = await withTelemetry('demo', deps.world, log);
    const demo = await startDemo({ ...deps, world, log, directory, parts, admins: new Map() }, say);
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(screen(demo, { directory, portolan: portolanPath() }));
    process.stdout.write('ready\n');
    await stopped;
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

export async function orderDemo(verb: string, cluster: string, dir: string): Promise<string> {
  const path = `${resolve(dir)}/demo.json`;
  let file: DemoFile;
  try {
    file = JSON.parse(readFileSync(path, 'utf8')) as DemoFile;
  } catch (cause) {
    throw new Error(`demo ${verb} ${cluster}: no demo runs in ${dir}; start one with portolan demo --dir ${dir}`, {
      cause,
    });
  }
  return sendControl(file.control, verb, cluster);
}
