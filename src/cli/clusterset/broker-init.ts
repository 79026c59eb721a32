// `portolan broker init`: lays a clusterset out on any home. Doing it again changes what its flags say and nothing else.

import { type Command, Option } from 'commander';
import { parse, stringify } from 'yaml';
import type { Host } from '../../base/host.ts';
import { parseRange } from '../../base/net/ip.ts';
import {
  areServicesPublished,
  memberRanges,
  readMembers,
  virtualRanges,
} from '../../clusterset/explain/broker-state.ts';
import { type ClusterProfile, clusterProfileType } from '../../clusterset/kinds/cluster-profile.ts';
import { type ClusterSet, type ClusterSetSpec, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { brokerObjects, memberQuotaObject, memberRightsObjects } from '../../clusterset/membership/broker-objects.ts';
import {
  clusterIdAnnotation,
  clusterIdProblem,
  clusterSetLabel,
  clusterSetNameProblem,
  membersNamespace,
} from '../../clusterset/rules/broker-layout.ts';
import { isProfileOf } from '../../clusterset/rules/inventory/profile.ts';
import {
  clusterSetProblems,
  clusterSetWarnings,
  findOverlaps,
  type NamedRange,
} from '../../clusterset/rules/range-overlap.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { defaultServiceRanges } from '../../kube/objects/service.ts';
import { installDefinitions } from '../definitions.ts';
import { refusedError, usageError } from '../exit-codes.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import {
  addHomeOptions,
  brokerDefinitions,
  type ClusterSetDeps,
  defaultClusterSet,
  type HomeFlags,
  withHome,
} from '../with-home.ts';
import { refuseUnknownSources } from './access.ts';

interface InitFlags extends HomeFlags, ClusterSetFlags, WaitFlags {
  readonly clusterset?: string;
  readonly file?: string;
  readonly print?: boolean;
}

export interface ClusterSetFlags {
  readonly compatible?: string;
  readonly ports?: string;
  readonly endpoints?: string;
  readonly clustersetIp?: string;
  readonly staleness?: string;
  readonly locality?: string;
  readonly access?: string;
  readonly sealedExports?: string;
  readonly leaseRenew?: string;
  readonly leaseDuration?: string;
  readonly clustersetRange?: string[];
  readonly peersRange?: string[];
  readonly externalRange?: string[];
  readonly zone?: string;
  readonly ttl?: string;
  readonly clusterNames?: string;
  readonly legacyNamespace?: string;
  readonly inventoryWriter?: string[];
}

