// Reads what doctor checks of one cluster, within a bound of time. A failed read becomes a reason, never an error:
// one cluster that does not answer must not hide the others.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { version } from '../../base/version.ts';
import { sleep, type World } from '../../base/world.ts';
import { findMembership, greetBroker, withBroker } from '../../clusterset/explain/consult.ts';
import { olderMembers } from '../../clusterset/explain/older-members.ts';
import { refusedRecords } from '../../clusterset/explain/refused-records.ts';
import { listAll, readSetState } from '../../clusterset/explain/set-state.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { withCertificateAdvice } from '../../clusterset/rules/leases/trusted-authorities.ts';
import type {
  Answers,
  AskedName,
  BrokerFacts,
  CertificateFacts,
  ClusterFacts,
  Health,
  Read,
  TriedConnection,
} from '../../doctor/facts.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { type Federation, federationType } from '../../federation/kinds/federation.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import type { HomeAccess } from '../../kube/client/kubeconfig.ts';
import { readReadiness } from '../../kube/client/readiness.ts';
import { StoppedAnswering, whileAnswering } from '../../kube/client/while-answering.ts';
import { ApiError, isForbidden, isNotFound, isUnauthorized } from '../../kube/objects/api-error.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partLabel } from '../../kube/objects/part-lease.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../../peering/kinds/peer-export.ts';
import { endingIn } from '../../xds/identity/ending-certificates.ts';
import { readEnforcement } from '../access-at-home.ts';
import { describeError } from '../exit-codes.ts';
import { findOtherDns } from '../installation/cluster-dns.ts';
import { type PairsRequest, readPairs } from '../pairs.ts';
import { readParts } from '../parts.ts';
import { secretsNamespaceOf } from '../peer/add.ts';
import { ownCertificateSecret } from '../peer/show.ts';
import { createPartAsker } from './ask-parts.ts';
import { readStatus } from './status-read.ts';

export interface ReadRequest {
  readonly world: World;
  readonly access: HomeAccess;
  /** For everything that is read of this cluster. */
  readonly timeoutMs: number;
  /**
   * For doctor only: whether to try connections, and which servers to ask beside the cluster's parts.
   */
  readonly thorough?: {
    readonly names: (client: Client) => Promise<readonly AskedName[]>;
    readonly connections: (client: Client) => Promise<readonly TriedConnection[]>;
  };
}

/** A home that hangs is called away after this time: a person waits. */
const greetingMs = 5_000;

/** A brief lag is no finding: it is checked again after this time. */
const secondLookMs = 3_000;

export async function readCluster(request: ReadRequest): Promise<ClusterFacts> {
  const { world, access, timeoutMs } = request;
  const client = createClient(world.network.http(access), {
    world,
    userAgent: 'portolan-cli',
    requestTimeoutMs: timeoutMs,
  });
  const forbidden: string[] = [];
  const read = <T>(what: string, work: () => Promise<T>) => bounded({ world, timeoutMs, what, forbidden }, work);
  const list = <T extends KubernetesObject>(type: ResourceType, namespace?: string) =>
    read(`${type.plural}${namespace === undefined ? '' : ` in ${namespace}`}`, () =>
      listAll<T>(client, type, namespace === undefined ? {} : { namespace }).catch(emptyIfUnknown),
    );
  try {
    const greeting = { world, timeoutMs: Math.min(timeoutMs, greetingMs), what: '/readyz', forbidden };
    const health = await bounded(greeting, () => readHealth(world, access));
    if ('why' in health) return unreachable(request, health.why);
    return await whileAnswering({ world, client }, () => readAll(health));
  } catch (error) {
    if (error instanceof StoppedAnswering) return unreachable(request, error.message);
    throw error;
  } finally {
    client.close();
  }

  async function readAll(health: { readonly value: Health }): Promise<ClusterFacts> {
    const membership = await read(`Secret ${systemNamespace}/portolan-broker`, () => findMembership(client));
    const member = 'value' in membership ? membership.value : undefined;
    const [broker, parts, certificates] = await Promise.all([
      'why' in membership ? membership : read('the clusterset', () => readBroker(request, client, member)),
      read(`leases in ${systemNamespace}`, () => partsOf(client, world)),
      read('certificates', () => readCertificates(client, access, member)),
    ]);
    const [exports, imports, policies, services, slices, claims, peers, peerExports] = await Promise.all([
      list<ServiceExport>(serviceExportType),
      list<ServiceImport>(serviceImportType),
      list<ServiceExportPolicy>(serviceExportPolicyType),
      list<Service>(serviceType),
      list<EndpointSlice>(endpointSliceType),
      list<AddressClaim>(addressClaimType),
      list<Peer>(peerType),
      list<PeerExport>(peerExportType),
    ]);
    return {
      cluster: member?.clusterId ?? access.contextName,
      nowMs: world.clock.wallMs(),
      ownVersion: version,
      server: access.server,
      ...{ health, membership, broker, parts, certificates },
      pairs: await read('ways to other clusters', () => readPairs(client, pairsRequest(world, member, broker))),
      access: await read('access', () => readEnforcement(client, world.clock)),
      federations: awayOf(broker) ?? (await read('federations', () => readFederations(world, client, member))),
      ...{ exports, imports, policies, services, slices, claims, peers, peerExports },
      clusterDns: await read('CoreDNS of kube-system', () => findOtherDns(client)),
      external: await list(meshExternalServiceType, systemNamespace),
      ...(await askParts(read, client, request)),
      forbidden,
    };
  }
}

