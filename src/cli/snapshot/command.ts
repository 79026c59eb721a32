// `portolan snapshot`: copies of an embedded home. The flags are here; main/snapshot/ does the work.

import type { Command } from 'commander';
import { outputOption } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type HomeFlags } from '../with-home.ts';

interface KeyFlags {
  readonly keyFile?: string;
}

export interface SaveFlags extends HomeFlags, KeyFlags {}

export interface ListFlags extends HomeFlags {
  readonly dir?: string;
  readonly output: string;
}

export interface InspectFlags extends KeyFlags {
  readonly output: string;
}

export interface RestoreFlags extends KeyFlags {
  readonly data: string;
  readonly yes?: boolean;
}

export interface SnapshotActions {
  save(file: string, flags: SaveFlags): Promise<void>;
  list(flags: ListFlags): Promise<void>;
  inspect(file: string, flags: InspectFlags): Promise<void>;
  restore(file: string, flags: RestoreFlags): Promise<void>;
}

export function addSnapshotCommand(program: Command, actions: SnapshotActions): void {
  const snapshot = program.command('snapshot').description(verbs.snapshot);
  const save = snapshot
    .command('save')
    .description('take a snapshot of a running home and write it to a file')
    .argument('<file>', 'a file that does not exist yet')
    .addHelpText(
      'after',
      `
The file has all Secrets and the key of the certificate authority: whoever reads it is admin. Only its owner can read it
(mode 0600). Taking it needs the right to post /snapshots, which admins and the ClusterRole portolan:snapshot have. Examples:
  portolan snapshot save broker.snapshot --kubeconfig broker/admin.kubeconfig
  portolan snapshot save broker.snapshot --key-file snapshot.key`,
    );
  addKeyOption(addHomeOptions(save)).action(actions.save);
  addHomeOptions(snapshot.command('list').description('list the snapshots that a home has taken on its schedule'))
    .option('--dir <dir>', 'a folder of this machine in place of a running home')
    .option(...outputOption)
    .action(actions.list);
  addKeyOption(
    snapshot
      .command('inspect')
      .description('verify a snapshot and show its content')
      .argument('<file>', 'the snapshot')
      .option(...outputOption),
  ).action(actions.inspect);
  const restore = snapshot
    .command('restore')
    .description('put a snapshot in place of the state of a stopped home')
    .argument('<file>', 'the snapshot')
    .requiredOption('--data <dir>', 'folder of the home: its own, or an empty one')
    .option('--yes', 'restore; without it, show what would come back and change nothing')
    .addHelpText(
      'after',
      `
Objects, addresses, the certificate authority and all identities are those of the snapshot. Every client reads everything
anew. Open join tokens are void. Former files stay in a folder of their own. Example:
  portolan snapshot restore broker.snapshot --data /var/lib/portolan --yes`,
    );
  addKeyOption(restore).action(actions.restore);
}

/** A key in the arguments could be read by others. */
function addKeyOption(command: Command): Command {
  return command.option('--key-file <file>', 'key of its encryption; - reads standard input');
}
