// `portolan api`: the embedded API server, a cluster's home or the broker.

import type { Command } from 'commander';
import { parseIp } from '../../base/ip.ts';
import type { LogLevel } from '../../base/log.ts';
import { defaultServiceRanges } from '../../kube/objects/default-service-ranges.ts';
import { logLevelOption, parseListen, processLog, untilStopped } from '../../main/process.ts';

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
    .addOption(logLevelOption('info'))
    .action(run);
}

const dnsName = /^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9]([-a-z0-9]*[a-z0-9])?$/i;

function checkedHost(text: string): string {
  if (parseIp(text) !== undefined || (text.length <= 253 && dnsName.test(text))) return text;
  throw new Error(`--san ${JSON.stringify(text)}: neither an IP address nor a DNS name`);
}

async function run(flags: ApiFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const seconds = Number(flags.keepHistory);
  if (!(seconds > 0)) throw new Error(`--keep-history ${flags.keepHistory}: expected a number of seconds above 0`);
  const { createRealWorld } = await import('../../base/real/world.ts');
  const { startHome } = await import('../../main/home.ts');
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const home = await startHome({
    world,
    log,
    directory: flags.data,
    listen,
    extraHosts: flags.san.map(checkedHost),
    serviceRanges: flags.serviceCidr.split(','),
    historyMs: seconds * 1000,
    ...(flags.audit === undefined ? {} : { auditFile: flags.audit }),
  });
  const stopped = untilStopped(log, () => home.stop());
  process.stdout.write(`ready ${home.server}\nkubeconfig ${home.kubeconfig}\n`);
  await stopped;
}
