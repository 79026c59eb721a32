// A cluster's agent: every controller between its home and the broker, on shared copies of both. Builds and wires; what
// each of them does is in its own folder. Stopping resolves when writes under way have ended.

import { createAllocator } from '../addresses/allocator.ts';
import { Backoff } from '../base/backoff.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { sleep, type Timer, type World } from '../base/world.ts';
import type { Client } from '../client/client.ts';
import { createInformer } from '../client/informer.ts';
import type { AddressClaim } from '../model/address-claim.ts';
import { type FederatedService, federatedServiceType } from '../model/federated-service.ts';
import { formatServiceKey, parseRecordName } from '../model/names-clusterset.ts';
import { type KubernetesObject, keyOf } from '../model/object.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../model/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../model/service-import.ts';
import type { AgentContext, Membership } from './context.ts';
import { createEventRecorder } from './events.ts';
import { createConditionsController } from './export/conditions.ts';
import { createExportController } from './export/controller.ts';
import {
  createHomeCopies,
  importKey,
  importsByReason,
  localServiceKey,
  policyLabel,
  servicesByNamespace,
} from './home-copies.ts';
import { createImportController, type ImportController } from './import/controller.ts';
import { LeaseController } from './lease/controller.ts';
import { type Controller, type ControllerSource, runController } from './loop.ts';
import { Members } from './members.ts';
import { createPlacementController } from './placement/controller.ts';
import { createPolicyController } from './policy/controller.ts';
import { PolicyCopy } from './policy-copy.ts';
import { createScribeController } from './scribe/controller.ts';

export interface AgentOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly home: Client;
  readonly broker: Client;
  readonly membership: Membership;
  /** Namespace of the agent's own things at home. */
  readonly systemNamespace?: string;
}

export interface Agent {
  /** Returns at once: what is not there yet is waited for. */
  start(): void;
  stop(): Promise<void>;
}

/** How long the start waits for members whose records cannot be listed; what they had is left as it is meanwhile. */
const membersWaitMs = 10_000;
const sweepMs = 60_000;

