// `portolan api`: the embedded API server, a cluster's home or the broker.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { defaultServiceRanges } from '../../kube/objects/service.ts';
import { logLevelOption } from './options.ts';

export interface ApiFlags {
  readonly data: string;
  readonly listen: string;
  readonly san: string[];
  readonly serviceCidr: string;
  readonly keepHistory: string;
  readonly audit?: string;
  readonly logLevel: LogLevel;
}

export function addApiCommand(program: Command, run: (flags: ApiFlags) => Promise<void>): void {
  program
    .command('api')
    .description("the embedded API server: a cluster's home, or the broker")
    .requiredOption('--data <dir>', 'where facts, keys and admin.kubeconfig are kept; made if it is not there')
    .option('--listen <host:port>', 'where to listen; port 0 takes a free one', '127.0.0.1:6443')
    .option('--san <name...>', 'further names or addresses the serving certificate is good for', [])
    .option(
      '--service-cidr <cidrs>',
      'ranges of cluster IPs, the preferred family first',
      defaultServiceRanges.join(','),
    )
    .option('--keep-history <seconds>', 'how long a watch can be resumed', '300')
    .option('--audit <file>', 'write one line for each request')
    .addOption(logLevelOption('info'))
    .action(run);
}
