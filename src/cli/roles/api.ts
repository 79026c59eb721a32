// `portolan api`: the embedded API server, a cluster's home or the broker.

import { Argument, type Command, Option } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { defaultServiceRanges } from '../../kube/objects/service.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type WaitFlags } from '../wait.ts';
import { addHomeEtcdOptions, type HomeEtcdFlags } from './etcd-flags.ts';
import { logLevelOption, type SnapshotFlags, snapshotKeyOption, snapshotsOption } from './options.ts';

export interface ApiFlags extends SnapshotFlags, HomeEtcdFlags {
  readonly data: string;
  readonly listen?: string;
  readonly name?: string;
  readonly advertise?: string;
  readonly clusterset?: string;
  readonly san: string[];
  readonly serviceCidr: string;
  readonly keepHistory: string;
  readonly audit?: string;
  readonly auditRequired?: boolean;
  readonly partsIn: string[];
  readonly logLevel: LogLevel;
}

export type RotationStep = 'begin' | 'switch' | 'finish';

export interface RotateFlags extends WaitFlags {
  readonly force?: boolean;
}

export interface MigrateFlags {
  readonly to: 'etcd' | 'folder';
}

export interface ApiActions {
  run(flags: ApiFlags): Promise<void>;
  migrate(flags: ApiFlags, migration: MigrateFlags): Promise<void>;
  rotate(data: string, step: RotationStep, flags: RotateFlags): Promise<void>;
}

export function addApiCommand(program: Command, { run, rotate, migrate }: ApiActions): void {
  const api = program
    .command('api')
    .description(verbs.api)
    .requiredOption('--data <dir>', 'folder for objects, keys and admin.kubeconfig; created if it does not exist')
    .option(
      '--listen <host:port>',
      'address to listen on; port 0 takes a free one (default: 127.0.0.1:6443, or 0.0.0.0:6443 with --advertise)',
    )
    .option(
      '--advertise <host[:port]>',
      'name or address of this home as other machines reach it; in its certificate, its kubeconfig and in join tokens',
    )
    .option('--name <name>', 'name of cluster, user and context in its kubeconfig (default: that of the folder)')
    .option('--clusterset <name>', 'be the broker of this clusterset, which is created if it does not exist')
    .option('--san <name...>', 'further names or addresses in the serving certificate', [])
    .option(
      '--service-cidr <cidrs>',
      'ranges of cluster IPs, the preferred family first',
      defaultServiceRanges.join(','),
    )
    .option('--keep-history <seconds>', 'how long a watch can be resumed', '300')
    .option('--audit <file>', 'write one line for each request; those without a user go to FILE.anonymous')
    .option('--audit-required', 'refuse writes while the audit log cannot be written')
    .option('--parts-in <cidr...>', 'other machines whose parts may be asked through this home (default: none)', [])
    .addOption(snapshotsOption())
    .addOption(snapshotKeyOption())
    .addOption(logLevelOption('info'));
  addHomeEtcdOptions(api)
    // The folder is an option of the role, and may stand behind the verb.
    .enablePositionalOptions(false)
    .action(run);
  api
    .command('migrate')
    .description('move the objects of a stopped home from its folder to etcd, or back')
    .usage('--data <dir> --etcd <url,url> --to etcd|folder [options]')
    .addOption(
      new Option('--to <where>', 'where they are kept from now on').choices(['etcd', 'folder']).makeOptionMandatory(),
    )
    .addHelpText(
      'after',
      `
The folder and etcd are given as for portolan api, which is started with the same flags afterwards; without --etcd after
--to folder. Objects keep their uids, addresses and creation times. Clients list everything once.
  portolan api migrate --data /var/lib/portolan --etcd https://10.0.0.1:2379 --to etcd`,
    )
    .action((flags: MigrateFlags) => migrate(api.opts<ApiFlags>(), flags));
  const rotateCa = api
    .command('rotate-ca')
    .description('replace the certificate authority of a home in three steps, while it runs')
    .usage('<step> --data <dir> [options]')
    .addArgument(new Argument('<step>', 'how far to go').choices(['begin', 'switch', 'finish']))
    .addHelpText(
      'after',
      `
--data <dir> is required: the folder of the home, as for portolan api.
begin   creates a new authority; clients trust both
switch  issues certificates by the new one; clients still trust both
finish  removes the old one
A running home applies each step within five seconds and rewrites its admin.kubeconfig. Agents of joined clusters and
authorities of federations take the new authority over their present connection, within half a minute, and report it; with
--wait, begin waits for all of them. switch and finish are refused while one has not reported, unless --force is given: it is
cut off then and has to join again. Copy admin.kubeconfig to its other users between begin and switch, and again before finish.
  portolan api rotate-ca begin --data /var/lib/portolan --wait`,
    );
  rotateCa.option('--force', 'go on although members would be cut off');
  addWaitOptions(rotateCa, 'the running home has applied the step, and members too').action(
    (step: RotationStep, flags: RotateFlags) => rotate(api.opts<ApiFlags>().data, step, flags),
  );
}
