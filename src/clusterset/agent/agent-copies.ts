// The agent's copies of objects in its home and at the broker. There is one copy of each kind, and all controllers read it.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { shiftedService, shiftsByService } from '../controllers/policies/shifts.ts';
import type { Membership } from '../copies/context.ts';
import { createHomeCopies, type HomeCopies } from '../copies/home-copies.ts';
import { LegacyRecords } from '../copies/legacy-records.ts';
import { MemberServices } from '../copies/member-services.ts';
import { NetworksCopy } from '../copies/networks-copy.ts';
import { PolicyCopy } from '../copies/policy-copy.ts';
import { type ClusterProfile, clusterProfileType } from '../kinds/cluster-profile.ts';
import { type ClusterProperty, clusterPropertyType } from '../kinds/cluster-property.ts';
import { type FederatedService, federatedServiceType } from '../kinds/federated-service.ts';
import { type ServiceAccessPolicy, serviceAccessPolicyType } from '../kinds/service-access-policy.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../kinds/service-import-policy.ts';
import { type TrafficShift, trafficShiftType } from '../kinds/traffic-shift.ts';
import { type FollowerSealing, MemberFollower } from '../members/follower.ts';
import { SharedCopy } from '../members/shared-copy.ts';
import { formatServiceKey, parseRecordName } from '../rules/names.ts';

export interface AgentCopiesOptions {
  readonly world: World;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  readonly membership: Membership;
  readonly sealing: FollowerSealing | undefined;
  /** A record of the older form has changed. */
  readonly onLegacyService: (key: string) => void;
}

export class AgentCopies {
  readonly atHome: HomeCopies;
  readonly members: MemberFollower;
  readonly memberServices: MemberServices;
  readonly policy: PolicyCopy;
  readonly networks: NetworksCopy;
  /** Records of the older form, where the ClusterSet names them. */
  readonly legacy: LegacyRecords;
  /** The merged views, at the broker. */
  readonly views: Informer<ServiceImport>;
  readonly federated: Informer<FederatedService>;
  /** Open only where this member may write them. */
  readonly profiles: SharedCopy<ClusterProfile>;
  readonly policies: Informer<ServiceExportPolicy>;
  readonly importPolicies: Informer<ServiceImportPolicy>;
  readonly accessPolicies: Informer<ServiceAccessPolicy>;
  readonly trafficShifts: Informer<TrafficShift>;
  readonly properties: Informer<ClusterProperty>;

  constructor(options: AgentCopiesOptions) {
    const { world, log, home, broker, membership, sealing } = options;
    const { clusterset, clusterId } = membership;
    const atBroker = { client: broker, world, log, namespace: clusterset };
    const atHome = { client: home, world, log };
    this.atHome = createHomeCopies({ home, world, log });
    this.members = new MemberFollower({ world, log, broker, clusterset, hasEndpoints: true, sealing });
    const { members } = this;
    this.memberServices = new MemberServices({ members, log });
    this.policy = new PolicyCopy({ world, log, broker, members, clusterset, clusterId });
    this.networks = new NetworksCopy({ members, policy: this.policy, clusterId });
    this.legacy = new LegacyRecords({ world, log, broker, members, clusterId, onService: options.onLegacyService });
    this.views = createInformer<ServiceImport>({ ...atBroker, type: serviceImportType });
    this.federated = createInformer<FederatedService>({ ...atBroker, type: federatedServiceType });
    this.profiles = new SharedCopy<ClusterProfile>({ ...atBroker, type: clusterProfileType });
    this.policies = createInformer<ServiceExportPolicy>({ ...atHome, type: serviceExportPolicyType });
    this.importPolicies = createInformer<ServiceImportPolicy>({ ...atHome, type: serviceImportPolicyType });
    this.accessPolicies = createInformer<ServiceAccessPolicy>({ ...atHome, type: serviceAccessPolicyType });
    this.trafficShifts = createInformer<TrafficShift>({
      ...atHome,
      type: trafficShiftType,
      indexes: { [shiftsByService]: (shift) => [shiftedService(shift) ?? ''] },
    });
    this.properties = createInformer<ClusterProperty>({ ...atHome, type: clusterPropertyType });
  }

  start(): void {
    for (const copy of this.#started()) copy.start();
  }

  stop(): void {
    this.legacy.stop();
    for (const copy of this.#started()) copy.stop();
    this.profiles.close();
  }

  /** The broker may have been restored: what was listed there is listed again. */
  relistBroker(): void {
    for (const copy of [this.members, this.policy, this.legacy, this.views, this.federated, this.profiles])
      copy.relist();
  }

  /** Services that anything at home or at the broker is about. */
  services(): Set<string> {
    const { exports, imports } = this.atHome;
    return new Set([...exports.keys(), ...imports.keys(), ...recordKeys(this.views), ...this.memberServices.all()]);
  }

  #started(): { start(): void; stop(): void }[] {
    return [
      this.atHome,
      this.members,
      this.policy,
      this.views,
      this.policies,
      this.importPolicies,
      this.accessPolicies,
      this.trafficShifts,
      this.federated,
      this.properties,
    ];
  }
}

/** Keys of the services that records of the broker are named after. */
export function recordKeys(records: { values(): Iterable<KubernetesObject> }): string[] {
  return Array.from(records.values(), recordKey).filter((key) => key !== undefined);
}

/** Key of the service that a record of the broker is named after. */
export function recordKey(record: KubernetesObject): string | undefined {
  const service = parseRecordName(record.metadata.name);
  return service && formatServiceKey(service);
}
