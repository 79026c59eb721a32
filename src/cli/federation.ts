// `portolan federation`: federated DNS for a clusterset, at its broker. Creates it, and its authority's account there.

import type { Command } from 'commander';
import { readClusterSet } from '../clusterset/explain/broker-state.ts';
import { type Federation, federationType } from '../federation/kinds/federation.ts';
import { install } from '../kube/client/apply.ts';
import type { Client } from '../kube/client/client.ts';
import { conditionOf } from '../kube/objects/conditions.ts';
import { manifest } from '../kube/objects/manifest.ts';
import { addFederationKubeconfigCommand } from './federation-kubeconfig.ts';
import { verbs } from './verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from './wait.ts';
import { addHomeOptions, type CliDeps, defaultClusterSet, type HomeFlags, withHome } from './with-home.ts';

interface FederationFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  readonly nameserver: string[];
  readonly cluster?: string[];
  readonly suffix?: string;
}

export function addFederationCommand(program: Command, deps: CliDeps): void {
  const federation = program.command('federation').description(verbs.federation);
  addFederationKubeconfigCommand(federation, deps);
  const create = federation
    .command('create')
    .description('create a federation, or change its nameservers, clusters and suffix')
    .argument('<name>', 'services are named SERVICE.NAMESPACE.<name>.svc.SUFFIX')
    .requiredOption('--nameserver <address...>', 'addresses of the authority as resolvers reach it, port 53 if none')
    .option('--clusterset <name>', 'the clusterset', defaultClusterSet)
    .option('--cluster <id...>', 'its clusters (default: all members)')
    .option('--suffix <domain>', 'last part of the names (default: federation)')
    .addHelpText(
      'after',
      `
Run it with the kubeconfig of the broker, then start the authority: portolan authority --federation NAME. Example:
  portolan federation create world --nameserver 10.0.0.53 --clusterset prod`,
    );
  addWaitOptions(addHomeOptions(create), 'its authority answers and all resolvers know it').action(
    async (name: string, flags: FederationFlags) => {
      await withHome(deps, flags, async ({ client }) => {
        const { clusterset: namespace, suffix, cluster: clusters, nameserver: nameservers } = flags;
        await readClusterSet(client, namespace);
        const spec = {
          nameservers,
          suffix,
          clusters,
        };
        const wanted = manifest(federationType, { name, namespace }, { spec });
        const { outcome } = await install<Federation>(client, wanted as never);
        deps.print(`federation ${namespace}/${name} ${outcome}`);
        await waitIfAsked(deps, flags, {
          what: `federation create ${name}`,
          look: () => lookReady(client, { namespace, name }),
        });
      });
    },
  );
}

async function lookReady(client: Client, ref: { readonly namespace: string; readonly name: string }): Promise<Look> {
  const { metadata, status } = await client.get<Federation>(federationType, ref);
  const ready = conditionOf(status?.conditions, 'Ready');
  const isCurrent = status?.observedGeneration === metadata.generation;
  if (ready?.status === 'True' && isCurrent) return { done: `federation ${ref.name} is ready: ${ready.message}` };
  const why = isCurrent ? ready?.message : undefined;
  return { waiting: why ?? 'no authority has seen it; start portolan authority' };
}
