// The controllers of an agent and what each of them listens to: the one place to see who reacts to what.

import type { Allocator } from '../../addresses/allocator.ts';
import type { WorkResult } from '../../base/queue.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { type ControllerSource, runController } from '../../kube/controller/loop.ts';
import { type KubernetesObject, keyOf } from '../../kube/objects/object.ts';
import { ExportController } from '../controllers/export.ts';
import { ConditionsController } from '../controllers/export-conditions.ts';
import { createIdentityController } from '../controllers/identity.ts';
import { ImportController } from '../controllers/import.ts';
import { InventoryController } from '../controllers/inventory/profiles.ts';
import { createLegacyController } from '../controllers/legacy.ts';
import { MergedViewController, viewKey } from '../controllers/merged-view.ts';
import { PlacementController } from '../controllers/placement.ts';
import type { PlacementProblems } from '../controllers/placement-problems.ts';
import { createPlacementStatusController } from '../controllers/placement-status.ts';
import { type AccessPoliciesOptions, createAccessPolicies } from '../controllers/policies/access-policies.ts';
import { createPolicyController } from '../controllers/policies/exports-by-policy.ts';
import { Routes } from '../controllers/policies/routes.ts';
import { Shifts } from '../controllers/policies/shifts.ts';
import { createPublishingTurns } from '../controllers/publishing-turns.ts';
import type { SealedExports } from '../controllers/sealing/sealed-exports.ts';
import type { AgentContext } from '../copies/context.ts';
import type { DataPlanes } from '../copies/data-planes.ts';
import { importKey, legacyKey, localServiceKey, servicesByNamespace } from '../copies/home-copies.ts';
import { Publications } from '../copies/publications.ts';
import { policyLabel } from '../rules/agent-marks.ts';
import { derivedFor } from '../rules/derived-service.ts';
import { sourceOfImport } from '../rules/routing/import-as.ts';
import { type AgentCopies, recordKey, recordKeys } from './agent-copies.ts';
import type { ControllerName, ControllerQueues } from './controller-queues.ts';
import { ImportKeys } from './import-keys.ts';

export interface WiringOptions {
  readonly context: AgentContext;
  readonly copies: AgentCopies;
  readonly sealing: SealedExports | undefined;
  readonly allocator: Allocator;
  readonly dataPlanes: DataPlanes;
  readonly access: Pick<AccessPoliciesOptions, 'mode' | 'closed'>;
  readonly placementProblems: PlacementProblems;
  /** Until then nothing is reconciled. */
  readonly ready: Promise<void>;
}

/** Keys worked on at a time: a home on disk commits in one go what comes together. */
const concurrency = 16;

/** Starts them all, each on its own queue. */
export function runControllers(queues: ControllerQueues, options: WiringOptions): void {
  const wiring = new Wiring(queues, options);
  wiring.runExports();
  wiring.runImports();
  wiring.runPolicies();
  wiring.runPlacement();
  wiring.runRest();
  wiring.lookAgain();
}

class Wiring {
  readonly #queues: ControllerQueues;
  readonly #options: WiringOptions;
  readonly #gate: Source;
  /** Names each service whose export or Service here has changed. */
  readonly #exported: readonly Source[];
  /** Whether the older form of a cluster still counts depends on its slices too. */
  readonly #merged: Source;
  readonly #shards: Source;
  readonly #exports: ExportController;
  readonly #conditions: ConditionsController;
  readonly #shifts: Shifts;
  readonly #routes: Routes;
  readonly #imports: ImportController;
  readonly #identity: ReturnType<typeof createIdentityController>;

