// A cluster's agent: every controller between its home and the broker, on shared copies of both. Builds and starts; who
// reacts to what is in wiring.ts, what each of them does in its own folder. Stopping resolves when writes under way have
// ended.

import { createAllocator } from '../../addresses/allocator.ts';
import { Backoff } from '../../base/backoff.ts';
import type { Hpke } from '../../base/keys/hpke.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IpFamily } from '../../base/net/ip.ts';
import { sleep, type Timer, type World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createEventRecorder } from '../../kube/controller/events.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { runClusterSetDns } from '../controllers/clusterset-dns.ts';
import { HomeContact } from '../controllers/home-contact.ts';
import { summaryKey } from '../controllers/inventory/profiles.ts';
import { LeaseController } from '../controllers/lease.ts';
import { viewKey } from '../controllers/merged-view.ts';
import { createPlacementProblems } from '../controllers/placement-problems.ts';
import { shiftedService, shiftsByService } from '../controllers/policies/shifts.ts';
import { createEnforcementReporter } from '../controllers/reports/enforcement-report.ts';
import { createGatewayReporter } from '../controllers/reports/gateway-report.ts';
import { createPropertyReporter } from '../controllers/reports/property-report.ts';
import { createResolverReporter } from '../controllers/reports/resolver-report.ts';
import { createVersionReporter } from '../controllers/reports/version-report.ts';
import { AccessCopy } from '../copies/access-copy.ts';
import type { AgentContext, Membership } from '../copies/context.ts';
import { DataPlanes } from '../copies/data-planes.ts';
import { createHomeCopies } from '../copies/home-copies.ts';
import { LegacyRecords } from '../copies/legacy-records.ts';
import { MemberServices } from '../copies/member-services.ts';
import { NetworksCopy } from '../copies/networks-copy.ts';
import { followOwnRanges } from '../copies/own-ranges.ts';
import { PolicyCopy } from '../copies/policy-copy.ts';
import { type ClusterProfile, clusterProfileType } from '../kinds/cluster-profile.ts';
import { type ClusterProperty, clusterPropertyType } from '../kinds/cluster-property.ts';
import { type FederatedService, federatedServiceType } from '../kinds/federated-service.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import { type ServiceAccessPolicy, serviceAccessPolicyType } from '../kinds/service-access-policy.ts';
import { type ServiceExportPolicy, serviceExportPolicyType } from '../kinds/service-export-policy.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../kinds/service-import-policy.ts';
import { type TrafficShift, trafficShiftType } from '../kinds/traffic-shift.ts';
import { type Member, MemberFollower } from '../members/follower.ts';
import { SharedCopy } from '../members/shared-copy.ts';
import { hasAddressIn } from '../rules/address-plan.ts';
import { refusal } from '../rules/endpoint-address.ts';
import { restoredAnnotations } from '../rules/leases/broker-restore.ts';
import { timesFor } from '../rules/leases/heartbeat-rate.ts';
import { homeAwayOf } from '../rules/leases/home-away.ts';
import { type JudgingRules, judgingRules } from '../rules/leases/observing.ts';
import { trustAnnotations } from '../rules/leases/trusted-authorities.ts';
import { localityOf } from '../rules/locality.ts';
import { featureAnnotations } from '../rules/networks/known-by.ts';
import { listenerPortsIn } from '../rules/networks/networks.ts';
import { familiesOf } from '../rules/networks/own-families.ts';
import { placementsAnnotation } from '../rules/placement.ts';
import { measureAgent } from './agent-metrics.ts';
import { AgentSealing } from './agent-sealing.ts';
import { type ControllerName, ControllerQueues } from './controller-queues.ts';
import { recordKeys, runControllers } from './wiring.ts';

export interface AgentOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly home: Client;
  readonly broker: Client;
  readonly membership: Membership;
  /** Namespace of the agent's own things at home. */
  readonly systemNamespace?: string;
  /** Whether the cluster IPs of Services are routed here; found out by asking the home if absent. */
  readonly routesServices?: boolean | undefined;
  /** Suffixes of the set's federations. */
  readonly federationZones?: FederationZones;
  /** PEM of the authorities by which this agent knows the broker; empty for those of the system. */
  readonly trustedAuthorities?: string;
  /** Without it no export is sealed, and none that is sealed is read. */
  readonly hpke?: Hpke;
  /** In place of the rules of judging leases: deliberately wrong ones. */
  readonly judging?: JudgingRules;
}

