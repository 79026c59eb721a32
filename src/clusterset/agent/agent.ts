// A cluster's agent: every controller between its home and the broker, on shared copies of both. Builds and starts; who
// reacts to what is in wiring.ts and changes.ts, what each controller does in its own folder. Stopping resolves when writes under
// way have ended.

import { Allocator } from '../../addresses/allocator.ts';
import type { Hpke } from '../../base/keys/hpke.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IpFamily } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createEventRecorder, type EventRecorder } from '../../kube/controller/events.ts';
import { HomeContact } from '../controllers/home-contact.ts';
import { LeaseController } from '../controllers/lease.ts';
import { createPlacementProblems, type PlacementProblems } from '../controllers/placement-problems.ts';
import type { AgentContext, Membership } from '../copies/context.ts';
import { DataPlanes } from '../copies/data-planes.ts';
import { followOwnRanges, type OwnRanges } from '../copies/own-ranges.ts';
import { restoredAnnotations } from '../rules/leases/broker-restore.ts';
import { timesFor } from '../rules/leases/heartbeat-rate.ts';
import { type JudgingRules, judgingRules } from '../rules/leases/observing.ts';
import { trustAnnotations } from '../rules/leases/trusted-authorities.ts';
import { featureAnnotations } from '../rules/networks/known-by.ts';
import { familiesOf } from '../rules/networks/own-families.ts';
import { AgentCopies } from './agent-copies.ts';
import { measureAgent } from './agent-metrics.ts';
import { AgentSealing } from './agent-sealing.ts';
import { BrokerAbsence } from './broker-absence.ts';
import { SharedChanges } from './changes.ts';
import { ControllerQueues } from './controller-queues.ts';
import { Readiness } from './readiness.ts';
import { AgentReports } from './reports.ts';
import { type FederationZones, SetOptions } from './set-options.ts';
import { runControllers } from './wiring.ts';

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

export interface Agent {
  /** Returns at once: what is not there yet is waited for. */
  start(): void;
  /** The broker does not answer and this agent is about to stop for it: writes to the home that what it has is old. */
  leaveWord(): Promise<void>;
  stop(): Promise<void>;
}

const sweepMs = 60_000;
const upgradeCheckMs = 5_000;
const dataPlaneCheckMs = 1_000;
const enforcementCheckMs = 5_000;
const sealingCheckMs = 5_000;
const brokerCheckMs = 500;
const versionCheckMs = 300_000;

export function createAgent(options: AgentOptions): Agent {
  return new ClusterAgent(options);
}

class ClusterAgent implements Agent {
  readonly #options: AgentOptions;
  readonly #log: Log;
  readonly #systemNamespace: string;
  readonly #queues = new ControllerQueues();
  readonly #sealing: AgentSealing | undefined;
  readonly #copies: AgentCopies;
  readonly #events: EventRecorder;
  readonly #placementProblems: PlacementProblems;
  readonly #homeContact: HomeContact;
  readonly #lease: LeaseController;
  readonly #absence: BrokerAbsence;
  readonly #context: AgentContext;
  readonly #allocator: Allocator;
  readonly #setOptions: SetOptions;
  readonly #dataPlanes: DataPlanes;
  readonly #reports: AgentReports;
  readonly #ownRanges: OwnRanges;
  readonly #changes: SharedChanges;
  readonly #stopping = new AbortController();
  readonly #timers = new Set<Timer>();
  #families: readonly IpFamily[] | undefined;
  #restoredMs: number | undefined;
  #wasEverybodyUpgraded = false;

