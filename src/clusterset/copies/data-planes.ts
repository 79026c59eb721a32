// The data planes of this cluster: whether a node proxy whose Lease was renewed lately carries connections to clusterset
// IPs, whether the cluster IPs of Services are routed here, and how gateways of other networks answered. An unknown value is
// undefined and no condition is derived from it.

import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { isEmbedded } from '../../kube/client/discovery.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { partLabel, partRenewMs, partState } from '../../kube/objects/part-lease.ts';
import { areServicesCarried } from '../../kube/objects/reports/carried-services.ts';
import {
  type CountsByCluster,
  connectionsAnnotation,
  readConnections,
} from '../../kube/objects/reports/connections.ts';
import { gatewayChecks } from '../../kube/objects/reports/gateway-checks.ts';
import { type SilentFrom, silentFrom } from '../../kube/objects/reports/silent-clusters.ts';
import { unreachedIn } from '../../kube/objects/reports/unreached.ts';

export interface DataPlanesOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly systemNamespace: string;
  /** For how long the home has answered this agent without a failure. */
  readonly homeAnswersForMs: () => number;
  /** Called when one of the values below has changed. */
  readonly onChange: () => void;
  /** Called with a service that nodes have left a cluster for, or use it again. */
  readonly onSilent: (service: string) => void;
}

/** What one proxy has counted of a service. */
export interface ProxyCounts {
  /** Another one after each start of the proxy. */
  readonly holder: string;
  readonly clusters: CountsByCluster;
}

export class DataPlanes {
  readonly #options: DataPlanesOptions;
  readonly #leases: Informer<Lease>;
  #hasProxy: boolean | undefined;
  #hasDataPlane: boolean | undefined;
  /** Its node proxies carry the cluster IPs of its Services. */
  #areServicesCarried = false;
  #unreachedFrom: ReadonlyMap<string, readonly string[]> = new Map();
  #gateways: ReadonlyMap<string, string> = new Map();
  #silent: ReadonlyMap<string, ReadonlyMap<string, SilentFrom>> = new Map();
  #proxies = 0;
  #retry: Timer | undefined;
  #isStopped = false;

  constructor(options: DataPlanesOptions) {
    this.#options = options;
    const { home: client, world, log, systemNamespace: namespace } = options;
    const labelSelector = `${partLabel} in (proxy,xds)`;
    this.#leases = createInformer<Lease>({ client, world, log, type: leaseType, namespace, labelSelector });
    this.#leases.on(() => this.look());
  }

  start(): void {
    this.#leases.start();
    void this.#askHome();
    // Without one, there would be no event for that.
    this.#leases.whenSynced().then(
      () => this.look(),
      () => {},
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#retry?.cancel();
    this.#leases.stop();
  }

  get hasProxy(): boolean | undefined {
    return this.#hasProxy;
  }

  /** A Kubernetes cluster has a data plane for its Services; an embedded home has one only where its proxies carry them. */
  get routesServices(): boolean | undefined {
    if (this.#hasDataPlane !== false) return this.#hasDataPlane;
    return this.#hasProxy === undefined ? undefined : this.#areServicesCarried;
  }

  /** Nodes whose proxies have reported that they cannot reach a cluster of another network, by cluster. */
  get unreachedFrom(): ReadonlyMap<string, readonly string[]> {
    return this.#unreachedFrom;
  }

  /** Counts by proxies that report and count connections of the service. */
  countsOf(service: string): ProxyCounts[] {
    const nowMs = this.#options.world.clock.wallMs();
    return [...this.#leases.values()].flatMap((lease) => {
      const text = lease.metadata.annotations?.[connectionsAnnotation];
      if (text === undefined || partState(lease, nowMs).kind === 'silent') return [];
      const clusters = readConnections(text, service);
      return clusters.size === 0 ? [] : [{ holder: lease.spec?.holderIdentity ?? lease.metadata.name, clusters }];
    });
  }

  /** Leases of proxies and xDS servers; undefined while they are not known, or proxies had no time to renew since the home was away. */
  get reports(): readonly Lease[] | undefined {
    if (!this.#leases.hasSynced || this.#options.homeAnswersForMs() < renewalMsMax) return undefined;
    return [...this.#leases.values()];
  }

  /** Clusters that nodes have left for a service because they do not answer there. */
  silentFor(service: string): ReadonlyMap<string, SilentFrom> {
    return this.#silent.get(service) ?? new Map();
  }

  /** How many of the living proxies have left a cluster for a service. */
  leftBy(service: string, cluster: string): { readonly nodes: number; readonly of: number } {
    return { nodes: this.silentFor(service).get(cluster)?.nodes.length ?? 0, of: this.#proxies };
  }

  /** Why no gateway of a cluster takes connections of this one, by cluster; empty where one does. */
  get gatewayChecks(): ReadonlyMap<string, string> {
    return this.#gateways;
  }

  /** A proxy that falls silent changes nothing by itself: to be called now and then. */
  look(): void {
    if (!this.#leases.hasSynced) return;
    const nowMs = this.#options.world.clock.wallMs();
    const gateways = gatewayChecks(this.#leases.values(), nowMs);
    const isSameGateways = isSameJson([...gateways], [...this.#gateways]);
    this.#gateways = gateways;
    const living = [...this.#leases.values()].filter(
      (lease) => lease.metadata.labels?.[partLabel] === 'proxy' && partState(lease, nowMs).kind === 'reported',
    );
    const hasProxy = living.length > 0;
    this.#proxies = living.length;
    this.#lookAtSilent(living);
    const unreachedFrom = unreachedIn(living);
    const areCarried = areServicesCarried(living);
    const isSame =
      areCarried === this.#areServicesCarried &&
      isSameGateways &&
      isSameJson([...unreachedFrom], [...this.#unreachedFrom]);
    if (hasProxy === this.#hasProxy && isSame) return;
    // While the home was away no proxy could renew: each has time to do so.
    if (!hasProxy && this.#hasProxy && this.#options.homeAnswersForMs() < renewalMsMax)
      return isSameGateways ? undefined : this.#options.onChange();
    this.#hasProxy = hasProxy;
    this.#areServicesCarried = areCarried;
    this.#unreachedFrom = unreachedFrom;
    this.#options.onChange();
  }

  #lookAtSilent(living: readonly Lease[]): void {
    const before = this.#silent;
    this.#silent = silentFrom(living);
    const textOf = (silent: ReadonlyMap<string, SilentFrom> | undefined) => JSON.stringify([...(silent ?? [])]);
    for (const service of new Set([...before.keys(), ...this.#silent.keys()]))
      if (textOf(before.get(service)) !== textOf(this.#silent.get(service))) this.#options.onSilent(service);
  }

  async #askHome(): Promise<void> {
    try {
      this.#hasDataPlane = !(await isEmbedded(this.#options.home));
    } catch (error) {
      if (this.#isStopped) return;
      // A home that refuses to say is not an embedded one.
      if (error instanceof ApiError && error.code < 500) this.#hasDataPlane = true;
      else this.#retry = this.#options.world.timers.after(askAgainMs, () => void this.#askHome());
    }
    if (this.#hasDataPlane !== undefined) this.#options.onChange();
  }
}

const askAgainMs = 1_000;
/** A proxy has renewed so long after its home came back. */
const renewalMsMax = 2 * partRenewMs;
