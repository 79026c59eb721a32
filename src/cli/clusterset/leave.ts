// `portolan leave`: takes this cluster out of its clusterset and removes every trace, first at the broker and then at home.
// Can be repeated: what names the membership goes last.

import type { Command } from 'commander';
import { errorText } from '../../base/log.ts';
import { sleep } from '../../base/world.ts';
import { findMembership, membershipRef, withBroker } from '../../clusterset/explain/consult.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { leavingAnnotation, type MembershipRecord } from '../../clusterset/membership/membership.ts';
import { leaderLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError, isForbidden, isNotFound, isUnauthorized } from '../../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { removeViews } from './broker-remove.ts';
import { cleanHome } from './leave-home.ts';

interface LeaveFlags extends HomeFlags, WaitFlags {
  readonly offline?: boolean;
}

export function addLeaveCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('leave')
    .description(verbs.leave)
    .option('--offline', 'without the broker; its admin then runs: portolan broker remove ID')
    .addHelpText(
      'after',
      `
Keeps your Services, exports and export policies. Deletes imports and all other objects that the clusterset created. A running
agent stops. Example:
  portolan leave --kubeconfig east.kubeconfig`,
    );
  addWaitOptions(addHomeOptions(command), 'no import is left here').action(async (flags: LeaveFlags) => {
    const isOffline = flags.offline === true;
    await withHome(deps, flags, async ({ client }) => {
      for (const line of await leave(deps, { home: client, isOffline })) deps.print(line);
      await waitIfAsked(deps, flags, { what: 'leave', look: () => lookClean(client) });
    });
  });
}

async function lookClean(home: Client): Promise<Look> {
  const { items } = await home.list(serviceImportType, { limit: 1 });
  const [first] = items;
  if (first === undefined) return { done: 'no import is left' };
  return { waiting: `import ${first.metadata.namespace}/${first.metadata.name} is still there` };
}

export interface LeaveRequest {
  readonly home: Client;
  readonly isOffline: boolean;
}

export async function leave(deps: ClusterSetDeps, { home, isOffline }: LeaveRequest): Promise<string[]> {
  const membership = await findMembership(home);
  if (membership === undefined) return ['this cluster is not a member of a clusterset'];
  const lines: string[] = [];
  if (isOffline) {
    await markLeaving(home, true);
    await sleep(deps.world.timers, patienceMs);
    lines.push(`tell the admin of the broker: portolan broker remove ${membership.clusterId}`);
  } else if ((await leaveBroker(deps, { home, membership })) === 'agent silent') {
    lines.push('warning: an agent did not stop in time and was taken for gone; make sure that none is running');
  }
  await cleanHome(home, membership.clusterId);
  await deleteIfPresent(home, secretType, membershipRef);
  lines.push(`this cluster has left clusterset ${membership.clusterset}`);
  return lines;
}

/** Agents rest while the mark is there, and go on when it is taken back. */
async function markLeaving(home: Client, isLeaving: boolean): Promise<void> {
  const annotations = { [leavingAnnotation]: isLeaving ? 'true' : null };
  await home.patch(secretType, membershipRef, { kind: 'merge', body: { metadata: { annotations } } });
}

const lookMs = 200;
/** Beyond what a lease promises, for agents that are slow to see and to stop. */
const patienceMs = 5_000;

/** Agents give up the lease they share when they see that the cluster leaves; one that died leaves it to run out. */
async function untilAgentsRest(deps: ClusterSetDeps, broker: Client, membership: MembershipRecord): Promise<boolean> {
  const { clock, timers } = deps.world;
  const ref = { namespace: membership.accountNamespace, name: leaderLeaseName(membership.clusterId) };
  let seen = '';
  let seenMs = clock.monotonicMs();
  for (;;) {
    const lease = await getOrUndefined<Lease>(broker, leaseType, ref);
    if ((lease?.spec?.holderIdentity ?? '') === '') return true;
    const version = lease?.metadata.resourceVersion ?? '';
    if (version !== seen) seenMs = clock.monotonicMs();
    seen = version;
    const promisedMs = (lease?.spec?.leaseDurationSeconds ?? 15) * 1000;
    if (clock.monotonicMs() - seenMs > promisedMs + patienceMs) return false;
    await sleep(timers, lookMs);
  }
}

interface LeaveFacts {
  readonly home: Client;
  readonly membership: MembershipRecord;
}

async function leaveBroker(deps: ClusterSetDeps, { home, membership }: LeaveFacts): Promise<'left' | 'agent silent'> {
  const { clusterset, clusterId, namespace } = membership;
  let isMarked = false;
  let hasBegun = false;
  try {
    return await withBroker(deps.world, membership, async (broker) => {
      // A broker that does not answer is found out before anything changes.
      await getOrUndefined(broker, clusterType, { namespace: clusterset, name: clusterId });
      await markLeaving(home, true);
      isMarked = true;
      const areResting = await untilAgentsRest(deps, broker, membership);
      const { items } = await broker.list(clusterType, { namespace: clusterset });
      hasBegun = true;
      // The others clear the merged view of what only we exported; the last one clears it all.
      if (items.every(({ metadata }) => metadata.name === clusterId)) await removeViews(broker, clusterset);
      await deleteIfPresent(broker, namespaceType, { name: namespace });
      await untilForgotten(deps, broker, namespace);
      return areResting ? 'left' : 'agent silent';
    });
  } catch (error) {
    // Removed from the broker's side before.
    if (isForgotten(error)) return 'left';
    if (isMarked && !hasBegun) await markLeaving(home, false);
    if (error instanceof ApiError) throw error;
    const outcome = hasBegun ? 'it may have left in part: run portolan leave again' : 'this cluster is still a member';
    throw new Error(
      `the broker ${membership.server} cannot be reached (${errorText(error)}), so ${outcome}; try again, or give --offline`,
      { cause: error },
    );
  }
}

const forgottenLooksMax = 300;
const forgottenLookMs = 100;

/** With the namespace go the account and its rights: being refused is the sign that all is gone. */
async function untilForgotten(deps: ClusterSetDeps, broker: Client, namespace: string): Promise<void> {
  for (let look = 0; look < forgottenLooksMax; look += 1) {
    try {
      await broker.get(namespaceType, { name: namespace });
    } catch (error) {
      if (isUnauthorized(error)) return;
      if (!isNotFound(error) && !isForbidden(error)) throw error;
    }
    await sleep(deps.world.timers, forgottenLookMs);
  }
  throw new Error(
    `the broker deletes namespace ${namespace} and still knows this cluster's account; run portolan leave again, or have the admin remove the cluster`,
  );
}

function isForgotten(error: unknown): boolean {
  return isUnauthorized(error) || isForbidden(error);
}
