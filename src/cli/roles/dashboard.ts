// `portolan dashboard`: the web page over one or several homes, and a token to sign in with. The flags are here;
// main/dashboard/process.ts builds the server from them.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { verbs } from '../verbs.ts';
import { addHomesOptions, type HomesFlags } from '../with-home.ts';
import { logLevelOption } from './options.ts';

export interface DashboardFlags extends HomesFlags {
  readonly listen: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly host: string[];
  readonly recordAs?: string;
  readonly logLevel: LogLevel;
}

export interface DashboardTokenFlags extends HomesFlags {
  readonly hours: string;
}

export interface DashboardRunner {
  run(flags: DashboardFlags): Promise<void>;
  token(flags: DashboardTokenFlags): Promise<string>;
}

export function addDashboardCommand(program: Command, print: (line: string) => void, runner: DashboardRunner): void {
  const dashboard = addHomesOptions(program.command('dashboard').description(verbs.dashboard))
    .option('--listen <host:port>', 'address of the page; port 0 takes a free one', '127.0.0.1:8420')
    .option('--tls-certificate <file>', 'PEM; needed to listen on an address that others reach')
    .option('--tls-key <file>', 'its key')
    .option('--host <name...>', 'names of a reverse proxy in front of it', [])
    .option(
      '--record-as <file>',
      'file with the output of portolan dashboard token: keeps the last 24 hours while no page is open',
    )
    .addOption(logLevelOption('info'))
    .enablePositionalOptions()
    .addHelpText(
      'after',
      `
Of each kubeconfig it takes the address and the authority of a home; who signs in brings a token of their own, and sees what
that token may read. Give it the broker and the homes of the members. It changes nothing.
Examples:
  portolan dashboard --kubeconfig broker.kubeconfig east.kubeconfig west.kubeconfig
  portolan dashboard token --kubeconfig broker.kubeconfig east.kubeconfig west.kubeconfig`,
    )
    .action(runner.run);
  addHomesOptions(dashboard.command('token'))
    .description('make the account portolan-dashboard, which may read, and print a token for each home')
    .option('--hours <count>', 'how long the tokens are valid', '8')
    .action(async (flags: DashboardTokenFlags, command: Command) => {
      const homes = flags.kubeconfig === undefined ? command.optsWithGlobals<DashboardTokenFlags>() : flags;
      print(await runner.token({ ...homes, hours: flags.hours }));
    });
}
