// `portolan demo`: a broker and three clusters in one go, and the two orders that a running demo takes.

import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { Parts } from '../../base/parts.ts';
import type { DemoFile } from '../../main/demo/demo.ts';
import { processLog, untilStopped } from '../../main/process.ts';
import type { ClusterSetDeps } from '../clusterset/deps.ts';

const defaultDirectory = '.portolan/demo';

export function addDemoCommand(program: Command, deps: ClusterSetDeps): void {
  const demo = program
    .command('demo')
    .description('a broker and three clusters with sample services in one go, ready to look at')
    .option('--dir <dir>', 'where everything is kept; what an earlier demo left there is removed', defaultDirectory)
    .option('--log-level <level>', 'debug, info, warn or error', 'error')
    .action((flags: { dir: string; logLevel: LogLevel }) => run(flags, deps));
  for (const [verb, what] of [
    ['break', 'cut a cluster of a running demo off from the broker'],
    ['heal', 'mend what break did'],
  ] as const) {
    demo
      .command(verb)
      .description(what)
      .argument('<cluster>', 'east, west or south')
      .option('--dir <dir>', 'the folder of the running demo', defaultDirectory)
      .action(async (cluster: string, _flags: unknown, command: Command) => {
        deps.print(await order(verb, cluster, command.optsWithGlobals<{ dir: string }>().dir));
      });
  }
}

async function run(flags: { dir: string; logLevel: LogLevel }, deps: ClusterSetDeps): Promise<void> {
  const [{ startDemo }, { screen }] = await Promise.all([
    import('../../main/demo/demo.ts'),
    import('../../main/demo/screen.ts'),
  ]);
  const log = processLog(deps.world, flags.logLevel);
  const directory = resolve(flags.dir);
  const parts = new Parts(log);
  try {
    const demo = await startDemo({ ...deps, log, directory, parts }, (line) => process.stdout.write(`  ${line}\n`));
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(screen(demo, { directory, portolan: portolanPath() }));
    process.stdout.write('ready\n');
    await stopped;
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function order(verb: string, cluster: string, dir: string): Promise<string> {
  const { sendControl } = await import('../../main/demo/control.ts');
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

/** As a person would type it from where they are. */
function portolanPath(): string {
  const path = relative(process.cwd(), resolve(import.meta.dirname, '../../../../bin/portolan'));
  return path.startsWith('..') ? resolve(import.meta.dirname, '../../../../bin/portolan') : path;
}
