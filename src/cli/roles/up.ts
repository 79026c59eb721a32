// `portolan up`: one cluster's whole set on the embedded home, and a short screen of what to try.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { logLevelOption } from './options.ts';

export interface UpFlags {
  readonly data: string;
  readonly listen: string;
  /** True when no path was given. */
  readonly envoy?: string | true;
  readonly logLevel: LogLevel;
}

export function addUpCommand(program: Command, run: (flags: UpFlags) => Promise<void>): void {
  program
    .command('up')
    .description(verbs.up)
    .option('--data <dir>', 'data folder', '.portolan')
    .option('--listen <host:port>', 'address of the API; port 0 takes a free one', '127.0.0.1:0')
    .option('--envoy [path]', 'run an Envoy beside it, configured by its own discovery server (default: envoy on PATH)')
    .addOption(logLevelOption('warn'))
    .action(run);
}
