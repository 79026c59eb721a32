// `portolan up`: one cluster's whole set on the embedded home, and a short screen of what to try.

import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { logLevelOption, parseListen, processLog, untilStopped } from '../../main/process.ts';

interface UpFlags {
  readonly data: string;
  readonly listen: string;
  readonly logLevel: LogLevel;
}

export function addUpCommand(program: Command): void {
  program
    .command('up')
    .description("one cluster's whole set on the embedded home")
    .option('--data <dir>', 'where everything is kept', '.portolan')
    .option('--listen <host:port>', 'where the API listens; port 0 takes a free one', '127.0.0.1:0')
    .addOption(logLevelOption('warn'))
    .action(run);
}

async function run(flags: UpFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const { createRealWorld } = await import('../../base/real/world.ts');
  const { startHome } = await import('../../main/home.ts');
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const directory = resolve(flags.data);
  const home = await startHome({ world, log, directory, listen });
  const stopped = untilStopped(log, () => home.stop());
  process.stdout.write(screen(home.server, home.kubeconfig));
  await stopped;
}

// As a person here would type it: the program of this checkout, wherever they stand.
function ownCommand(): string {
  const path = fileURLToPath(new URL('../../../../bin/portolan', import.meta.url));
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

function screen(server: string, kubeconfig: string): string {
  return `
Portolan: one cluster's home is ready at ${server}

In another terminal:
  export KUBECONFIG=${kubeconfig}
  kubectl get namespaces
  ${ownCommand()} register default/web --address 127.0.0.1 --port 8080 --check tcp
  kubectl get services,endpointslices
  kubectl explain serviceexport.status
  kubectl api-resources

Everything it knows is in the folder of that kubeconfig. Ctrl-C stops it; the facts stay.
`;
}