function pairsRequest(world: World, member: MembershipRecord | undefined, broker: Read<BrokerFacts>): PairsRequest {
  const request = { self: member?.clusterId ?? '', clock: world.clock };
  const isKnown = 'value' in broker && broker.value.kind === 'answers';
  return isKnown ? { ...request, older: olderMembers(broker.value.set.state) } : request;
}

/** A broker that did not answer is not asked a second time. */
function awayOf(broker: Read<BrokerFacts>): { readonly why: string } | undefined {
  if (!('value' in broker) || broker.value.kind !== 'away') return undefined;
  return { why: `the broker cannot be asked: ${broker.value.why}` };
}

type Reader = <T>(what: string, work: () => Promise<T>) => Promise<Read<T>>;
type AskedFacts = Pick<ClusterFacts, 'resolvers' | 'asked' | 'connections'>;

const notTried = { answers: [], unasked: [], idle: 'portolan doctor tries connections' };

async function askParts(read: Reader, client: Client, { world, thorough }: ReadRequest): Promise<AskedFacts> {
  const parts = createPartAsker(client, world.clock.wallMs());
  const names = async () => joined(await parts.names(), (await thorough?.names(client)) ?? []);
  const connections = async () =>
    thorough === undefined ? notTried : joined(await parts.connections(), await thorough.connections(client));
  const [resolvers, asked, tried] = await Promise.all([
    read('status of resolvers', () => parts.resolverStates()),
    read('answers of resolvers', names),
    read('connections', connections),
  ]);
  return { resolvers, asked, connections: tried };
}

/** Adds answers that were requested by an option; parts that answered this way no longer count as unasked. */
function joined<T>({ answers, unasked, idle }: Answers<T>, more: readonly T[]): Answers<T> {
  return { answers: [...answers, ...more], unasked, idle: more.length > 0 ? '' : idle };
}

function unreachable({ world, access }: ReadRequest, why: string): ClusterFacts {
  const unread = { why: `the home does not answer: ${why}` };
  return {
    cluster: access.contextName,
    nowMs: world.clock.wallMs(),
    ownVersion: version,
    server: access.server,
    health: { why },
    ...{ membership: unread, broker: unread, parts: unread, certificates: unread, federations: unread },
    ...{ exports: unread, imports: unread, policies: unread, services: unread, slices: unread, claims: unread },
    ...{ peers: unread, peerExports: unread, external: unread, asked: unread, resolvers: unread, connections: unread },
    ...{ pairs: unread, access: unread, clusterDns: unread },
    forbidden: [],
  };
}

interface Bound {
  readonly world: World;
  readonly timeoutMs: number;
  readonly what: string;
  readonly forbidden: string[];
}

async function bounded<T>({ world, timeoutMs, what, forbidden }: Bound, work: () => Promise<T>): Promise<Read<T>> {
  const late = new AbortController();
  const timeout = sleep(world.timers, timeoutMs, late.signal).then(
    () => ({ why: `${what}: no answer within ${timeoutMs / 1000} s` }),
    () => ({ why: '' }),
  );
  try {
    return await Promise.race([work().then((value) => ({ value })), timeout]);
  } catch (error) {
    if (isForbidden(error)) forbidden.push(what);
    return { why: `${what}: ${describeError(error)}` };
  } finally {
    late.abort();
  }
}

