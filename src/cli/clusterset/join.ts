// `portolan join`: makes a cluster a member of a clusterset. Everything that can be refused is looked at before anything is
// written; then the id is taken at the broker, the join token is exchanged for one that the agent renews, and the
// membership is kept at home.

import type { Command } from 'commander';
import { createHpke } from '../../base/real/hpke.ts';
import {
  areServicesPublished,
  type KnownMember,
  knownRanges,
  readClusterSet,
  readHeartbeat,
  readMembers,
  readRecord,
} from '../../clusterset/explain/broker-state.ts';
import { brokerClient, findMembership, requireMembership, withBroker } from '../../clusterset/explain/consult.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
  clusterSetProperty,
} from '../../clusterset/kinds/cluster-property.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { type JoinToken, parseJoinToken } from '../../clusterset/membership/join-token.ts';
import { type MemberRecord, memberRecord, readMemberRecord } from '../../clusterset/membership/member-record.ts';
import { clusterProperties, membershipSecret } from '../../clusterset/membership/membership.ts';
import { resolverAuthorityName, resolverAuthoritySecret } from '../../clusterset/membership/resolver-authority.ts';
import { readSealingSecret, sealingSecret } from '../../clusterset/membership/sealing-secret.ts';
import { clusterIdProblem, joinSecretName, membersNamespace } from '../../clusterset/rules/broker-layout.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import { findOutside, findOverlaps, type NamedRange } from '../../clusterset/rules/range-overlap.ts';
import { fingerprintOf } from '../../clusterset/rules/sealing/trusted-keys.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import { requestToken } from '../../kube/client/account-token.ts';
import { apply, install } from '../../kube/client/apply.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { openKeptAuthority } from '../../kube/client/kept-authority.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { isUnauthorized } from '../../kube/objects/api-error.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { ConfigMap } from '../../kube/objects/config-map.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { externalNamespace, sealingNamespace, systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { installDefinitions, refuseForeignDefinitions } from '../definitions.ts';
import { refusedError, usageError } from '../exit-codes.ts';
import { joinTokenIn, readToken } from '../given-token.ts';
import { addValueOptions, installParts } from '../installation/install.ts';
import { checkInstallation, nextStep } from '../installation/offer.ts';
import type { ValueFlags } from '../installation/read-values.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import {
  addHomeOptions,
  type ClusterSetDeps,
  defaultClusterSet,
  type HomeFlags,
  homeDefinitions,
  withHome,
} from '../with-home.ts';
import { keepPodRanges } from './access.ts';
import { parseRanges } from './broker-init.ts';
import { brokerToken } from './broker-token.ts';
import {
  checkedGateways,
  keepGateways,
  networkLines,
  networkSpec,
  overlapAdvice,
  refuseOtherNetwork,
} from './networks.ts';
import { findNodeAddresses, findPodRanges, findServiceRanges } from './own-ranges.ts';
import { untilQuotaCounted } from './quota-counted.ts';

export interface JoinFlags extends HomeFlags, ValueFlags, WaitFlags {
  readonly install?: boolean;
  readonly clusterId?: string;
  readonly tokenFile?: string;
  readonly region?: string;
  readonly zone?: string;
  readonly network?: string;
  readonly gateway?: string[];
  readonly podCidr?: string[];
  readonly serviceCidr?: string[];
  readonly sourceRange?: string[];
  readonly brokerKubeconfig?: string;
  readonly clusterset: string;
  readonly tokenHours: string;
}

