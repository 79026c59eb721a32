// `portolan broker remove`: takes a cluster out of its set from the broker's side, when the cluster itself is gone and
// cannot leave. Everything it had at the broker goes; the other members see it leave.

import type { Command } from 'commander';
import { sleep } from '../../base/world.ts';
import { readClusterSet, readHeartbeat } from '../../clusterset/explain/broker-state.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import {
  clusterIdAnnotation,
  clusterSetLabel,
  joinSecretName,
  memberNamespace,
  memberRoleName,
  membersNamespace,
} from '../../clusterset/rules/broker-layout.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { ResourceType } from '../../kube/objects/object.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import { roleBindingType, roleType, serviceAccountType } from '../../kube/objects/rbac.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { refusedError } from '../exit-codes.ts';
import { addWaitOptions, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, defaultClusterSet, type HomeFlags, withHome } from '../with-home.ts';

interface RemoveFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  readonly force?: boolean;
}

export function addBrokerRemoveCommand(broker: Command, deps: ClusterSetDeps): void {
  const command = broker
    .command('remove')
    .description('remove a cluster that no longer runs from the clusterset')
    .argument('<cluster-id>', 'the cluster to remove')
    .option('--clusterset <name>', 'the set it is a member of', defaultClusterSet)
    .option('--force', 'even if it still renews its lease')
    .addHelpText(
      'after',
      `
A cluster that still runs uses portolan leave. The command watches the lease of the cluster for one lease duration to check
that it does not run. Example:
  portolan broker remove east --clusterset prod`,
    );
  addWaitOptions(addHomeOptions(command), 'everything of it is gone').action(async (id: string, flags: RemoveFlags) => {
    const request = { deps, id, clusterset: flags.clusterset, isForced: flags.force === true };
    const onWait = (line: string) => deps.print(line);
    await withHome(deps, flags, async ({ client }) => {
      const name = await findNamespace({ ...request, client });
      for (const line of await brokerRemove({ ...request, client, onWait })) deps.print(line);
      await waitIfAsked(deps, flags, {
        what: `broker remove ${id}`,
        look: async () =>
          (await getOrUndefined(client, namespaceType, { name })) === undefined
            ? { done: `namespace ${name} is gone` }
            : { waiting: `namespace ${name} is still there` },
      });
    });
  });
}

export interface RemoveRequest {
  readonly client: Client;
  readonly deps: Pick<ClusterSetDeps, 'world'>;
  readonly clusterset: string;
  readonly id: string;
  readonly isForced: boolean;
  /** Told what is waited for. */
  readonly onWait?: (line: string) => void;
}

export async function brokerRemove(request: RemoveRequest): Promise<string[]> {
  const { client, clusterset, id } = request;
  const namespace = await findNamespace(request);
  await refuseAlive(request, namespace);
  const accounts = membersNamespace(clusterset);
  const role = memberRoleName(id);
  // The Cluster first: from here on the objects in its namespace do not count.
  const things: [ResourceType, { namespace?: string; name: string }][] = [
    [clusterType, { namespace: clusterset, name: id }],
    [serviceAccountType, { namespace: accounts, name: id }],
    [secretType, { namespace: accounts, name: joinSecretName(id) }],
    [roleBindingType, { namespace: accounts, name: role }],
    [roleType, { namespace: accounts, name: role }],
    [roleBindingType, { namespace: clusterset, name: role }],
    [roleType, { namespace: clusterset, name: role }],
    [namespaceType, { name: namespace }],
  ];
  let count = 0;
  for (const [type, ref] of things) if (await deleteIfPresent(client, type, ref)) count += 1;
  if (count === 0) {
    await readClusterSet(client, clusterset);
    return [`cluster ${id} is not a member of clusterset ${clusterset}`];
  }
  await untilGone(request, namespace);
  await removeViewsOfNobody(client, clusterset);
  return [`cluster ${id} has been removed from clusterset ${clusterset}`];
}

async function findNamespace({ client, clusterset, id }: RemoveRequest): Promise<string> {
  const cluster = await getOrUndefined<Cluster>(client, clusterType, { namespace: clusterset, name: id });
  const name = cluster?.spec.namespace ?? memberNamespace(clusterset, id);
  const namespace = await getOrUndefined<Namespace>(client, namespaceType, { name });
  const { labels, annotations } = namespace?.metadata ?? {};
  const isItsOwn = labels?.[clusterSetLabel] === clusterset && annotations?.[clusterIdAnnotation] === id;
  if (namespace === undefined || isItsOwn) return name;
  // A Cluster object written by hand may name any namespace; only one made for this cluster is taken away with it.
  throw refusedError(
    `cluster ${id}: namespace ${name} was not made for it; remove Cluster ${clusterset}/${id} by hand`,
  );
}

// As every member judges it: by whether the lease changes while we look. Times written by another clock say nothing.
async function refuseAlive(request: RemoveRequest, namespace: string): Promise<void> {
  const { client, deps, id, isForced, onWait } = request;
  if (isForced) return;
  const read = () => readHeartbeat(client, namespace);
  const before = await read();
  if (before?.spec?.renewTime === undefined) return;
  const watchMs = (before.spec.leaseDurationSeconds ?? clusterSetDefaults.lease.durationSeconds) * 1000;
  onWait?.(`looking for ${watchMs / 1000} s whether cluster ${id} still renews its lease; --force does not look`);
  const endMs = deps.world.clock.monotonicMs() + watchMs;
  while (deps.world.clock.monotonicMs() < endMs) {
    await sleep(deps.world.timers, Math.min(leaseLookMs, watchMs));
    const now = await read();
    if (now === undefined || now.metadata.resourceVersion === before.metadata.resourceVersion) continue;
    throw refusedError(`cluster ${id} has just renewed its lease: run portolan leave there, or give --force`);
  }
}

const leaseLookMs = 500;

const looksMax = 300;
const lookMs = 100;

async function untilGone({ client, deps }: RemoveRequest, name: string): Promise<void> {
  for (let look = 0; look < looksMax; look += 1) {
    if ((await getOrUndefined(client, namespaceType, { name })) === undefined) return;
    await sleep(deps.world.timers, lookMs);
  }
  throw new Error(`namespace ${name}: still being deleted at the broker; look what holds it`);
}

/** Members clear the merged view away; without members this does. */
async function removeViewsOfNobody(client: Client, clusterset: string): Promise<void> {
  if ((await client.list(clusterType, { namespace: clusterset })).items.length > 0) return;
  await removeViews(client, clusterset);
}

export async function removeViews(client: Client, clusterset: string): Promise<void> {
  const { items } = await client.list<ServiceImport>(serviceImportType, { namespace: clusterset });
  for (const { metadata } of items.filter(isOurs)) {
    const { namespace, name } = metadata;
    await deleteIfPresent(client, serviceImportType, { namespace, name });
  }
}
