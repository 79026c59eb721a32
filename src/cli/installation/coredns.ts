// `portolan coredns`: writes into the configuration of the cluster's CoreDNS that it asks our resolvers for our zones, and takes
// it out again. Shows what it would change; changes nothing without --yes.

import { type Command, Option } from 'commander';
import {
  addonCorefile,
  type ClusterDns,
  type DnsChange,
  hasOurs,
  kindOf,
  planChange,
  planRemoval,
  reloads,
} from '../../install/coredns/cluster-dns.ts';
import { type StubKind, stubKinds } from '../../install/coredns/stub-blocks.ts';
import type { Client } from '../../kube/client/client.ts';
import { isConflict } from '../../kube/objects/api-error.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { CommandError, notFoundError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, withHome } from '../with-home.ts';
import { readClusterDns, readDnsWanted } from './cluster-dns.ts';

interface CorednsFlags extends HomeFlags {
  readonly for?: StubKind;
  readonly remove?: boolean;
  readonly yes?: boolean;
}

export function addCorednsCommand(program: Command, deps: CliDeps): void {
  addHomeOptions(program.command('coredns').description(verbs.coredns))
    .addOption(
      new Option(
        '--for <form>',
        'coredns: its own ConfigMap; aks: the ConfigMap coredns-custom, as AKS and k3s merge it; eks: configuration values of the add-on, printed (default: as the cluster is)',
      ).choices(stubKinds),
    )
    .option('--remove', 'take out what this command has written')
    .option('--yes', 'write; without it, show what would change and change nothing')
    .addHelpText('after', examples)
    .action((flags: CorednsFlags) => withHome(deps, flags, ({ client }) => run(deps, client, flags)));
}

async function run(deps: CliDeps, client: Client, flags: CorednsFlags): Promise<void> {
  const dns = await readClusterDns(client);
  if (dns.coredns === undefined)
    throw notFoundError(
      'this cluster has no ConfigMap kube-system/coredns, so it has no CoreDNS that could be configured',
    );
  const kind = flags.for ?? kindOf(dns);
  const changes = await refused(() => planned(deps, client, { dns, kind, isRemoval: flags.remove === true }));
  if (changes === undefined) return;
  if (changes.length === 0)
    return deps.print(flags.remove ? 'nothing of ours is there' : 'CoreDNS asks portolan-dns already');
  for (const change of changes) for (const line of shown(change)) deps.print(line);
  if (!flags.yes) return deps.print('nothing was written; repeat with --yes');
  for (const change of changes) await write(client, change);
  deps.print(
    reloads(dns)
      ? 'written; CoreDNS reads it within two minutes'
      : 'written; this CoreDNS has no plugin reload: kubectl -n kube-system rollout restart deployment/coredns',
  );
}

interface Asked {
  readonly dns: ClusterDns;
  readonly kind: StubKind;
  readonly isRemoval: boolean;
}

/** Undefined if it was printed for somebody else to write. */
async function planned(
  deps: CliDeps,
  client: Client,
  { dns, kind, isRemoval }: Asked,
): Promise<readonly DnsChange[] | undefined> {
  if (isRemoval && (kind !== 'eks' || hasOurs(dns))) return planRemoval(dns);
  const wanted = isRemoval ? undefined : await readDnsWanted(client);
  if (!isRemoval && wanted === undefined)
    throw notFoundError(
      'there is no Service portolan-system/portolan-dns with an address: portolan install --set dns.clusterIP=ADDRESS',
    );
  if (kind === 'eks') {
    deps.print(JSON.stringify({ corefile: addonCorefile(dns, wanted) }, undefined, 2));
    deps.warn?.('nothing was written: aws eks update-addon --addon-name coredns --configuration-values takes it');
    return undefined;
  }
  const change = planChange(dns, wanted!, kind);
  return change === undefined ? [] : [change];
}

async function refused<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandError || !(error instanceof Error) || error.constructor !== Error) throw error;
    throw new CommandError('refused', error.message, { cause: error });
  }
}

function shown({ ref, key, before, after, object }: DnsChange): string[] {
  const [old, next] = [before.split('\n'), after.split('\n')];
  let same = 0;
  while (same < old.length && same < next.length && old[same] === next[same]) same++;
  let tail = 0;
  while (tail < old.length - same && tail < next.length - same && old.at(-1 - tail) === next.at(-1 - tail)) tail++;
  return [
    `ConfigMap ${ref.namespace}/${ref.name}, ${key}${object === undefined ? ' (the ConfigMap is deleted with it)' : ''}:`,
    ...old.slice(same, old.length - tail).map((line) => `- ${line}`),
    ...next.slice(same, next.length - tail).map((line) => `+ ${line}`),
  ];
}

/** Only over what was shown. */
async function write(client: Client, { object, present, ref }: DnsChange): Promise<void> {
  try {
    if (object === undefined) {
      const { uid, resourceVersion } = present!.metadata;
      await client.delete(configMapType, ref, { preconditions: { uid, resourceVersion } });
    } else if (present === undefined) await client.create(configMapType, object);
    else await client.update(configMapType, object);
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new CommandError('refused', `ConfigMap ${ref.namespace}/${ref.name} has changed meanwhile; run it again`, {
      cause: error,
    });
  }
}

const examples = `
The block stands between two marks and is the only text that changes. A block of somebody else for the same zone is left alone, and
refused. Examples:
  portolan coredns
  portolan coredns --yes
  portolan coredns --remove --yes
  portolan coredns --for eks > values.json`;