export function addJoinCommand(program: Command, deps: ClusterSetDeps): void {
  const command = addValueOptions(program.command('join').description(verbs.join))
    .argument('[token]', 'the output of portolan broker token for this cluster; - reads standard input')
    .option('--token-file <file>', 'read the token from this file; - is standard input')
    .option('--cluster-id <id>', 'NAME or NAME.CONTEXT; must match the token')
    .option('--region <name>', 'region of this cluster')
    .option('--zone <name>', 'zone of this cluster')
    .option('--network <name>', 'network of this cluster: clusters of other networks reach it through its gateways')
    .option(
      '--gateway <address:port...>',
      'where other networks reach its gateways (default: those of its LoadBalancer Service)',
    )
    .option(
      '--pod-cidr <cidr...>',
      'ranges of its pods, which may not overlap with other clusters (default: those of its nodes)',
    )
    .option('--service-cidr <cidr...>', 'ranges of its services (default: those of its API server)')
    .option(
      '--source-range <cidr...>',
      'addresses that its packets have in other clusters (default: those of its pods and nodes)',
    )
    .option('--broker-kubeconfig <file>', 'kubeconfig of an admin of the broker, instead of a token')
    .option('--clusterset <name>', 'with --broker-kubeconfig: the set to join', defaultClusterSet)
    .option(
      '--install',
      'on a Kubernetes: also install the parts, as portolan install does; --set and --values are its own',
    )
    .option('--token-hours <number>', 'validity of the credentials at the broker without renewal', '168')
    .addHelpText(
      'after',
      `
Examples:
  portolan join "$TOKEN" --pod-cidr 10.1.0.0/16 --service-cidr 10.96.0.0/16
  portolan join "$TOKEN" --cluster-id east --region eu-west --zone a
  portolan join - < token
  portolan join "$TOKEN" --install --set dns.clusterIP=10.96.0.20
  portolan join --broker-kubeconfig broker.kubeconfig --clusterset prod --cluster-id east

To change the id, leave and join again. After joining, run portolan agent, or on a Kubernetes portolan install.`,
    );
  addWaitOptions(addHomeOptions(command), 'an agent renews the lease of this cluster at the broker').action(
    async (text: string | undefined, flags: JoinFlags) => {
      await withHome(deps, flags, async ({ client }) => {
        const request = await requestOf(deps, client, text, flags);
        const { clusterId } = request.token;
        const plan = await checkInstallation(deps, client, { flags, clusterId });
        for (const line of await join(deps, request)) deps.print(line);
        if (plan !== undefined) await installParts(deps, client, plan);
        await untilAccepted(deps, client);
        deps.print(await nextStep(client));
        await waitIfAsked(deps, flags, { what: `join as ${clusterId}`, look: () => lookAlive(deps, client) });
      });
    },
  );
}

/** Until the broker takes what this cluster exports. */
async function untilAccepted(deps: ClusterSetDeps, home: Client): Promise<void> {
  const membership = await requireMembership(home);
  const { clusterId, namespace } = membership;
  const isCounted = await withBroker(deps.world, membership, (client) =>
    untilQuotaCounted(deps, { client, clusterId, namespace }),
  );
  if (!isCounted) deps.print('note: the broker refuses exports of this cluster until it has counted its quota');
}

/** The lease of the member, which its agent renews. */
async function lookAlive(deps: ClusterSetDeps, home: Client): Promise<Look> {
  const membership = await requireMembership(home);
  const heartbeat = await withBroker(deps.world, membership, (broker) => readHeartbeat(broker, membership.namespace));
  if (heartbeat !== undefined) return { done: `the agent of cluster ${membership.clusterId} works` };
  return { waiting: `no agent of cluster ${membership.clusterId} has renewed its lease; run portolan agent` };
}

export interface JoinRequest {
  readonly home: Client;
  readonly token: JoinToken;
  readonly claims: Omit<MemberRecord, 'homeUid' | 'joinedAt'>;
  readonly lifetimeMs: number;
  /** Where other networks reach its gateways, as given; those of an earlier join stay if absent. */
  readonly gateways?: string;
  /** Which of the claims were found at home, not given. */
  readonly found?: { readonly arePods: boolean; readonly areServices: boolean };
}

async function requestOf(
  deps: ClusterSetDeps,
  home: Client,
  text: string | undefined,
  flags: JoinFlags,
): Promise<JoinRequest> {
  if (!/^\d{1,5}$/.test(flags.tokenHours) || Number(flags.tokenHours) < 1) {
    throw usageError(`--token-hours ${JSON.stringify(flags.tokenHours)}: write a number of hours, 1 or more`);
  }
  const given = await readToken(deps.host, { argument: text, file: flags.tokenFile });
  const token = given === undefined ? await tokenAsAdmin(deps, home, flags) : joinTokenIn(given);
  if (flags.clusterId !== undefined && flags.clusterId !== token.clusterId) {
    throw usageError(
      `--cluster-id ${flags.clusterId}: the join token was made for ${token.clusterId}; ask for one with portolan broker token ${flags.clusterId}`,
    );
  }
  const podRanges = flags.podCidr === undefined ? await findPodRanges(home) : parseRanges('--pod-cidr', flags.podCidr);
  return {
    home,
    token,
    claims: {
      region: flags.region ?? '',
      zone: flags.zone ?? '',
      ...networkSpec({ network: flags.network }),
      podRanges,
      sourceRanges:
        flags.sourceRange === undefined
          ? [...new Set([...podRanges, ...(await findNodeAddresses(home))])]
          : parseRanges('--source-range', flags.sourceRange),
      serviceRanges:
        flags.serviceCidr === undefined
          ? await findServiceRanges(home)
          : parseRanges('--service-cidr', flags.serviceCidr),
    },
    lifetimeMs: Number(flags.tokenHours) * 3_600_000,
    ...(flags.gateway === undefined ? {} : { gateways: checkedGateways(flags.gateway) }),
    found: { arePods: flags.podCidr === undefined, areServices: flags.serviceCidr === undefined },
  };
}

