// A clusterset as one of its members sees it now: the set's policy, every member with its lease and what this cluster's
// agent judged of it, and the records of the services asked for. Reads only.

import { errorText } from '../../base/log.ts';
import type { Clock } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError, isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { type KubernetesObject, keyOf, type ResourceType } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { ClusterSet } from '../kinds/cluster-set.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../kinds/service-import-policy.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { brokerNoteKey, type MembershipRecord, verdictsName } from '../membership/membership.ts';
import { type LeaseMemory, parseLeaseMemory } from '../rules/leases/lease-memory.ts';
import type { LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import { legacyOrigin, legacyShardSpec } from '../rules/legacy-import.ts';
import { formatServiceKey, parseRecordName, parseServiceKey, recordName } from '../rules/names.ts';
import { isStandIn } from '../rules/routing/transparent.ts';
import { readSetPolicy, type SetPolicy } from '../rules/set-policy.ts';
import { type KnownMember, readClusterSet, readHeartbeat, readMembers } from './broker-state.ts';
import type { ClusterFacts } from './predict.ts';

export interface MemberState extends KnownMember {
  readonly lease: Lease | undefined;
  /** Wall time when the lease was read. Its age is judged by that: other reads may take long. */
  readonly leaseReadMs: number;
  readonly verdict: LeaseVerdict;
  /** The recent verdict of this cluster's agent; absent if the member lives and was not away. */
  readonly memory: LeaseMemory | undefined;
  /** By `namespace/name` of the service. */
  readonly shards: ReadonlyMap<string, ServiceShard>;
}

export interface SetState {
  readonly set: ClusterSet;
  readonly policy: SetPolicy;
  readonly members: readonly MemberState[];
  /** Clusters that still speak the older form alone, and what they export. */
  readonly older: ReadonlyMap<string, ReadonlyMap<string, ServiceShard>>;
}

export interface SetStateRequest {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: MembershipRecord;
  readonly clock: Pick<Clock, 'wallMs'>;
  /** The wanted services; all when absent. */
  readonly keys?: readonly string[];
}

export async function readSetState(request: SetStateRequest): Promise<SetState> {
  const { home, broker, membership, clock, keys } = request;
  const set = await readClusterSet(broker, membership.clusterset);
  const policy = readSetPolicy(set);
  const wanted = keys && { keys: new Set(keys), isNamed: maySayNames(policy) && keys.length <= fewKeysMax };
  const memories = await readVerdicts(home);
  const known = await readMembers(broker, membership.clusterset);
  const members = await Promise.all(
    known.map((member) => readMember(broker, { member, memory: memories.get(member.id), clock, wanted })),
  );
  return { set, policy, members, older: await readOlder(broker, set, members) };
}

/** The broker notes requests: where exports may be sealed none names a service. */
export function maySayNames({ sealing }: Pick<SetPolicy, 'sealing'>): boolean {
  return !sealing.isAllowed;
}

/** By cluster id. The agent's verdict counts here, whether its reasons still hold or not. */
export async function readVerdicts(home: Client): Promise<Map<string, LeaseMemory>> {
  return (await readAgentNotes(home)).verdicts;
}

export interface AgentNotes {
  readonly verdicts: Map<string, LeaseMemory>;
  /** RFC 3339: the agent has had no answer from the broker since then; undefined if it has, or did not notice yet. */
  readonly brokerAwaySince: string | undefined;
}

/** Facts that the agent of a cluster keeps in its home for people. */
export async function readAgentNotes(home: Client): Promise<AgentNotes> {
  const found = await getOrUndefined<ConfigMap>(home, configMapType, {
    namespace: systemNamespace,
    name: verdictsName,
  });
  const memories = new Map<string, LeaseMemory>();
  for (const [id, text] of Object.entries(found?.data ?? {})) {
    const memory = parseLeaseMemory(text);
    if (memory !== undefined) memories.set(id, memory);
  }
  return { verdicts: memories, brokerAwaySince: found?.data?.[brokerNoteKey] };
}

interface MemberRequest {
  readonly member: KnownMember;
  readonly memory: LeaseMemory | undefined;
  readonly clock: SetStateRequest['clock'];
  readonly wanted: Wanted | undefined;
}

/** All services if there is none. */
interface Wanted {
  readonly keys: ReadonlySet<string>;
  /** They may be asked for by name. */
  readonly isNamed: boolean;
}

async function readMember(broker: Client, { member, memory, clock, wanted }: MemberRequest): Promise<MemberState> {
  const { namespace } = member.cluster.spec;
  const known = { ...member, memory, verdict: memory?.verdict ?? 'alive' };
  try {
    const lease = await readHeartbeat(broker, namespace);
    const leaseReadMs = clock.wallMs();
    return { ...known, lease, leaseReadMs, shards: await readShards(broker, namespace, wanted) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const unread = { lease: undefined, leaseReadMs: clock.wallMs(), shards: new Map() };
    return { ...known, ...unread, problem: errorText(error) };
  }
}

/** So many are asked for one by one; more are quicker to pick out of a list. */
export const fewKeysMax = 50;

async function readShards(broker: Client, namespace: string, wanted: Wanted | undefined) {
  const shards = new Map<string, ServiceShard>();
  if (wanted?.isNamed !== true) {
    for (const shard of await listAll<ServiceShard>(broker, serviceShardType, { namespace })) {
      const service = parseRecordName(shard.metadata.name);
      const key = service && formatServiceKey(service);
      if (key !== undefined && wanted?.keys.has(key) !== false) shards.set(key, shard);
    }
    return shards;
  }
  for (const key of wanted.keys) {
    const name = recordName(parseServiceKey(key));
    const shard = await getOrUndefined<ServiceShard>(broker, serviceShardType, { namespace, name });
    if (shard !== undefined) shards.set(key, shard);
  }
  return shards;
}

async function readOlder(broker: Client, set: ClusterSet, members: readonly MemberState[]): Promise<SetState['older']> {
  const namespace = set.spec?.legacyNamespace;
  const older = new Map<string, Map<string, ServiceShard>>();
  if (namespace === undefined) return older;
  const upgraded = new Set<string>();
  for (const { id, cluster, problem } of members) {
    if (problem !== undefined) continue;
    const { items } = await broker.list(serviceShardType, { namespace: cluster.spec.namespace, limit: 1 });
    if (items.length > 0) upgraded.add(id);
  }
  for (const object of await listAll<ServiceImport>(broker, serviceImportType, { namespace })) {
    const origin = legacyOrigin(object);
    if (origin === undefined || upgraded.has(origin.cluster)) continue;
    const shards = older.get(origin.cluster) ?? new Map<string, ServiceShard>();
    shards.set(formatServiceKey(origin.service), {
      apiVersion: object.apiVersion,
      kind: serviceShardType.kind,
      metadata: object.metadata,
      spec: legacyShardSpec(object),
    });
    older.set(origin.cluster, shards);
  }
  return older;
}

const nothing = { namespaces: new Set<string>(), services: new Map(), exports: new Map(), slices: [] };

/** The records at the broker, as all clusters see them. With `except`, all but that cluster. */
export function brokerFacts({ members, older }: SetState, except?: string): ClusterFacts[] {
  const facts: ClusterFacts[] = members.map(({ id, verdict, shards, cluster }) => ({
    id,
    verdict,
    ...nothing,
    left: shards,
    mayExport: cluster.spec.mayExport,
    isDraining: cluster.spec.draining === true,
  }));
  for (const [id, left] of older) {
    const isMember = facts.some((one) => one.id === id);
    if (!isMember) facts.push({ id, verdict: 'alive', ...nothing, left });
  }
  return facts.filter(({ id }) => id !== except);
}

interface HomeRequest {
  readonly state: SetState;
  readonly id: string;
  readonly keys: readonly string[];
  /** Creation time for services that have no record at the broker yet. */
  readonly nowMs: number;
}

/** Reads the named services from the home of one of the set's clusters. */
export async function homeFacts(home: Client, { state, id, keys, nowMs }: HomeRequest): Promise<ClusterFacts> {
  const member = state.members.find((one) => one.id === id);
  const addresses = member?.cluster.spec;
  const now = formatTime(nowMs);
  const storedAt = new Map(keys.map((key) => [key, member?.shards.get(key)?.metadata.creationTimestamp ?? now]));
  const known = keys.length > fewKeysMax ? await listHome(home, keys) : await readHome(home, keys);
  return { id, verdict: 'alive', ...known, addresses, storedAt, mayExport: addresses?.mayExport };
}

type HomeObjects = Pick<ClusterFacts, 'services' | 'exports' | 'slices' | 'namespaces'>;

async function readHome(home: Client, keys: readonly string[]): Promise<HomeObjects> {
  const services = new Map<string, Service>();
  const exports = new Map<string, ServiceExport>();
  const slices: EndpointSlice[] = [];
  const namespaces = new Set<string>();
  for (const key of keys) {
    const { namespace, name } = parseServiceKey(key);
    const service = await getOrUndefined<Service>(home, serviceType, { namespace, name });
    if (service !== undefined && !isStandIn(service)) services.set(key, service);
    const serviceExport = await getOrUndefined<ServiceExport>(home, serviceExportType, { namespace, name });
    if (serviceExport !== undefined) exports.set(key, serviceExport);
    const labelSelector = `${serviceNameLabel}=${name}`;
    slices.push(...(await listAll<EndpointSlice>(home, endpointSliceType, { namespace, labelSelector })));
    if ((await getOrUndefined(home, namespaceType, { name: namespace })) !== undefined) namespaces.add(namespace);
  }
  return { services, exports, slices, namespaces };
}

async function listHome(home: Client, keys: readonly string[]): Promise<HomeObjects> {
  const wanted = new Set(keys);
  const isWanted = (object: KubernetesObject) => wanted.has(keyOf(object));
  const isBehindWanted = ({ metadata: { namespace, labels } }: EndpointSlice) =>
    wanted.has(`${namespace}/${labels?.[serviceNameLabel]}`);
  return {
    services: byKey((await listAll<Service>(home, serviceType)).filter((one) => isWanted(one) && !isStandIn(one))),
    exports: byKey((await listAll<ServiceExport>(home, serviceExportType)).filter(isWanted)),
    slices: (await listAll<EndpointSlice>(home, endpointSliceType)).filter(isBehindWanted),
    namespaces: new Set((await listAll(home, namespaceType)).map(({ metadata }) => metadata.name)),
  };
}

export async function listAll<T extends KubernetesObject>(
  client: Client,
  type: ResourceType,
  selection: { namespace?: string; labelSelector?: string } = {},
): Promise<T[]> {
  const all: T[] = [];
  for await (const page of client.listPaged<T>(type, selection)) all.push(...page.items);
  return all;
}

/** None where the reader may not list them, or an older home does not serve them. */
export async function listImportPolicies(home: Client): Promise<ServiceImportPolicy[]> {
  try {
    return await listAll<ServiceImportPolicy>(home, serviceImportPolicyType);
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return [];
    throw error;
  }
}

export function byKey<T extends KubernetesObject>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((object) => [keyOf(object), object]));
}
