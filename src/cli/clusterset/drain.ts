// `portolan drain`: takes a cluster, or one cluster's part of a service, out of new connections everywhere, while those that
// are open go on. Both are fields of objects: the Cluster at the broker, which its admin writes, and the ServiceExport here.

import type { Command } from 'commander';
import { createHpke } from '../../base/real/hpke.ts';
import { refuseOtherSet } from '../../clusterset/explain/broker-state.ts';
import { requireMembership, withBroker } from '../../clusterset/explain/consult.ts';
import { readOwnRecord } from '../../clusterset/explain/own-record.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { drainAnnotation, type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { notFoundError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import {
  addHomeOptions,
  type ClusterSetDeps,
  defaultClusterSet,
  type HomeFlags,
  parseServiceRef,
  withHome,
} from '../with-home.ts';

interface DrainFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  readonly undo?: boolean;
}

export function addDrainCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('drain')
    .description(verbs.drain)
    .argument('<target>', "a cluster's id, at the broker; or NAMESPACE/NAME of a service that this cluster exports")
    .option('--clusterset <name>', 'the set that the cluster is a member of', defaultClusterSet)
    .option('--undo', 'allow new connections again')
    .addHelpText(
      'after',
      `
Open connections continue. New connections go to other clusters that export the service; if there is none, the service cannot
be reached. Examples:
  portolan drain east --clusterset prod --kubeconfig broker.kubeconfig
  portolan drain shop/checkout
  portolan drain shop/checkout --undo`,
    );
  addWaitOptions(addHomeOptions(command), 'other clusters can see it at the broker').action(
    async (target: string, flags: DrainFlags) => {
      const isDraining = !flags.undo;
      await withHome(deps, flags, async ({ client, defaultNamespace }) => {
        const what = `drain ${target}`;
        if (!target.includes('/')) {
          const request = { id: target, clusterset: flags.clusterset, isDraining };
          deps.print(await drainCluster(client, request));
          return waitIfAsked(deps, flags, { what, look: () => lookCluster(client, request) });
        }
        const service = { ...parseServiceRef(target, defaultNamespace), isDraining };
        deps.print(await drainService(client, service));
        await waitIfAsked(deps, flags, { what, look: () => lookService(deps, client, service) });
      });
    },
  );
}

async function lookCluster(
  broker: Client,
  { id, clusterset, isDraining }: { readonly id: string; readonly clusterset: string; readonly isDraining: boolean },
): Promise<Look> {
  const { spec } = await broker.get<Cluster>(clusterType, { namespace: clusterset, name: id });
  const isDone = (spec.draining === true) === isDraining;
  return isDone ? { done: `the broker has it` } : { waiting: 'the broker does not have it yet' };
}

async function lookService(
  deps: ClusterSetDeps,
  home: Client,
  { namespace, name, isDraining }: { readonly namespace: string; readonly name: string; readonly isDraining: boolean },
): Promise<Look> {
  const membership = await requireMembership(home);
  const hpke = createHpke(deps.world.random);
  const found = await withBroker(deps.world, membership, (broker) =>
    readOwnRecord({ home, broker, membership, hpke, service: { namespace, name } }),
  );
  if (found?.isDraining === isDraining)
    return { done: `the broker has it: ${namespace}/${name} in cluster ${membership.clusterId}` };
  return { waiting: `the agent of cluster ${membership.clusterId} has not written it to the broker yet` };
}

/** Returns the line to print. */
async function drainCluster(
  broker: Client,
  { id, clusterset, isDraining }: { readonly id: string; readonly clusterset: string; readonly isDraining: boolean },
): Promise<string> {
  const ref = { namespace: clusterset, name: id };
  const present = await getOrUndefined<Cluster>(broker, clusterType, ref);
  if (present === undefined) {
    await refuseOtherSet(broker, clusterset);
    throw notFoundError(
      `drain ${id}: this home has no Cluster ${id} of clusterset ${clusterset}; give the broker's --kubeconfig, or write NAMESPACE/NAME for a service`,
    );
  }
  // In a merge patch null takes away.
  const body = { spec: { draining: isDraining ? true : null } };
  await broker.patch(clusterType, ref, { kind: 'merge', body });
  if ((present.spec.draining === true) === isDraining)
    return `cluster ${id} is ${isDraining ? 'draining' : 'not draining'} already`;
  return isDraining
    ? `cluster ${id} is draining: new connections go to other clusters`
    : `cluster ${id} takes new connections again`;
}

async function drainService(
  home: Client,
  { namespace, name, isDraining }: { readonly namespace: string; readonly name: string; readonly isDraining: boolean },
): Promise<string> {
  const key = `${namespace}/${name}`;
  const present = await getOrUndefined<ServiceExport>(home, serviceExportType, { namespace, name });
  if (present === undefined) throw notFoundError(`drain ${key}: this cluster does not export it`);
  const annotations = { [drainAnnotation]: isDraining ? 'true' : null };
  await home.patch(serviceExportType, { namespace, name }, { kind: 'merge', body: { metadata: { annotations } } });
  if ((present.metadata.annotations?.[drainAnnotation] === 'true') === isDraining)
    return `${key} is ${isDraining ? 'draining' : 'not draining'} here already`;
  return isDraining
    ? `${key} is draining here: new connections go to other clusters`
    : `${key} takes new connections here again`;
}