interface FederationZones {
  current(): readonly string[];
  /** By federation: base64 of PEM, by which its authority is known to resolvers. */
  authorities(): Readonly<Record<string, string>>;
  onChanged(handler: () => void): void;
}

export interface Agent {
  /** Returns at once: what is not there yet is waited for. */
  start(): void;
  /** The broker does not answer and this agent is about to stop for it: writes to the home that what it has is old. */
  leaveWord(): Promise<void>;
  stop(): Promise<void>;
}

/** How long the start waits for lists before it goes on: with renewals, and with records of the older form missing. */
const listsWaitMs = 10_000;
const sweepMs = 60_000;
const upgradeCheckMs = 5_000;
const dataPlaneCheckMs = 1_000;
const enforcementCheckMs = 5_000;
const sealingCheckMs = 5_000;
const brokerCheckMs = 500;
const versionCheckMs = 300_000;
/** A home that does not take it either does not hold up the end. */
const leaveWordMsMax = 5_000;

const unreadableRecords =
  'records of members are not read yet, imports stay as they are; if the broker refuses it, run portolan broker init there';

/** Their work depends on which shards count. */
const merging: readonly ControllerName[] = ['import', 'conditions', 'merged-view'];
const all: readonly ControllerName[] = [...merging, 'export', 'legacy'];