  constructor(options: AgentOptions) {
    this.#options = options;
    const { world, home, broker, membership, hpke } = options;
    const { clusterset, clusterId } = membership;
    const log = options.log.with({ cluster: clusterId });
    const systemNamespace = options.systemNamespace ?? 'portolan-system';
    this.#log = log;
    this.#systemNamespace = systemNamespace;
    const queues = this.#queues;
    this.#sealing =
      hpke &&
      new AgentSealing({
        ...{ world, log, home, broker, clusterset, clusterId, systemNamespace, hpke },
        policy: () => this.#copies.policy,
        members: () => this.#copies.members,
      });
    this.#copies = new AgentCopies({
      ...{ world, log, home, broker, membership, sealing: this.#sealing?.follower },
      onLegacyService: (key) => queues.add(['import', 'conditions', 'legacy'], [key]),
    });
    const copies = this.#copies;
    this.#events = createEventRecorder({ home, world, log });
    this.#placementProblems = createPlacementProblems({
      ...{ events: this.#events, log },
      exists: (name) =>
        copies.federated.hasSynced ? copies.federated.get(`${clusterset}/${name}`) !== undefined : undefined,
    });
    const onChange = () => this.#lease.renewNow();
    this.#homeContact = new HomeContact({ world, log, home, systemNamespace, onChange });
    this.#lease = this.#createLease();
    this.#absence = new BrokerAbsence({ world, lease: this.#lease, queues, exports: copies.atHome.exports });
    this.#context = this.#createContext();
    const holdMs = () => copies.policy.current.holdMs;
    this.#allocator = new Allocator({ home, world, log, claims: copies.atHome.claims, holdMs });
    const { federationZones } = options;
    this.#setOptions = new SetOptions({ world, log, home, systemNamespace, clusterId, copies, federationZones });
    const { access } = this.#setOptions;
    this.#dataPlanes = this.#createDataPlanes();
    const reported = { copies, access, dataPlanes: this.#dataPlanes };
    this.#reports = new AgentReports({ world, log, home, broker, systemNamespace, clusterset, clusterId, ...reported });
    this.#ownRanges = this.#followOwnRanges();
    this.#changes = new SharedChanges({
      ...{ clusterId, queues, copies, sealing: this.#sealing, signal: this.#stopping.signal },
      onOptions: () => this.#setOptions.changed(),
      onLeaseTimes: () => this.#lease.timesChanged(),
    });
    this.#measure();
  }

  start(): void {
    const { world } = this.#options;
    const signal = this.#stopping.signal;
    const parts = { copies: this.#copies, ownRanges: this.#ownRanges, lease: this.#lease, sealing: this.#sealing };
    const ready = new Readiness({ world, log: this.#log, ...parts, setOptions: this.#setOptions, signal }).reach();
    ready.catch((error: unknown) => signal.aborted || this.#log.error('agent did not become ready', { error }));
    const { access } = this.#setOptions;
    runControllers(this.#queues, {
      context: this.#context,
      copies: this.#copies,
      sealing: this.#sealing?.exportsOf(this.#context, (keys) => this.#queues.add(['export'], keys)),
      allocator: this.#allocator,
      dataPlanes: this.#dataPlanes,
      access: { mode: () => access.mode, closed: () => access.closed },
      placementProblems: this.#placementProblems,
      ready,
    });
    this.#changes.start();
    for (const part of [this.#copies, this.#dataPlanes, this.#ownRanges, access, this.#reports]) part.start();
    this.#sealing?.start();
    this.#homeContact.start();
    this.#startTimers();
  }

  leaveWord(): Promise<void> {
    return this.#absence.leaveWord();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) timer.cancel();
    this.#lease.stop();
    this.#homeContact.stop();
    for (const part of [this.#copies, this.#dataPlanes, this.#ownRanges, this.#setOptions.access]) part.stop();
    await Promise.all([this.#queues.stop(), this.#setOptions.stop(), this.#sealing?.stop(), this.#reports.stop()]);
  }

  #createLease(): LeaseController {
    const { world, home, broker, membership, trustedAuthorities } = this.#options;
    const { clusterId, namespace } = membership;
    const { members, policy } = this.#copies;
    const rules = this.#options.judging ?? judgingRules;
    return new LeaseController({
      ...{ world, log: this.#log, home, broker, members, clusterId, namespace, rules },
      systemNamespace: this.#systemNamespace,
      times: () => rules.times(timesFor(policy.current.lease, members.all().length)),
      homeAwaySinceMs: () => this.#homeContact.awaySinceMs(),
      annotations: (present) => ({
        ...this.#placementProblems.annotations(present),
        ...trustAnnotations(trustedAuthorities),
        ...featureAnnotations(),
        ...restoredAnnotations(this.#restoredMs, world.clock.wallMs()),
      }),
      onVerdict: (id) => this.#changes.verdictChanged(id),
      onOtherHistory: () => this.#brokerRestored(),
    });
  }

  #brokerRestored(): void {
    this.#restoredMs = this.#options.world.clock.wallMs();
    this.#log.warn('the broker does not have the last renewal and may have been restored: listing everything again');
    this.#copies.relistBroker();
    this.#lease.relist();
  }

  #createContext(): AgentContext {
    const options = this.#options;
    const copies = this.#copies;
    const { members, policy } = copies;
    const { clusterId } = options.membership;
    return {
      ...options,
      log: this.#log,
      copies: copies.atHome,
      members,
      memberServices: copies.memberServices,
      legacy: copies.legacy,
      events: this.#events,
      policy: () => policy.current,
      ownAddresses: () => policy.ownAddressesOf(clusterId),
      clusterSetIps: () => {
        const set = policy.current.clusterSetIps;
        return set === 'none' ? set : (members.get(clusterId)?.cluster.spec.clusterSetIP ?? set);
      },
      hasProxy: () => this.#dataPlanes.hasProxy,
      routesServices: () => options.routesServices ?? this.#dataPlanes.routesServices,
      families: () => this.#families,
      addressRules: () => policy.rules,
      addressRulesOf: (id) => policy.rulesOf(id),
      brokerAwaySinceMs: () => this.#absence.sinceMs,
      networks: () => copies.networks.current,
      unreachedFrom: () => this.#dataPlanes.unreachedFrom,
      gatewayChecks: () => this.#dataPlanes.gatewayChecks,
      silentFor: (service) => this.#dataPlanes.silentFor(service),
      verdict: (id) => this.#lease.verdict(id),
    };
  }

  #createDataPlanes(): DataPlanes {
    const { world, home } = this.#options;
    const { imports, exports } = this.#copies.atHome;
    return new DataPlanes({
      ...{ home, world, log: this.#log, systemNamespace: this.#systemNamespace },
      homeAnswersForMs: () => this.#homeContact.answersForMs(),
      onChange: () => {
        this.#queues.add(['import'], imports.keys());
        this.#queues.add(['export'], exports.keys());
      },
      onSilent: (service) => this.#queues.add(['import'], [service]),
    });
  }

  #followOwnRanges(): OwnRanges {
    const { world, broker, membership } = this.#options;
    const { imports, services } = this.#copies.atHome;
    return followOwnRanges({
      ...{ world, log: this.#log, broker, namespace: membership.namespace, services },
      onRanges: (ranges) => this.#copies.policy.setOwnRanges(ranges),
      onPodRanges: (ranges) => {
        this.#setOptions.access.setJoinedPodRanges(ranges);
        const before = this.#families;
        this.#families = familiesOf(ranges);
        if (before?.join() !== this.#families?.join()) this.#queues.add(['import'], imports.keys());
      },
    });
  }

  #measure(): void {
    if (this.#options.metrics === undefined) return;
    const { atHome: copies, members, policy } = this.#copies;
    const isRunning = () => !this.#stopping.signal.aborted;
    const { verdict } = this.#context;
    measureAgent(this.#options.metrics, { copies, members, verdict, policy: () => policy.current, isRunning });
  }

  #startTimers(): void {
    const sealing = this.#sealing;
    this.#every(sweepMs, () => this.#sweep());
    if (sealing !== undefined) {
      this.#every(sweepMs, () => sealing.sweep());
      this.#every(sealingCheckMs, () => sealing.look());
    }
    this.#every(brokerCheckMs, () => this.#absence.look());
    this.#every(upgradeCheckMs, () => this.#lookForUpgrades());
    this.#every(versionCheckMs, () => this.#reports.version.look());
    this.#every(dataPlaneCheckMs, () => this.#dataPlanes.look());
    this.#every(enforcementCheckMs, () => {
      this.#reports.enforcement.look();
      this.#queues.add(['access-policy'], this.#copies.accessPolicies.keys());
    });
  }

  #every(periodMs: number, run: () => void): void {
    const timer = this.#options.world.timers.after(periodMs, () => {
      this.#timers.delete(timer);
      run();
      this.#every(periodMs, run);
    });
    this.#timers.add(timer);
  }

  #sweep(): void {
    this.#allocator.sweep().catch((error: unknown) => this.#log.warn('released addresses not swept', { error }));
  }

  #lookForUpgrades(): void {
    const { legacy, atHome } = this.#copies;
    const look = async () => {
      await legacy.lookForHeartbeats();
      const isEverybodyUpgraded = legacy.isEverybodyUpgraded();
      if (isEverybodyUpgraded === this.#wasEverybodyUpgraded) return;
      this.#wasEverybodyUpgraded = isEverybodyUpgraded;
      this.#queues.add(['legacy'], atHome.exports.keys());
    };
    look().catch((error: unknown) => this.#log.warn('cannot see which members are upgraded', { error }));
  }
}
