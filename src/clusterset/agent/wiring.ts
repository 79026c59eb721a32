// The controllers of an agent and what each of them listens to: the one place to see who reacts to what.

import { type AddressClaim, addressClaimName, addressOfClaimName } from '../../addresses/address-claim.ts';
import type { Allocator } from '../../addresses/allocator.ts';
import type { WorkResult } from '../../base/queue.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { type ControllerSource, runController } from '../../kube/controller/loop.ts';
import { type KubernetesObject, keyOf } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import { createExportController } from '../controllers/export.ts';
import { createConditionsController } from '../controllers/export-conditions.ts';
import { createIdentityController } from '../controllers/identity.ts';
import { createImportController } from '../controllers/import.ts';
import { createInventoryController } from '../controllers/inventory/profiles.ts';
import { createLegacyController } from '../controllers/legacy.ts';
import { createViewController, viewKey } from '../controllers/merged-view.ts';
import { createPlacementController } from '../controllers/placement.ts';
import type { PlacementProblems } from '../controllers/placement-problems.ts';
import { createPlacementStatusController } from '../controllers/placement-status.ts';
import { type AccessPoliciesOptions, createAccessPolicies } from '../controllers/policies/access-policies.ts';
import { createPolicyController } from '../controllers/policies/exports-by-policy.ts';
import { createRoutes } from '../controllers/policies/routes.ts';
import { createShifts, shiftedService } from '../controllers/policies/shifts.ts';
import { createPublishingTurns } from '../controllers/publishing-turns.ts';
import type { SealedExports } from '../controllers/sealing/sealed-exports.ts';
import type { AgentContext } from '../copies/context.ts';
import type { ProxyCounts } from '../copies/data-planes.ts';
import {
  addressesOf,
  importKey,
  importsByAddress,
  importsByReason,
  importsBySource,
  legacyKey,
  localServiceKey,
  servicesByNamespace,
} from '../copies/home-copies.ts';
import type { LegacyRecords } from '../copies/legacy-records.ts';
import { Publications } from '../copies/publications.ts';
import type { ClusterProfile } from '../kinds/cluster-profile.ts';
import type { ClusterProperty } from '../kinds/cluster-property.ts';
import type { FederatedService } from '../kinds/federated-service.ts';
import type { ServiceAccessPolicy } from '../kinds/service-access-policy.ts';
import type { ServiceExportPolicy } from '../kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { ServiceImportPolicy } from '../kinds/service-import-policy.ts';
import type { TrafficShift } from '../kinds/traffic-shift.ts';
import type { SharedCopy } from '../members/shared-copy.ts';
import { policyLabel } from '../rules/agent-marks.ts';
import { derivedFor } from '../rules/derived-service.ts';
import { formatServiceKey, parseRecordName } from '../rules/names.ts';
import { sourceOfImport } from '../rules/routing/import-as.ts';
import { routedByAnnotation } from '../rules/routing/routing.ts';
import type { ControllerName, ControllerQueues } from './controller-queues.ts';

export interface WiringOptions {
  readonly context: AgentContext;
  readonly sealing: SealedExports | undefined;
  readonly allocator: Allocator;
  readonly legacy: LegacyRecords;
  /** The merged views, at the broker. */
  readonly views: Informer<ServiceImport>;
  readonly policies: Informer<ServiceExportPolicy>;
  readonly importPolicies: Informer<ServiceImportPolicy>;
  readonly accessPolicies: Informer<ServiceAccessPolicy>;
  readonly accessPolicyOptions: Omit<AccessPoliciesOptions, 'policies'>;
  readonly trafficShifts: Informer<TrafficShift>;
  /** Connections of a service, as each proxy of this cluster counted them. */
  readonly countsOf: (service: string) => readonly ProxyCounts[];
  /** How many of the living proxies have left a cluster for a service. */
  readonly leftBy: (service: string, cluster: string) => { readonly nodes: number; readonly of: number };
  readonly federated: Informer<FederatedService>;
  readonly properties: Informer<ClusterProperty>;
  /** Read only where this member may keep them. */
  readonly profiles: SharedCopy<ClusterProfile>;
  readonly placementProblems: PlacementProblems;
  /** Until then nothing is reconciled. */
  readonly ready: Promise<void>;
}