async function tokenAsAdmin(deps: ClusterSetDeps, home: Client, flags: JoinFlags): Promise<JoinToken> {
  const { brokerKubeconfig, clusterId: id, clusterset, region, zone } = flags;
  if (brokerKubeconfig === undefined)
    throw usageError('give the join token, or --broker-kubeconfig as admin of the broker');
  if (id === undefined) throw usageError('--cluster-id: needed with --broker-kubeconfig');
  const problem = clusterIdProblem(id);
  if (problem !== undefined) throw usageError(`--cluster-id ${JSON.stringify(id)}: ${problem}`);
  await refuseAtHome(home, { clusterset, clusterId: id });
  const access = await findHome({ host: deps.host, clock: deps.world.clock, kubeconfig: brokerKubeconfig });
  const client = createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' });
  try {
    const spec = { region, zone, ...networkSpec({ network: flags.network }) };
    const isRenewal = (await findMembership(home)) !== undefined;
    const lifetimeMs = 600_000;
    return parseJoinToken(await brokerToken({ client, access, clusterset, id, spec, lifetimeMs, isRenewal }));
  } finally {
    client.close();
  }
}

/** Everything that joining would refuse, without joining; returns what to know, in lines. */
export async function checkJoin(deps: ClusterSetDeps, home: Client, flags: JoinFlags): Promise<string[]> {
  const request = await requestOf(deps, home, undefined, flags);
  const { token } = request;
  await refuseAtHome(home, token);
  const notes = await refuseForeignDefinitions({ client: home, ...deps, names: homeDefinitions });
  const broker = brokerClient(deps.world, token);
  try {
    const lines = await refuseAtBroker(broker, request);
    return [...notes, ...lines, `this cluster can join clusterset ${token.clusterset} as ${token.clusterId}`];
  } catch (error) {
    throw isUnauthorized(error) ? tokenUsed(token, error) : error;
  } finally {
    broker.close();
  }
}

/** Returns one line per completed step. */
export async function join(deps: ClusterSetDeps, request: JoinRequest): Promise<string[]> {
  const { home, token } = request;
  await refuseAtHome(home, token);
  const definitions = { client: home, ...deps, names: homeDefinitions };
  const notes = (await refuseForeignDefinitions(definitions)).map((note) => `note: ${note}`);
  const lines = [...notes, ...(await installDefinitions(definitions)).map((name) => `made definition ${name}`)];
  const broker = brokerClient(deps.world, token);
  try {
    lines.push(...(await refuseAtBroker(broker, request)));
    lines.push(...(await makeSealingKeys(deps, request, broker)));
    await enter(deps, request, broker);
  } catch (error) {
    throw isUnauthorized(error) ? tokenUsed(token, error) : error;
  } finally {
    broker.close();
  }
  return [...lines, `this cluster is ${token.clusterId} in clusterset ${token.clusterset}`];
}

/** Where the set allows sealed exports, so that the admin can confirm the key; else the agent makes them when it does. */
async function makeSealingKeys(deps: ClusterSetDeps, { home, token }: JoinRequest, broker: Client): Promise<string[]> {
  const { clusterset } = token;
  const set = await getOrUndefined<ClusterSet>(broker, clusterSetType, { namespace: clusterset, name: clusterset });
  if (!readSetPolicy(set).sealing.isAllowed) return [];
  await install(home, manifest(namespaceType, { name: sealingNamespace }, {}));
  const made = sealingSecret(await createHpke(deps.world.random).makeKeys());
  const present = await getOrUndefined<Secret>(home, secretType, made.object.metadata);
  const secret = present ?? (await home.create<Secret>(secretType, made.object));
  const keys = readSealingSecret(secret)?.keys;
  return keys === undefined
    ? []
    : [`key for sealed exports: ${fingerprintOf(keys.publicKey)}; compare it with what portolan broker accept prints`];
}

function tokenUsed({ expiresAt, clusterId }: JoinToken, cause: unknown): Error {
  return new Error(
    `the broker does not accept this join token: it was used already or has expired (${expiresAt}); ask for a new one with portolan broker token ${clusterId}`,
    { cause },
  );
}

