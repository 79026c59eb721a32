// `portolan up`: one cluster's whole set on the embedded home, and a short screen of what to try.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { logLevelOption } from './options.ts';

export interface UpFlags {
  readonly data: string;
  readonly listen: string;
  readonly logLevel: LogLevel;
}

export function addUpCommand(program: Command, run: (flags: UpFlags) => Promise<void>): void {
  program
    .command('up')
    .description(verbs.up)
    .option('--data <dir>', 'where everything is kept', '.portolan')
    .option('--listen <host:port>', 'where the API listens; port 0 takes a free one', '127.0.0.1:0')
    .addOption(logLevelOption('warn'))
    .action(run);
}