/** Keys worked on at a time: a home on disk commits in one go what comes together. */
const concurrency = 16;

/** With more imports that name one free address, one more or less changes the condition of none. */
const rivalsMax = 4;

/** Starts them all, each on its own queue. */
export function runControllers(queues: ControllerQueues, options: WiringOptions): void {
  const { context, views, policies, importPolicies, accessPolicies, trafficShifts, federated } = options;
  const { copies, members, memberServices, membership } = context;
  const gate = gateOf(options.ready);
  const whenSynced = () => options.ready;
  const records = own(memberServices.keys({ whenSynced, hasSlices: () => true }));
  const ownRecords = own(memberServices.keys({ whenSynced, hasSlices: () => true, only: membership.clusterId }));
  const shards = own(memberServices.keys({ whenSynced, hasSlices: () => false }));
  // Whether the older form of a cluster still counts depends on its slices too.
  const merged = own(memberServices.keys({ whenSynced, hasSlices: () => options.legacy.namespace !== undefined }));
  const run = (name: ControllerName, sources: readonly Source[], reconcile: Reconcile) => {
    const { world, log, metrics } = context;
    queues.run(name, runController({ world, log, metrics, name, sources: [gate, ...sources], reconcile, concurrency }));
  };

  const publications = new Publications();
  publications.onChange((key) => queues.add(['conditions'], [key]));
  const turns = createPublishingTurns(context);
  const exporting = createExportController({ context, publications, turns, sealing: options.sealing });
  const conditions = createConditionsController({ context, publications, turns });
  const shifts = createShifts(context, trafficShifts, options.countsOf, options.leftBy);
  const routes = createRoutes(context, importPolicies, shifts, {
    again: (keys) => queues.add(['import'], keys),
    statusAgain: (policy) => queues.add(['import-policy-status'], [policy]),
  });
  queues.expand('import', (key) => routes.names.namesOf(key));
  const importing = createImportController(context, options.allocator, routes);
  const policing = createPolicyController(context, policies);
  const placing = createPlacementController({ context, federated, problems: options.placementProblems });
  const placed = createPlacementStatusController(context, federated);
  const older = createLegacyController(context, options.legacy);
  const mergedView = createViewController(context, views);
  const identity = createIdentityController(context, options.properties);

  const exported = [own(copies.exports), own(copies.services)];
  const namespaces = (keysOf: (name: string) => Iterable<string>): Source => ({ informer: copies.namespaces, keysOf });

  run(
    'export',
    [...exported, ownRecords, keyed(copies.imports, sourceOfImport), keyed(copies.slices, localServiceKey)],
    exporting.reconcile,
  );
  run('conditions', [...exported, merged], conditions.reconcile);
  run(
    'import',
    [
      { informer: records.informer, keysOf: (key) => routes.names.namesOf(key) },
      own(copies.imports),
      { informer: copies.imports, keysOf: namesOfImport },
      { informer: copies.imports, keysOf: rivalKeys },
      keyed(copies.slices, importKey),
      keyed(copies.services, derivedFor),
      keyed(copies.services, transparentName),
      namespaces((name) => new Set([...memberServices.inNamespace(name), ...routes.names.wantingIn(name)])),
      { informer: withoutWaiting(importPolicies), keysOf: policyKeys },
      { informer: withoutWaiting(trafficShifts), keysOf: shiftKeys },
      { informer: copies.claims, keysOf: claimKeys },
    ],
    importing.reconcile,
  );
  run('merged-view', [shards, keyed(views, viewKey)], mergedView.reconcile);
  run(
    'policy',
    [
      ...exported,
      namespaces((name) => copies.services.byIndex(servicesByNamespace, name).map(keyOf)),
      // A policy may select any service, so a change of one looks at all of them; policies change rarely.
      { informer: policies, keysOf: () => copies.services.keys() },
    ],
    policing.reconcile,
  );
  run(
    'policy-status',
    [own(policies), keyed(copies.exports, (object) => object.metadata.labels?.[policyLabel])],
    policing.reconcileStatus,
  );
  run(
    'import-policy-status',
    [
      // Which one decides depends on all of them.
      { informer: importPolicies, keysOf: () => importPolicies.keys() },
      { informer: copies.imports, keysOf: policiesOfImport },
    ],
    routes.reconcileStatus,
  );
  const limiting = createAccessPolicies(context, { ...options.accessPolicyOptions, policies: accessPolicies });
  run(
    'access-policy',
    [
      { informer: withoutWaiting(accessPolicies), keysOf: (key) => [key] },
      { informer: copies.exports, keysOf: limiting.policiesIn },
    ],
    limiting.reconcile,
  );
  run('shift', [own(trafficShifts)], shifts.reconcile);
  run('placement', [...exported, keyed(federated, recordKey), namespaces(placementsIn)], placing.reconcile);
  run('placement-status', [shards, keyed(federated, recordKey)], placed.reconcile);
  run('identity', [own(options.properties)], identity.reconcile);
  queues.add(['identity'], identity.names);
  const again = (key: string) => queues.add(['inventory'], [key]);
  run('inventory', [named(members.clusters)], createInventoryController({ ...options, again }).reconcile);
  run('legacy', [...exported, merged, keyed(copies.imports, legacyKey)], older.reconcile);

  // If one of our objects was changed while our copies were outdated, the copies do not show it.
  const lookAgain = (informers: readonly Pick<Informer<unknown>, 'onReturn'>[], name: ControllerName, keys: Keys) => {
    for (const informer of informers) informer.onReturn(() => queues.add([name], keys()));
  };
  lookAgain([views], 'merged-view', () => [...memberServices.all(), ...Array.from(views.values(), viewKey)]);
  lookAgain([copies.imports, copies.slices, copies.claims], 'import', () => [
    ...memberServices.all(),
    ...copies.imports.keys(),
  ]);
  lookAgain([copies.exports], 'policy', () => copies.services.keys());
  lookAgain([copies.exports, copies.services], 'placement', () => recordKeys(federated));
  lookAgain([options.properties], 'identity', () => identity.names);
  members.on({
    returned: () =>
      queues.add(['export'], [...copies.exports.keys(), ...memberServices.recordedBy(membership.clusterId)]),
  });

  /** A policy may select any import; its status changes none. */
  function policyKeys(_key: string, next?: ServiceImportPolicy, previous?: ServiceImportPolicy): Iterable<string> {
    const isStatus =
      next !== undefined &&
      next.metadata.generation !== undefined &&
      next.metadata.generation === previous?.metadata.generation &&
      next.metadata.deletionTimestamp === previous?.metadata.deletionTimestamp;
    return isStatus ? [] : new Set([...memberServices.all(), ...copies.imports.keys()]);
  }

  /** All of them if another one decides: each names the one that does. */
  function policiesOfImport(_key: string, next?: ServiceImport, previous?: ServiceImport): Iterable<string> {
    const [by, before] = [next, previous].map((object) => object?.metadata.annotations?.[routedByAnnotation]);
    if (by !== before) return importPolicies.keys();
    return by === undefined ? [] : [by];
  }

  /** Whether the cluster has a Service of its own decides what its name may lead to. */
  function transparentName(service: Service): string | undefined {
    const key = keyOf(service);
    return routes.transparent.isWished(key) ? key : undefined;
  }

  /** While an import moves, the service has two: the one that comes lets the other go. */
  function namesOfImport(_key: string, next?: ServiceImport, previous?: ServiceImport): Iterable<string> {
    const sources = new Set([next, previous].flatMap((object) => (object ? [sourceOfImport(object)] : [])));
    return [...sources].flatMap((source) => [
      source,
      ...copies.imports.byIndex(importsBySource, source).map((object) => keyOf(object)),
    ]);
  }

  /** Its status may hold another percent. */
  function shiftKeys(_key: string, next?: TrafficShift, previous?: TrafficShift): Iterable<string> {
    return new Set([next, previous].flatMap((shift) => (shift && shiftedService(shift)) ?? []));
  }

  function placementsIn(namespace: string): string[] {
    return recordKeys(federated).filter((key) => key.startsWith(`${namespace}/`));
  }

  /** Imports whose conflicts over an address may be others now: the one that holds it, or the few that name it. */
  function rivalKeys(key: string, next: ServiceImport | undefined, previous: ServiceImport | undefined): string[] {
    const [after, before] = [next, previous].map((object) => (object ? addressesOf(object) : []));
    const changed = [...after!, ...before!].filter(
      (address) => !after!.includes(address) || !before!.includes(address),
    );
    return changed.flatMap((address) => {
      const owner = copies.claims.get(addressClaimName(address))?.spec.owner;
      if (owner !== undefined) return owner.kind === serviceImportType.kind ? [`${owner.namespace}/${owner.name}`] : [];
      if (copies.imports.countByIndex(importsByAddress, address) > rivalsMax) return [];
      return copies.imports
        .byIndex(importsByAddress, address)
        .map(keyOf)
        .filter((other) => other !== key);
    });
  }

  /** Owner of the claim, and imports that name its address; when it has become free, all waiting owners too. */
  function claimKeys(name: string, next: AddressClaim | undefined, previous: AddressClaim | undefined): string[] {
    const { owner } = (next ?? previous)!.spec;
    const ownKey = owner.kind === serviceImportType.kind ? [`${owner.namespace}/${owner.name}`] : [];
    const address = addressOfClaimName(name) ?? '';
    const users = copies.imports.byIndex(importsByAddress, address).map(keyOf);
    if (next !== undefined) return [...ownKey, ...users];
    return [...ownKey, ...users, ...copies.imports.byIndex(importsByReason, 'Exhausted').map(keyOf)];
  }
}