export function addBrokerInitCommand(broker: Command, deps: ClusterSetDeps): void {
  const command = broker
    .command('init')
    .description('create a clusterset on this home, or change its settings')
    .option('--clusterset <name>', `its name, and that of its namespace (default: ${defaultClusterSet})`)
    .option('--file <file>', 'a ClusterSet in YAML as a base for the other options')
    .option('--print', 'print the manifests for kubectl apply instead of writing them')
    .addOption(
      new Option(
        '--compatible <with>',
        'behave like another implementation; other options change single settings of it',
      ).choices(Object.keys(compatible)),
    )
    .option('--ports <policy>', 'union or intersection of the ports that clusters export')
    .option('--endpoints <mode>', 'Pods, or ClusterIP if other clusters cannot reach pods')
    .option(
      '--clusterset-ip <mode>',
      'allocate, derived (from Services of each cluster), or none: DNS answers with endpoints',
    )
    .option('--staleness <policy>', 'policy for clusters with an expired lease: Withdraw, NotReady or Keep')
    .option('--locality <policy>', 'which ready endpoints are used: Spread (all) or NearestFirst')
    .option('--access <mode>', 'which calls between clusters pass: Open (all), Audit (all, counted) or Exported')
    .option('--sealed-exports <policy>', 'whether members may seal exports for those they are for: Allowed or Refused')
    .option('--lease-renew <seconds>', 'time between renewals of a lease')
    .option('--lease-duration <seconds>', 'time without a renewal until a lease expires')
    .option('--clusterset-range <cidr...>', 'ranges of clusterset IPs, one per family')
    .option('--peers-range <cidr...>', "ranges of addresses of peers' services")
    .option('--external-range <cidr...>', 'ranges of addresses of external services')
    .option('--zone <name>', 'the DNS zone of the clusterset')
    .option('--ttl <seconds>', 'TTL of DNS answers')
    .option('--cluster-names <mode>', 'Hidden, or Served: <cluster>.<service>.<namespace>.svc.<zone> is answered')
    .option('--legacy-namespace <name>', 'namespace of imports by older agents, one per cluster')
    .option(
      '--inventory-writer <id...>',
      'members trusted to keep a ClusterProfile for each member, the first that lives; none: no more profiles',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan broker init --clusterset prod
  portolan broker init --clusterset prod --ports intersection --clusterset-range 243.0.0.0/16
  portolan broker init --clusterset prod --compatible lighthouse
  portolan broker init --clusterset prod --print | kubectl apply -f -`,
    );
  addWaitOptions(addHomeOptions(command), 'the broker serves the clusterset').action(async (flags: InitFlags) => {
    const request = await readRequest(deps.host, flags);
    if (flags.print) {
      refuseProblems(request.clusterset, clusterSetProblems(request.spec));
      return deps.print(formatManifests(request));
    }
    await withHome(deps, flags, async ({ client }) => {
      for (const line of await brokerInit({ client, deps, ...request })) deps.print(line);
      await waitIfAsked(deps, flags, {
        what: `broker init ${request.clusterset}`,
        look: () => lookServed(client, request.clusterset),
      });
    });
  });
}

async function lookServed(client: Client, name: string): Promise<Look> {
  const found = await getOrUndefined<ClusterSet>(client, clusterSetType, { namespace: name, name });
  return found ? { done: `clusterset ${name} is served` } : { waiting: `clusterset ${name} is not served yet` };
}

interface InitRequest {
  readonly clusterset: string;
  readonly spec: ClusterSetSpec;
}

async function readRequest(host: Host, flags: InitFlags): Promise<InitRequest> {
  const file = flags.file === undefined ? undefined : await readFile(host, flags.file);
  const clusterset = flags.clusterset ?? file?.metadata?.name ?? defaultClusterSet;
  const problem = clusterSetNameProblem(clusterset);
  if (problem !== undefined) throw usageError(`--clusterset ${JSON.stringify(clusterset)}: ${problem}`);
  return { clusterset, spec: { ...file?.spec, ...clusterSetSpec(flags) } };
}

async function readFile(host: Host, path: string): Promise<Partial<ClusterSet>> {
  const text = await host.readText(path);
  if (text === undefined) throw usageError(`--file ${path}: no such file`);
  const object = parse(text) as Partial<ClusterSet> | null;
  if (object?.kind !== clusterSetType.kind) throw usageError(`--file ${path}: expected one ClusterSet`);
  return object;
}

/** Settings of a clusterset that make it behave like another implementation: docs/guides/lighthouse.md. */
const compatible: Readonly<Record<string, ClusterSetFlags>> = {
  lighthouse: { ports: 'intersection', endpoints: 'ClusterIP', clustersetIp: 'none', clusterNames: 'Served' },
};

/** Only the given flags: other fields stay as they are, or as the definition has it. */
export function clusterSetSpec(given: ClusterSetFlags): ClusterSetSpec {
  const flags = { ...compatible[given.compatible ?? ''], ...given };
  const lease = compact({
    renewSeconds: seconds('--lease-renew', flags.leaseRenew),
    durationSeconds: seconds('--lease-duration', flags.leaseDuration),
  });
  const addressRanges = compact({
    clusterSet: ranges('--clusterset-range', flags.clustersetRange),
    peers: ranges('--peers-range', flags.peersRange),
    external: ranges('--external-range', flags.externalRange),
  });
  const dns = compact({ zone: flags.zone, ttlSeconds: seconds('--ttl', flags.ttl), clusterNames: flags.clusterNames });
  return compact({
    ports: flags.ports,
    endpoints: flags.endpoints,
    clusterSetIP: flags.clustersetIp,
    staleness: flags.staleness,
    locality: flags.locality,
    access: flags.access,
    sealing: flags.sealedExports === undefined ? undefined : { exports: flags.sealedExports },
    lease: isEmpty(lease) ? undefined : lease,
    addressRanges: isEmpty(addressRanges) ? undefined : addressRanges,
    dns: isEmpty(dns) ? undefined : dns,
    legacyNamespace: flags.legacyNamespace,
    inventory: flags.inventoryWriter && { writers: writersOf(flags.inventoryWriter) },
  }) as ClusterSetSpec;
}

/** Returns one line per completed step. */
export async function brokerInit(
  request: InitRequest & { readonly client: Client; readonly deps: Pick<ClusterSetDeps, 'host' | 'world'> },
): Promise<string[]> {
  const { client, deps, clusterset } = request;
  const lines: string[] = [];
  await refuseSecondSet(client, clusterset);
  for (const name of [clusterset, membersNamespace(clusterset)]) await refuseForeign(client, clusterset, name);
  for (const name of await installDefinitions({ client, ...deps, names: brokerDefinitions })) {
    lines.push(`made definition ${name}`);
  }
  const spec = await wholeSpec(client, request);
  const writers = spec.inventory?.writers ?? [];
  if (writers.length > 0)
    for (const name of await installDefinitions({ client, ...deps, names: ['clusterprofiles'] }))
      lines.push(`made definition ${name}`);
  const warnings = await refuseNonsense(client, clusterset, spec);
  for (const wanted of brokerObjects({ clusterset, spec })) {
    const { object, outcome } = await install(client, wanted);
    if (outcome === 'unchanged') continue;
    const { namespace, name } = object.metadata;
    lines.push(`${outcome} ${wanted.type.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`);
  }
  if (spec.inventory !== undefined && writers.length === 0) lines.push(...(await removeProfiles(client, clusterset)));
  lines.push(...(await updateMembers(client, clusterset)));
  lines.push(
    lines.length === 0 ? `clusterset ${clusterset} is laid out already` : `clusterset ${clusterset} is laid out`,
    ...warnings,
    `next: portolan broker token CLUSTER_ID${clusterset === defaultClusterSet ? '' : ` --clusterset ${clusterset}`}`,
  );
  return lines;
}

/** Nobody keeps ours any more; those of other cluster managers stay. */
async function removeProfiles(client: Client, clusterset: string): Promise<string[]> {
  const none = { items: [] };
  const { items } = await client
    .list<ClusterProfile>(clusterProfileType, { namespace: clusterset })
    .catch((error: unknown) => (isNotFound(error) ? none : Promise.reject(error)));
  const ours = items.filter((profile) => isProfileOf(profile, clusterset));
  for (const { metadata } of ours) await deleteIfPresent(client, clusterProfileType, metadata);
  return ours.map(({ metadata }) => `removed ClusterProfile ${clusterset}/${metadata.name}`);
}

/** Members that are there get the rights and the quota that the set has now. */
async function updateMembers(client: Client, clusterset: string): Promise<string[]> {
  const { spec } = await client.get<ClusterSet>(clusterSetType, { namespace: clusterset, name: clusterset });
  const lines: string[] = [];
  for (const { id } of await readMembers(client, clusterset)) {
    const request = { clusterset, id, spec: {}, quota: spec?.memberQuota };
    const update = (wanted: Manifest) => install(client, wanted).then((done) => done.outcome, unlessGone);
    const outcome = await update(memberQuotaObject(request));
    if (outcome !== 'unchanged') lines.push(`${outcome} quota of member ${id}`);
    const outcomes = [];
    for (const wanted of memberRightsObjects(request)) outcomes.push(await update(wanted));
    if (outcomes.some((one) => one !== 'unchanged')) lines.push(`updated rights of member ${id}`);
  }
  return lines;
}

/** A member that is just leaving has no namespace any more. */
function unlessGone(error: unknown): 'unchanged' {
  if (isNotFound(error)) return 'unchanged';
  throw error;
}

/** Flags say one thing within a group such as the lease: the others of the group stay. */
async function wholeSpec(client: Client, { clusterset, spec }: InitRequest): Promise<ClusterSetSpec> {
  const present = await getOrUndefined<ClusterSet>(client, clusterSetType, { namespace: clusterset, name: clusterset });
  const before = present?.spec ?? {};
  const group = (name: 'lease' | 'addressRanges' | 'dns') =>
    spec[name] === undefined ? {} : { [name]: { ...before[name], ...spec[name] } };
  // Its rights are made of the whole list.
  const inventory = spec.inventory ?? before.inventory;
  return {
    ...spec,
    ...(inventory ? { inventory } : {}),
    ...group('lease'),
    ...group('addressRanges'),
    ...group('dns'),
  };
}

/** The members of a set read the records in all namespaces of their broker: those of another set must not lie there. */
async function refuseSecondSet(client: Client, clusterset: string): Promise<void> {
  const { items } = await client.list<ClusterSet>(clusterSetType).catch((error: unknown) => {
    // A home without our definitions.
    if (isNotFound(error)) return { items: [] };
    throw error;
  });
  const other = items.find(({ metadata }) => metadata.name !== clusterset)?.metadata.name;
  if (other === undefined) return;
  throw refusedError(
    `clusterset ${clusterset}: this broker serves clusterset ${other}, and a broker serves one; ` +
      'run another broker for it, for example with portolan api',
  );
}

/** A namespace that is there already must have been made for this very set, or have been given to it. */
async function refuseForeign(client: Client, clusterset: string, name: string): Promise<void> {
  const namespace = await getOrUndefined<Namespace>(client, namespaceType, { name });
  if (namespace === undefined) return;
  const { labels, annotations } = namespace.metadata;
  const member = annotations?.[clusterIdAnnotation];
  const holder = labels?.[clusterSetLabel];
  if (holder === clusterset && member === undefined) return;
  const whose =
    holder === undefined ? 'somebody else' : `clusterset ${holder}${member === undefined ? '' : `, member ${member}`}`;
  throw refusedError(
    `clusterset ${clusterset}: namespace ${name} is there already and belongs to ${whose}; choose another name` +
      (holder === undefined ? `, or give it away with the label ${clusterSetLabel}=${clusterset}` : ''),
  );
}

/** Returns warnings. */
async function refuseNonsense(client: Client, clusterset: string, spec: ClusterSetSpec): Promise<string[]> {
  const present = await getOrUndefined<ClusterSet>(client, clusterSetType, { namespace: clusterset, name: clusterset });
  const whole = { ...present?.spec, ...spec };
  const set = { apiVersion: '', kind: '', metadata: { name: clusterset }, spec: whole };
  const members = present === undefined ? [] : await readMembers(client, clusterset);
  refuseProblems(clusterset, clusterSetProblems(whole));
  const overlaps = findOverlaps({
    own: virtualRanges(set),
    others: [...members.flatMap(memberRanges), ...usualRanges],
    areServicesPublished: areServicesPublished(set),
  });
  if (overlaps.length > 0) throw refusedError(`clusterset ${clusterset}: ${overlaps.join('; ')}; give other ranges`);
  return [...clusterSetWarnings(whole), ...refuseUnknownSources(whole.access, members)];
}

function refuseProblems(clusterset: string, problems: readonly string[]): void {
  if (problems.length > 0) throw refusedError(`clusterset ${clusterset}: ${problems.join('; ')}`);
}

const usualRanges: readonly NamedRange[] = defaultServiceRanges.map((cidr) => ({
  cidr,
  whose: 'services of every home that was not told otherwise',
  kind: 'services',
}));

function formatManifests(request: InitRequest): string {
  return brokerObjects(request)
    .map(({ object }) => stringify(object))
    .join('---\n')
    .trimEnd();
}

function seconds(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,6}$/.test(text)) throw usageError(`${flag} ${JSON.stringify(text)}: write a number of seconds`);
  return Number(text);
}

function ranges(flag: string, texts: readonly string[] | undefined): string[] | undefined {
  if (texts === undefined) return undefined;
  return parseRanges(flag, texts);
}

/** Ranges of a repeated flag, which may also hold several separated by commas. */
export function parseRanges(flag: string, texts: readonly string[]): string[] {
  const cidrs = texts.flatMap((text) => text.split(',')).map((text) => text.trim());
  for (const cidr of cidrs) {
    if (!cidr.includes('/') || parseRange(cidr) === undefined) {
      throw usageError(`${flag} ${JSON.stringify(cidr)}: not a range; write one such as 10.1.0.0/16 or fd00:1::/48`);
    }
  }
  return cidrs;
}

function writersOf(texts: readonly string[]): string[] {
  const ids = [...new Set(texts.flatMap((text) => text.split(',')))].filter((id) => id !== 'none');
  for (const id of ids) {
    const problem = clusterIdProblem(id);
    if (problem !== undefined) throw usageError(`--inventory-writer ${JSON.stringify(id)}: ${problem}`);
  }
  return ids;
}

function compact<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function isEmpty(object: object): boolean {
  return Object.keys(object).length === 0;
}