export function createAgent(options: AgentOptions): Agent {
  const { world, home, broker, membership } = options;
  const log = options.log.with({ cluster: membership.clusterId });
  const copies = createHomeCopies({ home, world, log });
  const members = new Members({ world, log, broker, clusterset: membership.clusterset });
  const policy = new PolicyCopy({ world, log, broker, members, clusterset: membership.clusterset });
  const views = createInformer<ServiceImport>({
    client: broker,
    world,
    log,
    type: serviceImportType,
    namespace: membership.clusterset,
  });
  const policies = createInformer<ServiceExportPolicy>({ client: home, world, log, type: serviceExportPolicyType });
  const federated = createInformer<FederatedService>({
    client: broker,
    world,
    log,
    type: federatedServiceType,
    namespace: membership.clusterset,
  });
  const lease = new LeaseController({
    ...options,
    log,
    members,
    clusterId: membership.clusterId,
    namespace: membership.namespace,
    systemNamespace: options.systemNamespace ?? 'portolan-system',
    times: () => policy.current.lease,
    onVerdict: (clusterId) => {
      for (const key of members.servicesOf(clusterId)) for (const one of merging()) one.queue.add(key);
      // Who writes a view, or clears it away, depends on who lives.
      for (const view of views.values()) for (const key of keysOf(viewKey(view))) controllers['scribe']?.queue.add(key);
    },
  });
  const context: AgentContext = {
    ...options,
    log,
    copies,
    members,
    events: createEventRecorder({ home, world, log }),
    policy: () => policy.current,
    addressRules: () => policy.rules,
    addressRulesOf: (clusterId) => policy.rulesOf(clusterId),
    verdict: (clusterId) => lease.verdict(clusterId),
  };
  const allocator = createAllocator({ home, world, log, claims: copies.claims, holdMs: () => policy.current.holdMs });
  const controllers: Record<string, Controller> = {};
  const stopping = new AbortController();
  let sweepTimer: Timer | undefined;

  /** The controllers whose work depends on which shards count. */
  const merging = () => [controllers['import']!, controllers['conditions']!, controllers['scribe']!];

  const run = (name: string, sources: readonly Source[], worker: ImportController) => {
    controllers[name] = runController({ ...options, log, name, sources, reconcile: worker.reconcile });
  };

  function runControllers(ready: Promise<void>): void {
    const gate: Source = { informer: { on: () => () => {}, whenSynced: () => ready } };
    const services: Source = { informer: members.services({ whenSynced: () => ready }) };
    const ownServices: Source = { informer: members.services({ only: membership.clusterId, whenSynced: () => ready }) };
    const publishing = createExportController({
      context,
      onPublication: (key) => controllers['conditions']!.queue.add(key),
    });
    run(
      'export',
      [
        gate,
        ownServices,
        own(copies.exports),
        own(copies.services),
        own(copies.imports),
        keyed(copies.slices, localServiceKey),
      ],
      publishing,
    );
    const conditions = createConditionsController({ context, publication: publishing.publication });
    run('conditions', [gate, services, own(copies.exports), own(copies.services)], conditions);
    run(
      'import',
      [
        gate,
        services,
        own(copies.imports),
        keyed(copies.slices, importKey),
        { informer: copies.namespaces, keysOf: (name) => members.servicesIn(name) },
        { informer: copies.claims, keysOf: claimKeys },
      ],
      createImportController(context, allocator),
    );
    const exporting = createPolicyController(context, policies);
    const servicesOfNamespace = (name: string) => copies.services.byIndex(servicesByNamespace, name).map(keyOf);
    // A policy may select any service, so a change of one looks at all of them; policies change rarely.
    const everyService: Source = { informer: policies, keysOf: () => copies.services.keys() };
    const namespaceServices: Source = { informer: copies.namespaces, keysOf: servicesOfNamespace };
    run('policy', [gate, own(copies.services), own(copies.exports), namespaceServices, everyService], exporting);
    const byPolicy = keyed(copies.exports, (object) => object.metadata.labels?.[policyLabel]);
    run('policy-status', [gate, own(policies), byPolicy], { reconcile: exporting.reconcileStatus });
    const placed = keyed(federated, viewKey);
    const namespacePlacements: Source = { informer: copies.namespaces, keysOf: placementsIn };
    run(
      'placement',
      [gate, placed, own(copies.services), own(copies.exports), namespacePlacements],
      createPlacementController(context, federated),
    );
    run('scribe', [gate, services, keyed(views, viewKey)], createScribeController(context, views));
  }

  function placementsIn(namespace: string): string[] {
    const keys = Array.from(federated.values(), viewKey).filter((key) => key !== undefined);
    return keys.filter((key) => key.startsWith(`${namespace}/`));
  }

  /** Owner of the claim; when an address has become free, everybody who waits for one too. */
  function claimKeys(_key: string, next: AddressClaim | undefined, previous: AddressClaim | undefined): string[] {
    const { owner } = (next ?? previous)!.spec;
    const ownKey = owner.kind === serviceImportType.kind ? [`${owner.namespace}/${owner.name}`] : [];
    if (next !== undefined) return ownKey;
    return [...ownKey, ...copies.imports.byIndex(importsByReason, 'Exhausted').map(keyOf)];
  }

  async function becomeReady(): Promise<void> {
    await Promise.all([policy.whenSynced(stopping.signal), members.clusters.whenSynced(stopping.signal)]);
    await persistently(() => lease.start());
    const deadlineMs = world.clock.monotonicMs() + membersWaitMs;
    while (!members.hasSynced && world.clock.monotonicMs() < deadlineMs) await sleep(world.timers, 20, stopping.signal);
  }

  async function persistently(attempt: () => Promise<void>): Promise<void> {
    const backoff = new Backoff(world.random, { firstMs: 200, delayMsMax: 10_000 });
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        log.warn('agent not ready yet', { error });
        await sleep(world.timers, backoff.nextMs(), stopping.signal);
      }
    }
  }

  function policyChanged(): void {
    const keys = new Set([...copies.exports.keys(), ...copies.imports.keys()]);
    for (const member of members.all()) for (const key of members.servicesOf(member.id)) keys.add(key);
    for (const view of views.values()) for (const key of keysOf(viewKey(view))) keys.add(key);
    for (const key of keys) for (const controller of Object.values(controllers)) controller.queue.add(key);
  }

  function sweepLater(): void {
    sweepTimer = world.timers.after(sweepMs, () => {
      allocator
        .sweep()
        .catch((error: unknown) => log.warn('released addresses not swept', { error }))
        .finally(() => stopping.signal.aborted || sweepLater());
    });
  }

  return {
    start: () => {
      const ready = becomeReady();
      ready.catch((error: unknown) => stopping.signal.aborted || log.error('agent did not become ready', { error }));
      runControllers(ready);
      policy.onChange(policyChanged);
      for (const part of [copies, members, policy, views, policies, federated]) part.start();
      sweepLater();
    },
    stop: async () => {
      stopping.abort();
      sweepTimer?.cancel();
      lease.stop();
      for (const part of [copies, members, policy, views, policies, federated]) part.stop();
      await Promise.all(Object.values(controllers).map((controller) => controller.stop()));
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: each source has its own kept type, which only its keysOf sees
type Source = ControllerSource<any>;

function own<T>(informer: ControllerSource<T>['informer']): Source {
  return { informer };
}

/** The keys an object belonged to and belongs to. */
function keyed<T>(informer: ControllerSource<T>['informer'], keyOf: (object: T) => string | undefined): Source {
  const keysOf = (_key: string, next: T | undefined, previous: T | undefined) => {
    const keys = [next && keyOf(next), previous && keyOf(previous)];
    return new Set(keys.filter((key) => key !== undefined));
  };
  return { informer, keysOf };
}

/** Of the service that a record of the broker is named after. */
function viewKey(view: KubernetesObject): string | undefined {
  const service = parseRecordName(view.metadata.name);
  return service && formatServiceKey(service);
}

function keysOf(key: string | undefined): string[] {
  return key === undefined ? [] : [key];
}
