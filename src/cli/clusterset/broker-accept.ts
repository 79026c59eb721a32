// `portolan broker accept`: takes over into a member's Cluster object what the member said of itself when it joined. The
// admin alone writes Cluster objects, so it is the admin's word that a cluster is where it says and has what it says.

import type { Command } from 'commander';
import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { type KnownMember, readClusterSet, readMembers } from '../../clusterset/explain/broker-state.ts';
import { type Cluster, type ClusterSpec, clusterType } from '../../clusterset/kinds/cluster.ts';
import { endpointShardType } from '../../clusterset/kinds/endpoint-shard.ts';
import { type ServiceShard, serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { refusal } from '../../clusterset/rules/endpoint-address.ts';
import { fingerprintOf, readPublicKey } from '../../clusterset/rules/sealing/trusted-keys.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { notFoundError, refusedError } from '../exit-codes.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, defaultClusterSet, type HomeFlags, withHome } from '../with-home.ts';
import { refuseSourceOverlap, sourceLines, sourceRangesFor } from './access.ts';
import { parseRanges } from './broker-init.ts';
import { gatewayLines, networkFor, networkSpec } from './networks.ts';

interface AcceptFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  /** True: in place of the present ones; false: not at all. */
  readonly ranges?: boolean;
  readonly allowedRange?: string[];
  readonly network?: string;
  readonly gatewayRange?: string[];
  readonly sourceRange?: string[];
  readonly sealingKey?: string;
}

interface AcceptRequest {
  readonly clusterset: string;
  readonly id: string;
  readonly ranges: 'if none' | 'replace' | 'leave';
  readonly further: readonly string[];
  /** The ranges its packets come from, in place of those it has or reported. */
  readonly sourceRanges?: readonly string[];
  /** Fingerprint of the key it may seal with, in place of the one that was confirmed. */
  readonly sealingKey?: string | undefined;
  /** In place of what the member reported. */
  readonly network?: Pick<ClusterSpec, 'network' | 'gatewayRanges'>;
}

const shownMax = 5;