/** A kind that is not installed has no objects. */
function emptyIfUnknown(error: unknown): never[] {
  if (isNotFound(error)) return [];
  throw error;
}

async function readHealth(world: World, access: HomeAccess): Promise<Health> {
  const transport = world.network.http(access);
  try {
    return await readReadiness(transport, world.clock);
  } finally {
    transport.close();
  }
}

async function partsOf(client: Client, { clock }: World) {
  const parts = await readParts(client, clock);
  if (parts !== undefined) return parts;
  throw new ApiError('you may not list them', { code: 403, reason: 'Forbidden' });
}

async function readBroker(
  { world }: ReadRequest,
  home: Client,
  member: MembershipRecord | undefined,
): Promise<BrokerFacts> {
  if (member === undefined) return readAsBroker(home, world);
  try {
    return await withBroker(world, member, async (broker) => {
      await greetBroker(broker, member);
      const request = { home, broker, membership: member };
      const state = await readSetState({ ...request, clock: world.clock });
      const status = await readStatus({ world }, request);
      const first = [...status.behind, ...status.unpublished];
      const { refused } = status;
      const set = (behind: readonly string[]): BrokerFacts => ({ kind: 'answers', set: { state, refused, behind } });
      if (first.length === 0) return set(first);
      await sleep(world.timers, secondLookMs);
      const again = await readStatus({ world }, request);
      const still = new Set([...again.behind, ...again.unpublished]);
      return set(first.filter((key) => still.has(key)));
    });
  } catch (error) {
    const why = withCertificateAdvice(describeError(error), member.clusterId);
    if (isUnauthorized(error) || isForbidden(error))
      return { kind: 'refused', why: `the broker ${member.server} refuses them: ${why}` };
    if (error instanceof ApiError && error.code < 500) throw error;
    return { kind: 'away', why };
  }
}

/** A home that is no member may be a broker itself: then its members are checked from there. */
async function readAsBroker(home: Client, { clock }: World): Promise<BrokerFacts> {
  const sets = await listAll<ClusterSet>(home, clusterSetType).catch(emptyIfUnknown);
  const [first] = sets;
  if (first === undefined) return { kind: 'none' };
  const membership = { clusterset: first.metadata.name } as MembershipRecord;
  const state = await readSetState({ home, broker: home, membership, clock });
  return { kind: 'answers', set: { state, refused: state.members.flatMap(refusedRecords), behind: [] } };
}

async function readFederations(
  world: World,
  home: Client,
  member: MembershipRecord | undefined,
): Promise<readonly Federation[]> {
  const list = (client: Client, namespace?: string) =>
    listAll<Federation>(client, federationType, namespace === undefined ? {} : { namespace }).catch(emptyIfUnknown);
  return member === undefined ? list(home) : withBroker(world, member, (broker) => list(broker, member.clusterset));
}

async function readCertificates(
  home: Client,
  access: HomeAccess,
  member: MembershipRecord | undefined,
): Promise<readonly CertificateFacts[]> {
  const namespace = await secretsNamespaceOf({ client: home, namespace: systemNamespace });
  const secret = await getOrUndefined<Secret>(home, secretType, { namespace, name: ownCertificateSecret });
  const peering = secret?.data?.['tls.crt'];
  const all = [
    { subject: 'authority of the home in the kubeconfig', pem: access.certificateAuthority },
    { subject: 'client certificate in the kubeconfig', pem: access.clientCertificate },
    {
      subject: `authority of the broker in Secret ${systemNamespace}/portolan-broker`,
      pem: member?.certificateAuthority,
    },
    {
      subject: `Secret ${namespace}/${ownCertificateSecret}`,
      pem: peering && Buffer.from(peering, 'base64').toString('utf8'),
    },
  ];
  const known = all.flatMap(({ subject, pem }) => (pem === undefined || pem === '' ? [] : [{ subject, pem }]));
  return [...known, ...(await readProxyCertificates(home))];
}

/** Those that should have been renewed, as xDS servers report them in their Leases. */
async function readProxyCertificates(home: Client): Promise<CertificateFacts[]> {
  const labelSelector = `${partLabel}=xds`;
  const leases = await listAll<Lease>(home, leaseType, { namespace: systemNamespace, labelSelector });
  return leases
    .flatMap(endingIn)
    .map(({ proxy, startMs, endMs }) => ({ subject: `certificate of proxy ${proxy}`, startMs, endMs }));
}
