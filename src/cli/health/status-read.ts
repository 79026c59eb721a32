// Reads the clusterset as it stands for one member: its clusters and their leases, its services and their conflicts, and how far
// this cluster is behind what lies at the broker.

import { clusterStatus } from '../../clusterset/explain/cluster-status.ts';
import { olderMembers } from '../../clusterset/explain/older-members.ts';
import { predict } from '../../clusterset/explain/predict.ts';
import { refusedRecords } from '../../clusterset/explain/refused-records.ts';
import { isFromSealed, serviceStatus } from '../../clusterset/explain/service-status.ts';
import {
  brokerFacts,
  byKey,
  listAll,
  listImportPolicies,
  type MemberState,
  readSetState,
} from '../../clusterset/explain/set-state.ts';
import type { StalenessPolicy } from '../../clusterset/kinds/cluster-set.ts';
import { isSealed, type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { exportedReasons, judgeService } from '../../clusterset/rules/export-conditions.ts';
import { whyNotTrusted } from '../../clusterset/rules/leases/lease-memory.ts';
import { allFamilies, familiesOf } from '../../clusterset/rules/networks/own-families.ts';
import { sourceOfImport } from '../../clusterset/rules/routing/import-as.ts';
import type { SetPolicy } from '../../clusterset/rules/set-policy.ts';
import type { Client } from '../../kube/client/client.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { isOurs } from '../../kube/objects/ours.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { enforcementAt } from '../access-at-home.ts';
import { readPairs } from '../pairs.ts';
import { readParts } from '../parts.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { clustersOf } from './status-home.ts';
import { setNotes } from './status-notes.ts';
import type { StaleCluster, Status } from './status-report.ts';

interface StatusRequest {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: MembershipRecord;
}

export async function readStatus(deps: Pick<ClusterSetDeps, 'world'>, request: StatusRequest): Promise<Status> {
  const { home, membership } = request;
  const { clock } = deps.world;
  const state = await readSetState({ ...request, clock });
  const imports = new Map(
    (await listAll<ServiceImport>(home, serviceImportType)).map((one) => [sourceOfImport(one), one]),
  );
  const policies = await listImportPolicies(home);
  const namespaces = await listAll<Namespace>(home, namespaceType);
  const exports = await listAll<ServiceExport>(home, serviceExportType);
  const names = new Set(namespaces.map(({ metadata }) => metadata.name));
  const facts = brokerFacts(state).map((one) =>
    one.id === membership.clusterId ? { ...one, namespaces: names } : one,
  );
  const prediction = predict(facts, state.policy);
  const unread = new Set(state.members.filter(({ problem }) => problem !== undefined).map(({ id }) => id));
  const isUnread = (object: ServiceImport | undefined) =>
    object !== undefined && clustersOf(object).some((id) => unread.has(id));
  const self = state.members.find(({ id }) => id === membership.clusterId);
  const families = self?.record && (familiesOf(self.record.podRanges) ?? allFamilies);
  const services = prediction.keys.map((key) =>
    serviceStatus({ key, prediction, imports, policies, names, families, id: membership.clusterId, isUnread }),
  );
  const known = new Set(prediction.keys);
  const leftovers = [...imports]
    .filter(([key, object]) => !known.has(key) && isOurs(object) && !isUnread(object) && !isFromSealed(object))
    .map(([key]) => key);
  return {
    clusterset: membership.clusterset,
    broker: membership.server,
    cluster: membership.clusterId,
    brokerProblem: undefined,
    refused: state.members.flatMap(refusedRecords),
    stale: state.members.flatMap((member) => staleCluster(member, state.policy)),
    clusters: state.members.map((member) => clusterStatus(member, state)),
    services,
    behind: [...services.filter((one) => one.import === 'behind').map(({ service }) => service), ...leftovers],
    unpublished: await unpublishedOf(
      home,
      exports.filter((one) => self?.shards.has(keyOf(one)) !== true && !isPublishedSealed(one)),
    ),
    notes: setNotes(state),
    parts: await readParts(home, clock),
    ...(await enforcementAt(home, clock)),
    exported: exports.map(keyOf),
    pairs: await readPairs(home, { self: membership.clusterId, clock, older: olderMembers(state) }),
  };
}

/** Keys of those that should be at the broker: an export without a Service that can be exported has nothing to publish. */
async function unpublishedOf(home: Client, absent: readonly ServiceExport[]): Promise<string[]> {
  const keys = absent.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(keyOf);
  if (keys.length === 0) return [];
  const services = byKey(await listAll<Service>(home, serviceType));
  return keys.filter((key) => judgeService(services.get(key), key).kind === 'valid');
}

/** The broker shows nothing of it to readers, so its own condition counts. */
function isPublishedSealed(serviceExport: ServiceExport): boolean {
  const ready = conditionOf(serviceExport.status?.conditions, 'Ready');
  return isSealed(serviceExport) && ready !== undefined && exportedReasons.has(ready.reason);
}

function staleCluster({ id, memory, shards }: MemberState, policy: SetPolicy): StaleCluster[] {
  const why = whyNotTrusted(memory);
  if (why === undefined) return [];
  const keysOf = (word: StalenessPolicy) =>
    [...shards].filter(([, { spec }]) => (spec.onStale ?? policy.staleness) === word).map(([key]) => key);
  return [{ cluster: id, why, withdrawn: keysOf('Withdraw'), notReady: keysOf('NotReady'), kept: keysOf('Keep') }];
}