export function addBrokerAcceptCommand(broker: Command, deps: ClusterSetDeps): void {
  const command = broker
    .command('accept')
    .description('approve the region, zone, network, gateways and ranges that a member reported')
    .argument('<cluster-id>', 'a cluster that has joined')
    .option('--clusterset <name>', 'the set it is a member of', defaultClusterSet)
    .option('--ranges', 'approve its ranges also in place of those it has, and whatever it has published')
    .option('--no-ranges', 'leave the ranges of its endpoints as they are')
    .option('--allowed-range <cidr...>', 'further ranges of the cluster, such as those of its load balancers')
    .option('--network <name>', 'network of the cluster, in place of the one it reported')
    .option(
      '--gateway-range <cidr...>',
      'addresses that its gateways may have (default: those it reported, if it has none yet)',
    )
    .option(
      '--source-range <cidr...>',
      'addresses that its packets have in other clusters (default: those it reported, if it has none yet)',
    );
  command.option(
    '--sealing-key <fingerprint>',
    'confirm this key for sealed exports (default: the one it reported, if none is confirmed yet)',
  );
  addWaitOptions(addHomeOptions(command), 'the broker has it').action(async (id: string, flags: AcceptFlags) => {
    const ranges = flags.ranges === undefined ? 'if none' : flags.ranges ? 'replace' : 'leave';
    const further = parseRanges('--allowed-range', flags.allowedRange ?? []);
    const request: AcceptRequest = {
      ...{
        id,
        clusterset: flags.clusterset,
        ranges,
        further,
        network: networkSpec(flags),
        sealingKey: flags.sealingKey,
      },
      ...(flags.sourceRange === undefined ? {} : { sourceRanges: parseRanges('--source-range', flags.sourceRange) }),
    };
    await withHome(deps, flags, async ({ client }) => {
      for (const line of await brokerAccept(client, request)) deps.print(line);
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

async function brokerAccept(client: Client, request: AcceptRequest): Promise<string[]> {
  const { clusterset, id } = request;
  const { sealing } = readSetPolicy(await readClusterSet(client, clusterset));
  const members = await readMembers(client, clusterset);
  const member = members.find((one) => one.id === id);
  if (member?.record === undefined) {
    const known = members.map((one) => one.id).join(', ') || 'none';
    throw notFoundError(`cluster ${id} has not joined clusterset ${clusterset}; known: ${known}`);
  }
  const { region, zone } = member.record;
  const { allowedRanges, note } = rangesFor(member, request);
  // Further ranges beside those that it has take nothing away.
  const isNew = (member.cluster.spec.allowedRanges ?? []).length === 0 && request.ranges !== 'replace';
  if (allowedRanges !== undefined && isNew) await refuseOutside(client, member, allowedRanges);
  const network = await networkFor(client, { clusterset, member, members, given: request.network ?? {} });
  const spec = {
    ...member.cluster.spec,
    ...(region === '' ? {} : { region }),
    ...(zone === '' ? {} : { zone }),
    ...(allowedRanges === undefined ? {} : { allowedRanges }),
    ...network,
    ...sourceRangesFor(member, request.sourceRanges),
    ...sealingKeyFor(member, request.sealingKey),
  };
  const others = members.filter((one) => one !== member).map(({ cluster }) => cluster);
  refuseSourceOverlap(id, { spec, others });
  const wanted = manifest(clusterType, { name: id, namespace: clusterset }, { spec });
  const { object, outcome } = await install<Cluster>(client, wanted);
  const { region: r = '-', zone: z = '-', allowedRanges: now = [] } = object.spec;
  const line = `cluster ${id}: region ${r}, zone ${z}, ranges ${now.join(', ') || 'any'} (${outcome})`;
  return [
    line,
    ...(note === undefined ? [] : [note]),
    ...gatewayLines(object, members),
    ...sourceLines(object),
    ...(sealing.isAllowed ? sealingLines(member, object) : []),
  ];
}

/** Another key than the confirmed one is confirmed by its fingerprint alone: it may be that of somebody else. */
function sealingKeyFor({ id, cluster }: KnownMember, given: string | undefined): Pick<ClusterSpec, 'sealingKey'> {
  const reported = readPublicKey(cluster.status?.sealingKey);
  const fingerprint = reported && fingerprintOf(reported);
  if (given !== undefined && given !== fingerprint)
    throw refusedError(`cluster ${id} reports the key ${fingerprint ?? 'none'}, not ${given}: compare them again`);
  if (given === undefined && cluster.spec.sealingKey !== undefined) return {};
  return fingerprint === undefined ? {} : { sealingKey: fingerprint };
}

function sealingLines({ id, cluster }: KnownMember, { spec }: Cluster): string[] {
  const reported = readPublicKey(cluster.status?.sealingKey);
  if (reported === undefined)
    return [`cluster ${id} has reported no key for sealed exports yet: give this command again when its agent runs`];
  const fingerprint = fingerprintOf(reported);
  if (spec.sealingKey === fingerprint)
    return [`key ${fingerprint}: must be the one that portolan sealing show prints in ${id}`];
  return [
    `cluster ${id} reports another key than the confirmed one: ${fingerprint}; compare it with portolan sealing show in ${id}, then give --sealing-key`,
  ];
}

/** The ranges to write, if any, and a word on those that are not written. */
function rangesFor(
  { cluster, record }: KnownMember,
  { id, ranges, further }: AcceptRequest,
): { readonly allowedRanges?: string[]; readonly note?: string } {
  const present = cluster.spec.allowedRanges ?? [];
  const reported = [...(record?.podRanges ?? []), ...(record?.serviceRanges ?? [])];
  const joined = (...lists: (readonly string[])[]) => [...new Set(lists.flat())];
  // Other clusters see its addresses translated, of which the member reported nothing.
  const isTranslated = (cluster.spec.translations ?? []).length > 0;
  const isTaken = ranges === 'replace' || (ranges === 'if none' && present.length === 0 && !isTranslated);
  if (isTaken && reported.length > 0) return { allowedRanges: joined(reported, further) };
  if (further.length > 0) return { allowedRanges: joined(present, further) };
  if (ranges === 'leave') return {};
  if (reported.length === 0 && present.length === 0)
    return {
      note: `cluster ${id} reported no ranges: give them with --allowed-range, else its endpoints may lie anywhere`,
    };
  if (isTranslated && present.length === 0)
    return { note: `cluster ${id} has translated addresses: give its ranges as others see them, with --allowed-range` };
  const isOther = reported.some((range) => !present.includes(range));
  return isOther ? { note: `cluster ${id} reported ${reported.join(', ')}; --ranges puts them in place of these` } : {};
}

/** A range that was found at a home may be too narrow: addresses in use must not go by a command that nobody meant so. */
async function refuseOutside(client: Client, { id, cluster }: KnownMember, ranges: readonly string[]): Promise<void> {
  const allowedRanges = ranges.map(parseRange).filter((range): range is IpRange => range !== undefined);
  const { namespace } = cluster.spec;
  const outside = new Set<string>();
  const look = (address: string, name: string) => {
    const isFine = (rules: readonly IpRange[]) =>
      refusal(address, { virtualRanges: [], allowedRanges: rules }) === undefined;
    if (isFine([]) && !isFine(allowedRanges)) outside.add(`${address} (${name})`);
  };
  for (const type of [endpointShardType, endpointSliceType]) {
    const { items } = await client.list<EndpointSlice>(type, { namespace });
    for (const { metadata, endpoints } of items)
      for (const { addresses } of endpoints ?? []) for (const address of addresses ?? []) look(address, metadata.name);
  }
  const { items } = await client.list<ServiceShard>(serviceShardType, { namespace });
  for (const { metadata, spec } of items) {
    for (const address of spec?.clusterIPs ?? []) look(address, metadata.name);
    for (const { ip } of spec?.loadBalancer ?? []) if (ip !== undefined) look(ip, metadata.name);
  }
  if (outside.size === 0) return;
  const shown = [...outside].slice(0, shownMax).join(', ');
  const more = outside.size > shownMax ? ` and ${outside.size - shownMax} more` : '';
  throw refusedError(
    `cluster ${id} has published addresses outside ${ranges.join(', ')}: ${shown}${more}; add their ranges with --allowed-range, confirm with --ranges all the same, or leave the ranges with --no-ranges`,
  );
}