type Keys = () => Iterable<string>;
type Reconcile = (key: string) => Promise<WorkResult | undefined>;

// biome-ignore lint/suspicious/noExplicitAny: each source has its own kept type, which only its keysOf sees
type Source = ControllerSource<any>;

function own<T>(informer: ControllerSource<T>['informer']): Source {
  return { informer };
}

/** Without the namespace, where there is one alone. */
function named<T extends KubernetesObject>(informer: ControllerSource<T>['informer']): Source {
  return keyed<T>(informer, ({ metadata }) => metadata.name);
}

/** The keys an object belonged to and belongs to. */
function keyed<T>(informer: ControllerSource<T>['informer'], keyOf: (object: T) => string | undefined): Source {
  const keysOf = (_key: string, next: T | undefined, previous: T | undefined) => {
    const keys = [next && keyOf(next), previous && keyOf(previous)];
    return new Set(keys.filter((key) => key !== undefined));
  };
  return { informer, keysOf };
}

/** Names no keys; its controllers begin when the promise resolves. */
function gateOf(ready: Promise<void>): Source {
  return { informer: { on: () => () => {}, whenSynced: () => ready } };
}

/** Keys of the services that records of the broker are named after. */
export function recordKeys(records: { values(): Iterable<KubernetesObject> }): string[] {
  return Array.from(records.values(), recordKey).filter((key) => key !== undefined);
}

/** Key of the service that a record of the broker is named after. */
function recordKey(record: KubernetesObject): string | undefined {
  const service = parseRecordName(record.metadata.name);
  return service && formatServiceKey(service);
}

/** An account that may not read them, or a home without the definition, imports all the same: imports keep what they had. */
function withoutWaiting<T>(informer: Informer<T>): Pick<Informer<T>, 'on' | 'whenSynced'> {
  return { on: (handler) => informer.on(handler), whenSynced: () => Promise.resolve() };
}
