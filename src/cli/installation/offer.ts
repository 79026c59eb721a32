// Installation as part of `portolan join`: installs the parts on request, and prints the next step otherwise.

import { deploymentType } from '../../install/workload.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isEmbedded } from '../../kube/client/discovery.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { usageError } from '../exit-codes.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { allDefinitions } from '../with-home.ts';
import { checkBefore } from './before.ts';
import { type InstallationPlan, planInstallation } from './plan.ts';
import type { ValueFlags } from './read-values.ts';

interface Offer {
  readonly flags: ValueFlags & { readonly install?: boolean };
  readonly clusterId: string;
}

/** The installation to make after joining; undefined without --install. Throws with what stands in the way. */
export async function checkInstallation(
  deps: ClusterSetDeps,
  client: Client,
  { flags, clusterId }: Offer,
): Promise<InstallationPlan | undefined> {
  if (!flags.install) {
    if (flags.set.length > 0 || flags.values !== undefined)
      throw usageError('--set and --values are for the parts; give --install too');
    return undefined;
  }
  const plan = await planInstallation(deps, client, { flags, clusterId });
  const objects = [...plan.objects, plan.record];
  await checkBefore(deps, client, { ...plan, objects, definitions: allDefinitions });
  return plan;
}

export async function nextStep(client: Client): Promise<string> {
  if (await isEmbedded(client).catch(() => true)) return 'next: portolan agent, unless one is running';
  const agent = { namespace: systemNamespace, name: 'portolan-agent' };
  // A user who may join need not be allowed to read Deployments.
  const isInstalled = (await getOrUndefined(client, deploymentType, agent).catch(() => undefined)) !== undefined;
  return isInstalled
    ? 'next: portolan status'
    : 'next: portolan install runs the parts in this cluster; portolan join --install does both';
}