async function refuseAtHome(home: Client, token: Pick<JoinToken, 'clusterset' | 'clusterId'>): Promise<void> {
  const present = await findMembership(home);
  const isSame = present?.clusterId === token.clusterId && present.clusterset === token.clusterset;
  if (present !== undefined && !isSame) {
    throw refusedError(
      `this cluster is ${present.clusterId} in clusterset ${present.clusterset} and would become ${token.clusterId} in ${token.clusterset}; a changed id is leave and join: run portolan leave first`,
    );
  }
  const wanted = { [clusterIdProperty]: token.clusterId, [clusterSetProperty]: token.clusterset };
  for (const [name, value] of Object.entries(wanted)) {
    const property = await findProperty(home, name);
    if (property === undefined || property.spec.value === value) continue;
    throw refusedError(
      `ClusterProperty ${name} of this cluster says ${property.spec.value}, the join token ${value}; use a token for ${property.spec.value}, or delete the property`,
    );
  }
}

function findProperty(home: Client, name: string): Promise<ClusterProperty | undefined> {
  return getOrUndefined<ClusterProperty>(home, clusterPropertyType, { name });
}

/** Returns one line per check that could not be made. */
async function refuseAtBroker(broker: Client, { home, token, claims, found }: JoinRequest): Promise<string[]> {
  const { clusterset, clusterId: id } = token;
  const set = await readClusterSet(broker, clusterset);
  const cluster = await getOrUndefined<Cluster>(broker, clusterType, { namespace: clusterset, name: id });
  if (cluster === undefined)
    throw refusedError(`cluster ${id} was removed from clusterset ${clusterset}; ask for a new join token`);
  const record = await readRecord(broker, token.namespace);
  if (record !== undefined && record.homeUid !== (await homeUid(home))) {
    throw refusedError(
      `cluster id ${id} is in use by another cluster since ${record.joinedAt}; ask for a token with another id`,
    );
  }
  const own = ownRanges(claims);
  // Service ranges are private unless they are published; explicit ones are checked.
  const areServicesHidden = found?.areServices === true && !areServicesPublished(set);
  const compared = own.filter(({ kind }) => kind !== 'services' || !areServicesHidden);
  const outside = findOutside(compared, cluster.spec.allowedRanges ?? []);
  if (outside.length > 0) {
    const texts = outside.map(({ cidr, whose }) => `${cidr} (${whose})`).join(', ');
    throw refusedError(
      `cluster ${id} may have addresses in ${cluster.spec.allowedRanges?.join(', ')}, not in ${texts}; the admin of the set adds them with portolan broker accept ${id} --allowed-range ${outside.map(({ cidr }) => cidr).join(' ')}`,
    );
  }
  const members = await readMembers(broker, clusterset);
  refuseOtherNetwork(cluster, claims.network);
  const others = knownRanges(set, members, { except: id, network: networkOf(cluster) });
  const problems = findOverlaps({ own, others, areServicesPublished: areServicesPublished(set) });
  if (problems.length > 0) {
    const advice = overlapAdvice(cluster, claims.network);
    throw refusedError(`cluster ${id} cannot join clusterset ${clusterset}: ${problems.join('; ')}; ${advice}`);
  }
  return [
    ...foundLines(claims, found),
    ...uncheckedLines(members.filter((member) => member.id !== id)),
    ...unconfirmedLines(cluster, claims),
    ...unconfirmedSources(cluster, claims),
    ...networkLines(cluster, claims.network),
  ];
}

/** The member cannot confirm its own ranges. */
function unconfirmedLines({ metadata, spec }: Cluster, { podRanges, serviceRanges }: JoinRequest['claims']): string[] {
  if ((spec.allowedRanges ?? []).length > 0) return [];
  const ranges = [...podRanges, ...serviceRanges].join(', ');
  if (ranges === '') return [];
  return [
    `not confirmed: this cluster has addresses in ${ranges}; the admin of the set confirms them, and limits its endpoints to them, with portolan broker accept ${metadata.name}`,
  ];
}

function unconfirmedSources({ metadata, spec }: Cluster, { sourceRanges = [] }: JoinRequest['claims']): string[] {
  if ((spec.sourceRanges ?? []).length > 0 || sourceRanges.length === 0) return [];
  const shown = sourceRanges.slice(0, 10).join(', ') + (sourceRanges.length > 10 ? ', …' : '');
  return [
    `not confirmed: packets of this cluster come from ${shown}; the admin of the set confirms it with portolan broker accept ${metadata.name}`,
  ];
}

