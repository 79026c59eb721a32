// `portolan drain`: takes a cluster, or one cluster's part of a service, out of new connections everywhere, while those that
// are open go on. Both are fields of objects: the Cluster at the broker, which its admin writes, and the ServiceExport here.

import type { Command } from 'commander';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { drainAnnotation, type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { notFoundError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import {
  addHomeOptions,
  type ClusterSetDeps,
  defaultClusterSet,
  type HomeFlags,
  parseServiceRef,
  withHome,
} from '../with-home.ts';

interface DrainFlags extends HomeFlags {
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
  addHomeOptions(command).action(async (target: string, flags: DrainFlags) => {
    const line = await withHome(deps, flags, ({ client, defaultNamespace }) =>
      target.includes('/')
        ? drainService(client, { ...parseServiceRef(target, defaultNamespace), isDraining: !flags.undo })
        : drainCluster(client, { id: target, clusterset: flags.clusterset, isDraining: !flags.undo }),
    );
    deps.print(line);
  });
}

/** Returns the line to print. */
export async function drainCluster(
  broker: Client,
  { id, clusterset, isDraining }: { readonly id: string; readonly clusterset: string; readonly isDraining: boolean },
): Promise<string> {
  const ref = { namespace: clusterset, name: id };
  const present = await getOrUndefined<Cluster>(broker, clusterType, ref);
  if (present === undefined) {
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

export async function drainService(
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
