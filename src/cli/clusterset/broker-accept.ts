// `portolan broker accept`: takes over into a member's Cluster object what the member said of itself when it joined. The
// admin alone writes Cluster objects, so it is the admin's word that a cluster is where it says and has what it says.

import type { Command } from 'commander';
import { readMembers } from '../../clusterset/explain/broker-state.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { addHomeOptions, type ClusterSetDeps, defaultClusterSet, type HomeFlags, withHome } from '../with-home.ts';

interface AcceptFlags extends HomeFlags {
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
  addHomeOptions(command).action(async (id: string, flags: AcceptFlags) => {
    const request = { id, clusterset: flags.clusterset, withRanges: flags.ranges === true };
    deps.print(await withHome(deps, flags, ({ client }) => brokerAccept({ client, ...request })));
  });
}

export async function brokerAccept(request: {
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
