// `portolan broker accept`: takes over into a member's Cluster object what the member said of itself when it joined. The
// admin alone writes Cluster objects, so it is the admin's word that a cluster is where it says and has what it says.

import type { Command } from 'commander';
import { readMembers } from '../../clusterset/explain/broker-state.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, defaultClusterSet, type HomeFlags, withHome } from '../with-home.ts';

interface AcceptFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  readonly ranges?: boolean;
}

export function addBrokerAcceptCommand(broker: Command, deps: ClusterSetDeps): void {
  const command = broker
    .command('accept')
    .description('approve the region and zone that a member reported')
    .argument('<cluster-id>', 'a cluster that has joined')
    .option('--clusterset <name>', 'the set it is a member of', defaultClusterSet)
    .option('--ranges', 'also approve its ranges, and limit its endpoints to them');
  addWaitOptions(addHomeOptions(command), 'the broker has it').action(async (id: string, flags: AcceptFlags) => {
    const request = { id, clusterset: flags.clusterset, withRanges: flags.ranges === true };
    await withHome(deps, flags, async ({ client }) => {
      deps.print(await brokerAccept({ client, ...request }));
      await waitIfAsked(deps, flags, { what: `broker accept ${id}`, look: () => lookAccepted(client, request) });
    });
  });
}

async function lookAccepted(
  client: Client,
  { id, clusterset }: { readonly id: string; readonly clusterset: string },
): Promise<Look> {
  const member = (await readMembers(client, clusterset)).find((one) => one.id === id);
  const { region, zone } = member?.cluster.spec ?? {};
  const isSame = (region ?? '') === (member?.record?.region ?? '') && (zone ?? '') === (member?.record?.zone ?? '');
  return isSame ? { done: `cluster ${id} is as it reported` } : { waiting: `cluster ${id} has another region or zone` };
}

async function brokerAccept(request: {
  readonly client: Client;
  readonly clusterset: string;
  readonly id: string;
  readonly withRanges: boolean;
}): Promise<string> {
  const { client, clusterset, id, withRanges } = request;
  const members = await readMembers(client, clusterset);
  const member = members.find((one) => one.id === id);
  if (member?.record === undefined) {
    const known = members.map((one) => one.id).join(', ') || 'none';
    throw new Error(`cluster ${id} has not joined clusterset ${clusterset}; known: ${known}`);
  }
  const { region, zone, podRanges, serviceRanges } = member.record;
  const spec = {
    ...member.cluster.spec,
    ...(region === '' ? {} : { region }),
    ...(zone === '' ? {} : { zone }),
    ...(withRanges ? { allowedRanges: [...podRanges, ...serviceRanges] } : {}),
  };
  const wanted = manifest(clusterType, { name: id, namespace: clusterset }, { spec });
  const { object, outcome } = await install<Cluster>(client, wanted);
  const { region: r = '-', zone: z = '-', allowedRanges = [] } = object.spec;
  return `cluster ${id}: region ${r}, zone ${z}, ranges ${allowedRanges.join(', ') || 'any'} (${outcome})`;
}