export function createAgent(options: AgentOptions): Agent {
  const { world, home, broker, membership } = options;
  const log = options.log.with({ cluster: membership.clusterId });
  const queues = new ControllerQueues();
  const atBroker = { client: broker, world, log, namespace: membership.clusterset };
  const copies = createHomeCopies({ home, world, log });
  const { clusterset, clusterId, namespace } = membership;
  const judging = options.judging ?? judgingRules;
  const systemNamespace = options.systemNamespace ?? 'portolan-system';
  const sealing =
    options.hpke &&
    new AgentSealing({
      ...{ world, log, home, broker, clusterset, clusterId, systemNamespace, hpke: options.hpke },
      policy: () => policy,
      members: () => members,
    });
  const members: MemberFollower = new MemberFollower({
    ...{ world, log, broker, clusterset, hasEndpoints: true },
    sealing: sealing?.follower,
  });
  const memberServices = new MemberServices({ members, log });
  const policy: PolicyCopy = new PolicyCopy({ world, log, broker, members, clusterset, clusterId });
  const networks = new NetworksCopy({ members, policy, clusterId });
  const views = createInformer<ServiceImport>({ ...atBroker, type: serviceImportType });
  const federated = createInformer<FederatedService>({ ...atBroker, type: federatedServiceType });
  const profiles = new SharedCopy<ClusterProfile>({ ...atBroker, type: clusterProfileType });
  const atHome = { client: home, world, log };
  const policies = createInformer<ServiceExportPolicy>({ ...atHome, type: serviceExportPolicyType });
  const importPolicies = createInformer<ServiceImportPolicy>({ ...atHome, type: serviceImportPolicyType });
  const accessPolicies = createInformer<ServiceAccessPolicy>({ ...atHome, type: serviceAccessPolicyType });
  const trafficShifts = createInformer<TrafficShift>({
    ...atHome,
    type: trafficShiftType,
    indexes: { [shiftsByService]: (shift) => [shiftedService(shift) ?? ''] },
  });
  const legacy = new LegacyRecords({
    ...options,
    log,
    members,
    clusterId,
    onService: (key) => queues.add(['import', 'conditions', 'legacy'], [key]),
  });
  const properties = createInformer<ClusterProperty>({ client: home, world, log, type: clusterPropertyType });
  const events = createEventRecorder({ home, world, log });
  const placementProblems = createPlacementProblems({
    events,
    log,
    exists: (name) =>
      federated.hasSynced ? federated.get(`${membership.clusterset}/${name}`) !== undefined : undefined,
  });
  let restoredMs: number | undefined;
  let brokerAwaySinceMs: number | undefined;
  let isLeaving = false;
  let families: readonly IpFamily[] | undefined;
  const homeContact = new HomeContact({ world, log, home, systemNamespace, onChange: () => lease.renewNow() });
  const lease = new LeaseController({
    ...options,
    log,
    members,
    clusterId,
    namespace,
    systemNamespace,
    times: () => judging.times(timesFor(policy.current.lease, members.all().length)),
    rules: judging,
    homeAwaySinceMs: () => homeContact.awaySinceMs(),
    annotations: (present) => ({
      ...placementProblems.annotations(present),
      ...trustAnnotations(options.trustedAuthorities),
      ...featureAnnotations(),
      ...restoredAnnotations(restoredMs, world.clock.wallMs()),
    }),
    onVerdict: (clusterId) => {
      queues.add(merging, memberServices.exportedBy(clusterId));
      queues.add(['import-policy-status'], importPolicies.keys());
      // The living members determine the writer of each view.
      viewsChanged();
      placementsChanged();
      inventoryChanged(clusterId);
    },
    onOtherHistory: () => {
      restoredMs = world.clock.wallMs();
      log.warn('the broker does not have the last renewal and may have been restored: listing everything again');
      for (const copy of [members, policy, legacy, views, federated, profiles, lease]) copy.relist();
    },
  });
  const context: AgentContext = {
    ...options,
    log,
    copies,
    members,
    memberServices,
    legacy,
    events,
    policy: () => policy.current,
    ownAddresses: () => policy.ownAddressesOf(membership.clusterId),
    clusterSetIps: () => {
      const set = policy.current.clusterSetIps;
      return set === 'none' ? set : (members.get(membership.clusterId)?.cluster.spec.clusterSetIP ?? set);
    },
    hasProxy: () => dataPlanes.hasProxy,
    routesServices: () => options.routesServices ?? dataPlanes.routesServices,
    families: () => families,
    addressRules: () => policy.rules,
    addressRulesOf: (clusterId) => policy.rulesOf(clusterId),
    brokerAwaySinceMs: () => brokerAwaySinceMs,
    networks: () => networks.current,
    unreachedFrom: () => dataPlanes.unreachedFrom,
    gatewayChecks: () => dataPlanes.gatewayChecks,
    silentFor: (service) => dataPlanes.silentFor(service),
    verdict: (clusterId) => lease.verdict(clusterId),
  };
  const allocator = createAllocator({ home, world, log, claims: copies.claims, holdMs: () => policy.current.holdMs });
  const dnsOptions = runClusterSetDns({
    world,
    log,
    home,
    systemNamespace,
    wanted: (present) => ({
      dns: policy.current.dns,
      locality: localityOf(policy.current.locality, [...members.clusters.values()]),
      networks: networks.read(listenerPortsIn(present)),
      access: access.read(present),
      callers: access.readCallers(present),
      addressPlan: {
        federationZones: options.federationZones?.current() ?? [],
        authorities: options.federationZones?.authorities() ?? {},
        ranges: policy.current.addressRanges,
      },
    }),
    // Not known yet: it may be.
    isRangeInUse: (range) => !copies.imports.hasSynced || hasAddressIn(copies.imports.values(), range),
  });
  const access = new AccessCopy({
    ...{ world, log, home, systemNamespace, members, policy, clusterId, callers: accessPolicies },
    onChange: () => optionsChanged(),
  });
  const dataPlanes = new DataPlanes({
    home,
    world,
    log,
    systemNamespace,
    homeAnswersForMs: () => homeContact.answersForMs(),
    onChange: () => {
      queues.add(['import'], copies.imports.keys());
      queues.add(['export'], copies.exports.keys());
    },
    onSilent: (service) => queues.add(['import'], [service]),
  });
  const resolverReporter = createResolverReporter({
    ...{ world, log, home, broker: options.broker },
    systemNamespace,
    ...membership,
  });
  const gatewayReporter = createGatewayReporter({
    ...{ world, log, home, broker: options.broker, services: copies.services, clusters: members.clusters },
    refusal: (address, allowedRanges) => refusal(address, { ...policy.rules, allowedRanges }),
    systemNamespace,
    ...membership,
  });
  const propertyReporter = createPropertyReporter({
    ...{ world, log, home, broker: options.broker, properties, clusters: members.clusters },
    systemNamespace,
    ...membership,
  });
  const enforcementReporter = createEnforcementReporter({
    ...{ world, log, home, broker: options.broker, clusters: members.clusters, systemNamespace },
    mode: () => access.mode,
    leases: () => dataPlanes.reports,
    ...membership,
  });
  const versionReporter = createVersionReporter({
    ...{ world, log, home, broker: options.broker, clusters: members.clusters, systemNamespace },
    ...membership,
  });
  const reporters = [resolverReporter, gatewayReporter, propertyReporter, enforcementReporter, versionReporter];
  const ownRanges = followOwnRanges({
    ...{ world, log, broker, namespace, services: copies.services },
    onRanges: (ranges) => policy.setOwnRanges(ranges),
    onPodRanges: (ranges) => {
      access.setJoinedPodRanges(ranges);
      const before = families;
      families = familiesOf(ranges);
      if (before?.join() !== families?.join()) queues.add(['import'], copies.imports.keys());
    },
  });
  const parts = [
    copies,
    members,
    policy,
    views,
    policies,
    importPolicies,
    accessPolicies,
    trafficShifts,
    federated,
    properties,
    dataPlanes,
    ownRanges,
    access,
  ];

  const stopping = new AbortController();
  const isRunning = () => !stopping.signal.aborted;
  const { verdict } = context;
  if (options.metrics)
    measureAgent(options.metrics, { copies, members, verdict, policy: () => policy.current, isRunning });
  const timers = new Set<Timer>();
  let wasEverybodyUpgraded = false;

  function viewsChanged(): void {
    queues.add(['merged-view'], Array.from(views.values(), viewKey));
  }

  function optionsChanged(): void {
    if (policy.hasSynced && members.clusters.hasSynced) dnsOptions.nudge();
  }

  function placementsChanged(): void {
    queues.add(['placement-status'], recordKeys(federated));
  }

  /** Everything if the change may be of the member that writes. Where this one never does, profiles are not read. */
  function inventoryChanged(changed?: string): void {
    const writers = policy.current.inventoryWriters;
    if (!writers.includes(clusterId)) return profiles.close();
    if (!profiles.isOpen) {
      profiles.open();
      void profiles.whenSynced(stopping.signal).then(
        () => inventoryChanged(),
        () => {},
      );
    }
    const isOne = changed !== undefined && !writers.includes(changed);
    queues.add(['inventory'], isOne ? [changed] : [...members.all().map(({ id }) => id), summaryKey]);
  }

  profiles.on((_key, next, previous) => queues.add(['inventory'], [(next ?? previous)!.metadata.name]));
  profiles.onReturn(() => inventoryChanged());
  options.federationZones?.onChanged(optionsChanged);

  async function becomeReady(): Promise<void> {
    await Promise.all([policy, members.clusters].map((copy) => copy.whenSynced(stopping.signal)));
    dnsOptions.nudge();
    sealing?.look();
    await patiently(() => members.hasSynced);
    if (!members.hasSynced) log.warn(unreadableRecords, { error: members.problem });
    await persistently(() => ownRanges.read());
    await persistently(() => lease.start());
    await members.whenSynced(stopping.signal);
    await patiently(() => legacy.hasSynced && importPolicies.hasSynced && trafficShifts.hasSynced);
    await patiently(() => sealing?.isReady !== false);
    // Policies that limit callers reach data planes before the first export is accepted.
    await patiently(() => accessPolicies.hasSynced);
    dnsOptions.nudge();
  }

  async function patiently(isIn: () => boolean): Promise<void> {
    const deadlineMs = world.clock.monotonicMs() + listsWaitMs;
    while (!isIn() && world.clock.monotonicMs() < deadlineMs) await sleep(world.timers, 20, stopping.signal);
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
    networks.changed();
    sealing?.look();
    optionsChanged();
    lease.timesChanged();
    legacy.follow(policy.current.legacyNamespace);
    const keys = new Set([
      ...copies.exports.keys(),
      ...copies.imports.keys(),
      ...recordKeys(views),
      ...memberServices.all(),
    ]);
    queues.add(all, keys);
    placementsChanged();
    inventoryChanged();
  }

  /** A member that comes or goes, or whose ranges change, concerns the services it has; we ourselves all of them. */
  function memberChanged(clusterId: string, member: Member | undefined): void {
    networks.changed();
    sealing?.clusterChanged(clusterId, member);
    optionsChanged();
    if (clusterId === membership.clusterId) return policyChanged();
    queues.add(merging, memberServices.exportedBy(clusterId));
    placementsChanged();
    // Views without exports may have been for this one to clear away.
    if (member === undefined) viewsChanged();
    if (policy.current.legacyNamespace !== undefined) queues.add(['legacy'], copies.exports.keys());
  }

  function heartbeatChanged(id: string, next: Heartbeat | undefined, previous: Heartbeat | undefined): void {
    if (next === undefined || previous === undefined || homeAwayOf(next)?.since !== homeAwayOf(previous)?.since)
      inventoryChanged(id);
    const [now, before] = [next, previous].map((one) => one?.metadata.annotations?.[placementsAnnotation]);
    if (now !== before) placementsChanged();
  }

  async function lookForUpgrades(): Promise<void> {
    await legacy.lookForHeartbeats();
    const isEverybodyUpgraded = legacy.isEverybodyUpgraded();
    if (isEverybodyUpgraded === wasEverybodyUpgraded) return;
    wasEverybodyUpgraded = isEverybodyUpgraded;
    queues.add(['legacy'], copies.exports.keys());
  }

  function lookAtBroker(): void {
    // Word was left, perhaps sooner than the broker counts as away: nothing takes it back.
    if (isLeaving) return;
    const lostMs = lease.brokerLostMs();
    if ((lostMs === undefined) !== (brokerAwaySinceMs === undefined)) void tellBroker(lostMs);
  }

  /** Conditions that rest on the broker become Unknown, or known again. */
  function tellBroker(lostMs: number | undefined): Promise<void> {
    brokerAwaySinceMs = lostMs === undefined ? undefined : world.clock.wallMs() - lostMs;
    queues.add(['conditions'], copies.exports.keys());
    // That it answers again is noted with the renewal that shows it.
    return brokerAwaySinceMs === undefined ? Promise.resolve() : lease.noteBroker(brokerAwaySinceMs);
  }

  function upgradesChanged(): void {
    lookForUpgrades().catch((error: unknown) => log.warn('cannot see which members are upgraded', { error }));
  }

  function sweep(): void {
    allocator.sweep().catch((error: unknown) => log.warn('released addresses not swept', { error }));
  }

  function every(periodMs: number, run: () => void): void {
    const timer = world.timers.after(periodMs, () => {
      timers.delete(timer);
      run();
      every(periodMs, run);
    });
    timers.add(timer);
  }

  return {
    start: () => {
      const ready = becomeReady();
      ready.catch((error: unknown) => stopping.signal.aborted || log.error('agent did not become ready', { error }));
      runControllers(queues, {
        context,
        sealing: sealing?.exportsOf(context, (keys) => queues.add(['export'], keys)),
        allocator,
        legacy,
        views,
        policies,
        importPolicies,
        accessPolicies,
        accessPolicyOptions: {
          mode: () => access.mode,
          leases: () => dataPlanes.reports,
          closed: () => access.closed,
        },
        trafficShifts,
        countsOf: (service) => dataPlanes.countsOf(service),
        leftBy: (service, cluster) => dataPlanes.leftBy(service, cluster),
        federated,
        properties,
        profiles,
        placementProblems,
        ready,
      });
      policy.onChange(policyChanged);
      members.on({ changed: memberChanged, heartbeat: heartbeatChanged });
      for (const part of parts) part.start();
      for (const reporter of reporters) reporter.start();
      sealing?.start();
      homeContact.start();
      every(sweepMs, sweep);
      if (sealing !== undefined) {
        every(sweepMs, () => sealing.sweep());
        every(sealingCheckMs, () => sealing.look());
      }
      every(brokerCheckMs, lookAtBroker);
      every(upgradeCheckMs, upgradesChanged);
      every(versionCheckMs, () => versionReporter.look());
      every(dataPlaneCheckMs, () => dataPlanes.look());
      every(enforcementCheckMs, () => {
        enforcementReporter.look();
        queues.add(['access-policy'], accessPolicies.keys());
      });
    },
    leaveWord: async () => {
      isLeaving = true;
      if (brokerAwaySinceMs === undefined) await tellBroker(lease.brokerSilentMs());
      await Promise.race([queues.whenIdle('conditions'), sleep(world.timers, leaveWordMsMax)]);
    },
    stop: async () => {
      stopping.abort();
      for (const timer of timers) timer.cancel();
      lease.stop();
      homeContact.stop();
      legacy.stop();
      for (const part of parts) part.stop();
      profiles.close();
      await Promise.all([
        queues.stop(),
        dnsOptions.stop(),
        sealing?.stop(),
        ...reporters.map((reporter) => reporter.stop()),
      ]);
    },
  };
}