  constructor(queues: ControllerQueues, options: WiringOptions) {
    this.#queues = queues;
    this.#options = options;
    const { context, copies, dataPlanes } = options;
    this.#gate = gateOf(options.ready);
    this.#exported = [own(context.copies.exports), own(context.copies.services)];
    this.#merged = this.#records({ hasSlices: () => copies.legacy.namespace !== undefined });
    this.#shards = this.#records({ hasSlices: () => false });
    const publications = new Publications();
    publications.onChange((key) => queues.add(['conditions'], [key]));
    const turns = createPublishingTurns(context);
    this.#exports = new ExportController({ context, publications, turns, sealing: options.sealing });
    this.#conditions = new ConditionsController({ context, publications, turns });
    this.#shifts = new Shifts(context, copies.trafficShifts, dataPlanes);
    this.#routes = new Routes(context, copies.importPolicies, this.#shifts, {
      again: (keys) => queues.add(['import'], keys),
      statusAgain: (policy) => queues.add(['import-policy-status'], [policy]),
    });
    queues.expand('import', (key) => this.#routes.names.namesOf(key));
    this.#imports = new ImportController(context, options.allocator, this.#routes);
    this.#identity = createIdentityController(context, copies.properties);
  }

  runExports(): void {
    const { copies, membership } = this.#options.context;
    this.#run(
      'export',
      [
        ...this.#exported,
        this.#records({ hasSlices: () => true, only: membership.clusterId }),
        keyed(copies.imports, sourceOfImport),
        keyed(copies.slices, localServiceKey),
      ],
      (key) => this.#exports.reconcile(key),
    );
    this.#run('conditions', [...this.#exported, this.#merged], (key) => this.#conditions.reconcile(key));
  }

  runImports(): void {
    const { context, copies } = this.#options;
    const { imports, slices, services, claims } = context.copies;
    const { importPolicies, trafficShifts, views } = copies;
    const keys = new ImportKeys(context, importPolicies, this.#routes);
    const records = this.#records({ hasSlices: () => true });
    this.#run(
      'import',
      [
        { informer: records.informer, keysOf: (key) => this.#routes.names.namesOf(key) },
        own(imports),
        { informer: imports, keysOf: (_key, next, previous) => keys.ofSameService(next, previous) },
        { informer: imports, keysOf: (key, next, previous) => keys.rivalsOf(key, next, previous) },
        keyed(slices, importKey),
        keyed(services, derivedFor),
        keyed(services, (service) => keys.ofTransparentName(service)),
        this.#namespaces((name) => keys.inNamespace(name)),
        { informer: withoutWaiting(importPolicies), keysOf: (_key, next, previous) => keys.ofPolicy(next, previous) },
        { informer: withoutWaiting(trafficShifts), keysOf: (_key, next, previous) => keys.ofShift(next, previous) },
        { informer: claims, keysOf: (name, next, previous) => keys.ofClaim(name, next, previous) },
      ],
      (key) => this.#imports.reconcile(key),
    );
    const view = new MergedViewController(context, views);
    this.#run('merged-view', [this.#shards, keyed(views, viewKey)], (key) => view.reconcile(key));
  }

  runPolicies(): void {
    const { context, copies } = this.#options;
    const { services, exports, imports } = context.copies;
    const policing = createPolicyController(context, copies.policies);
    this.#run(
      'policy',
      [
        ...this.#exported,
        this.#namespaces((name) => services.byIndex(servicesByNamespace, name).map(keyOf)),
        // A policy may select any service, so a change of one looks at all of them; policies change rarely.
        { informer: copies.policies, keysOf: () => services.keys() },
      ],
      policing.reconcile,
    );
    this.#run(
      'policy-status',
      [own(copies.policies), keyed(exports, (object) => object.metadata.labels?.[policyLabel])],
      policing.reconcileStatus,
    );
    const keys = new ImportKeys(context, copies.importPolicies, this.#routes);
    this.#run(
      'import-policy-status',
      [
        // Which one decides depends on all of them.
        { informer: copies.importPolicies, keysOf: () => copies.importPolicies.keys() },
        { informer: imports, keysOf: (_key, next, previous) => keys.policiesOf(next, previous) },
      ],
      (name) => this.#routes.reconcileStatus(name),
    );
    this.#runAccessPolicies();
    this.#run('shift', [own(copies.trafficShifts)], (key) => this.#shifts.reconcile(key));
  }

  #runAccessPolicies(): void {
    const { context, copies, access, dataPlanes } = this.#options;
    const leases = () => dataPlanes.reports;
    const limiting = createAccessPolicies(context, { ...access, leases, policies: copies.accessPolicies });
    this.#run(
      'access-policy',
      [
        { informer: withoutWaiting(copies.accessPolicies), keysOf: (key) => [key] },
        { informer: context.copies.exports, keysOf: limiting.policiesIn },
      ],
      limiting.reconcile,
    );
  }

  runPlacement(): void {
    const { context, copies, placementProblems: problems } = this.#options;
    const { federated } = copies;
    const placing = new PlacementController({ context, federated, problems });
    const placementsIn = (namespace: string) => recordKeys(federated).filter((key) => key.startsWith(`${namespace}/`));
    this.#run('placement', [...this.#exported, keyed(federated, recordKey), this.#namespaces(placementsIn)], (key) =>
      placing.reconcile(key),
    );
    const placed = createPlacementStatusController(context, federated);
    this.#run('placement-status', [this.#shards, keyed(federated, recordKey)], placed.reconcile);
  }

  runRest(): void {
    const { context, copies } = this.#options;
    this.#run('identity', [own(copies.properties)], this.#identity.reconcile);
    this.#queues.add(['identity'], this.#identity.names);
    const again = (key: string) => this.#queues.add(['inventory'], [key]);
    const inventory = new InventoryController({ context, profiles: copies.profiles, again });
    this.#run('inventory', [named(copies.members.clusters)], (id) => inventory.reconcile(id));
    const older = createLegacyController(context, copies.legacy);
    this.#run('legacy', [...this.#exported, this.#merged, keyed(context.copies.imports, legacyKey)], older.reconcile);
  }

  /** If one of our objects was changed while our copies were outdated, the copies do not show it. */
  lookAgain(): void {
    const { context, copies } = this.#options;
    const { imports, slices, claims, exports, services } = context.copies;
    const { memberServices, members, membership } = context;
    this.#onReturn([copies.views], 'merged-view', () => [
      ...memberServices.all(),
      ...Array.from(copies.views.values(), viewKey),
    ]);
    this.#onReturn([imports, slices, claims], 'import', () => [...memberServices.all(), ...imports.keys()]);
    this.#onReturn([exports], 'policy', () => services.keys());
    this.#onReturn([exports, services], 'placement', () => recordKeys(copies.federated));
    this.#onReturn([copies.properties], 'identity', () => this.#identity.names);
    members.on({
      returned: () =>
        this.#queues.add(['export'], [...exports.keys(), ...memberServices.recordedBy(membership.clusterId)]),
    });
  }

  #run(name: ControllerName, sources: readonly Source[], reconcile: Reconcile): void {
    const { world, log, metrics } = this.#options.context;
    const all = [this.#gate, ...sources];
    this.#queues.run(name, runController({ world, log, metrics, name, sources: all, reconcile, concurrency }));
  }

  #onReturn(informers: readonly Pick<Informer<unknown>, 'onReturn'>[], name: ControllerName, keys: Keys): void {
    for (const informer of informers) informer.onReturn(() => this.#queues.add([name], keys()));
  }

  #records(which: { readonly hasSlices: () => boolean; readonly only?: string }): Source {
    return own(this.#options.context.memberServices.keys({ whenSynced: () => this.#options.ready, ...which }));
  }

  #namespaces(keysOf: (name: string) => Iterable<string>): Source {
    return { informer: this.#options.context.copies.namespaces, keysOf };
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

/** An account that may not read them, or a home without the definition, imports all the same: imports keep what they had. */
function withoutWaiting<T>(informer: Informer<T>): Pick<Informer<T>, 'on' | 'whenSynced'> {
  return { on: (handler) => informer.on(handler), whenSynced: () => Promise.resolve() };
}
