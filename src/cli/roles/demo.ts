// `portolan demo`: a broker and three clusters in one go, and the two orders that a running demo takes.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import type { ClusterSetDeps } from '../with-home.ts';

const defaultDirectory = '.portolan/demo';

export interface DemoFlags {
  readonly dir: string;
  readonly logLevel: LogLevel;
}

export interface DemoRunner {
  run(flags: DemoFlags, deps: ClusterSetDeps): Promise<void>;
  /** Sends an order to the demo that runs in a folder; resolves with its reply. */
  order(verb: 'break' | 'heal', cluster: string, directory: string): Promise<string>;
}

export function addDemoCommand(program: Command, deps: ClusterSetDeps, runner: DemoRunner): void {
  const demo = program
    .command('demo')
    .description(verbs.demo)
    .option('--dir <dir>', 'data folder; data of an earlier demo is deleted', defaultDirectory)
    .option('--log-level <level>', 'debug, info, warn or error', 'error')
    .action((flags: DemoFlags) => runner.run(flags, deps));
  for (const [verb, what] of [
    ['break', 'cut a cluster of a running demo off from the broker'],
    ['heal', 'mend what break did'],
  ] as const) {
    demo
      .command(verb)
      .description(what)
      .argument('<cluster>', 'east, west or south')
      .option('--dir <dir>', 'the folder of the running demo', defaultDirectory)
      .action(async (cluster: string, flags: Pick<DemoFlags, 'dir'>, command: Command) => {
        // Behind the verb or before it.
        const isBehind = command.getOptionValueSource('dir') !== 'default';
        const { dir } = isBehind ? flags : command.optsWithGlobals<typeof flags>();
        deps.print(await runner.order(verb, cluster, dir));
      });
  }
}