function foundLines({ podRanges, serviceRanges }: JoinRequest['claims'], found: JoinRequest['found']): string[] {
  const say = (what: string, ranges: readonly string[], flag: string) =>
    ranges.length === 0
      ? `not checked: this home does not say where its ${what} are; give ${flag} to have that checked`
      : `checked: ${what} in ${ranges.join(', ')}, as this home says (${flag} says otherwise)`;
  return [
    ...(found?.arePods ? [say('pods', podRanges, '--pod-cidr')] : []),
    ...(found?.areServices ? [say('services', serviceRanges, '--service-cidr')] : []),
  ];
}

function uncheckedLines(others: readonly KnownMember[]): string[] {
  const silent = others.filter(
    ({ cluster, record }) => (cluster.spec.allowedRanges ?? record?.podRanges ?? []).length === 0,
  );
  if (silent.length === 0) return [];
  return [`not checked: where the pods of ${silent.map(({ id }) => id).join(', ')} are, which nobody has said`];
}

function ownRanges({ podRanges, serviceRanges }: JoinRequest['claims']): NamedRange[] {
  return [
    ...podRanges.map((cidr) => ({ cidr, whose: 'pods of this cluster', kind: 'pods' as const })),
    ...serviceRanges.map((cidr) => ({ cidr, whose: 'services of this cluster', kind: 'services' as const })),
  ];
}

/** Takes the id, exchanges the token and keeps what it got. */
async function enter(deps: ClusterSetDeps, request: JoinRequest, broker: Client): Promise<void> {
  const { home, token, lifetimeMs } = request;
  for (const name of [systemNamespace, externalNamespace, sealingNamespace])
    await install(home, manifest(namespaceType, { name }, {}));
  const now = formatTime(deps.world.clock.wallMs());
  await takeId(broker, request, now);
  const account = { namespace: membersNamespace(token.clusterset), name: token.clusterId };
  const issued = await requestToken(broker, { ...account, lifetimeMs });
  const { object: secret, type } = membershipSecret({
    ...token,
    accountNamespace: account.namespace,
    accountName: account.name,
    token: issued.token,
    tokenIssuedAt: now,
    tokenExpiresAt: issued.expiresAt,
  });
  await deleteIfPresent(home, secretType, secret.metadata);
  await home.create(type, secret);
  await openKeptAuthority({
    ...{ world: deps.world, client: home, namespace: systemNamespace },
    ...{ name: resolverAuthoritySecret, commonName: resolverAuthorityName },
  });
  if (request.gateways !== undefined) await keepGateways(home, request.gateways);
  if (request.claims.podRanges.length > 0) await keepPodRanges(home, request.claims.podRanges);
  for (const property of clusterProperties(token)) {
    if ((await findProperty(home, property.object.metadata.name)) === undefined) await install(home, property);
  }
  await useUp(deps, { ...token, token: issued.token });
}

// Making the record is the lock on the id: of two that come at once, one finds it made.
async function takeId(broker: Client, request: JoinRequest, now: string): Promise<void> {
  const { home, token, claims } = request;
  const mine: MemberRecord = { ...claims, homeUid: await homeUid(home), joinedAt: now };
  const wanted = memberRecord(token.namespace, mine);
  const change = (there: ConfigMap | undefined): ConfigMap => {
    if (there === undefined) return wanted.object;
    const { homeUid: holder, joinedAt } = readMemberRecord(there);
    if (holder !== mine.homeUid) {
      throw refusedError(
        `cluster id ${token.clusterId} was just taken by another cluster; ask for a token with another id`,
      );
    }
    const again = memberRecord(token.namespace, { ...mine, joinedAt });
    return { ...there, data: { ...there.data, ...again.object.data } };
  };
  await apply<ConfigMap>({ client: broker, type: wanted.type, present: undefined, change, onConflict: 'retry' });
}

/** The join token ends with the Secret it is bound to. */
async function useUp(deps: ClusterSetDeps, token: JoinToken): Promise<void> {
  const broker = brokerClient(deps.world, token);
  try {
    const namespace = membersNamespace(token.clusterset);
    await deleteIfPresent(broker, secretType, { namespace, name: joinSecretName(token.clusterId) });
  } finally {
    broker.close();
  }
}

/** The usual way to identify a cluster. */
async function homeUid(home: Client): Promise<string> {
  const namespace = await getOrUndefined<Namespace>(home, namespaceType, { name: 'kube-system' });
  if (namespace?.metadata.uid === undefined) throw new Error('this home has no namespace kube-system to be known by');
  return namespace.metadata.uid;
}
