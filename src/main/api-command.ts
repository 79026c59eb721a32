// `portolan api`: the embedded API server, a cluster's home or the broker.

import type { Command } from 'commander';
import type { LogLevel } from '../base/log.ts';
import { defaultServiceRanges } from './home.ts';
import { parseListen, processLog, untilStopped } from './process.ts';

interface ApiFlags {
  readonly data: string;
  readonly listen: string;
  readonly san: string[];
  readonly serviceCidr: string;
  readonly keepHistory: string;
  readonly audit?: string;
  readonly logLevel: LogLevel;
}

export function addApiCommand(program: Command): void {
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
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(run);
}

async function run(flags: ApiFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const seconds = Number(flags.keepHistory);
  if (!(seconds > 0)) throw new Error(`--keep-history ${flags.keepHistory}: expected a number of seconds above 0`);
  const { createRealWorld } = await import('../base/real/world.ts');
  const { startHome } = await import('./home.ts');
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const home = await startHome({
    world,
    log,
    directory: flags.data,
    listen,
    extraHosts: flags.san,
    serviceRanges: flags.serviceCidr.split(','),
    historyMs: seconds * 1000,
    ...(flags.audit === undefined ? {} : { auditFile: flags.audit }),
  });
  process.stdout.write(`ready ${home.server}\nkubeconfig ${home.kubeconfig}\n`);
  await untilStopped(log, () => home.stop());
}
