// Everything that this process knows about a Peer or a PeerExport, collected from both sides for status and metrics.

import type { Clock } from '../../base/world.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { conditionOf, type WantedCondition } from '../../kube/objects/conditions.ts';
import type { DataPlane, EnvoyRole } from '../../kube/objects/reports/data-plane.ts';
import type { Consumer } from '../consumer/consumer.ts';
import type { PeerExport } from '../kinds/peer-export.ts';
import type { SharedEndpoint } from '../kinds/shared-service.ts';
import type { Owner } from '../owner/owner.ts';
import type { OwnerCatalog } from '../owner/owner-catalog.ts';
import type { RefusedCallers } from '../owner/refused-callers.ts';
import type { ReplicaClaims } from '../owner/replica-claims.ts';
import {
  type IngressTarget,
  ingressProblem,
  ingressServed,
  servicesReachable,
  type TriedIngress,
} from '../rules/reach.ts';
import { isTakenOverItsStream, type KnownPeer, type PeerRegistry } from '../trust/peer-registry.ts';
import { consumerStatus, type ExportFindings, ownerStatus } from './peer-status.ts';
import type { AbsentConsumer } from './peering-metrics.ts';
import type { WrittenStatus } from './status-writer.ts';

export interface FindingsOptions {
  readonly clock: Clock;
  readonly registry: PeerRegistry;
  readonly exports: InformerReader<PeerExport>;
  readonly owner: Owner;
  readonly catalog: OwnerCatalog;
  readonly refused: RefusedCallers;
  readonly claims: ReplicaClaims;
  /** Undefined while another replica takes from peers. */
  readonly consumer: () => Consumer | undefined;
  readonly plane: (role: EnvoyRole) => DataPlane;
  readonly tried: (ingresses: readonly SharedEndpoint[]) => TriedIngress[];
}

/** Ingresses of one export that are tried. */
const ownIngressesMax = 4;

export class Findings {
  readonly #options: FindingsOptions;
  readonly #startedMs: number;

  constructor(options: FindingsOptions) {
    this.#options = options;
    this.#startedMs = options.clock.wallMs();
  }

  ofPeer(name: string): WrittenStatus | undefined {
    const { clock, registry, owner, catalog, refused, claims } = this.#options;
    const peer = registry.get(name);
    if (peer === undefined) return undefined;
    const nowMs = clock.wallMs();
    const refusedCall = refused.get(name);
    const why = peer.trusted.unavailable ?? peer.warning;
    const isNews = (refusedCall !== undefined || why !== '') && !claims.isServedElsewhere(name);
    const told = () => ownerStatus(owner.report(name), catalog.count(name), nowMs, { refused: refusedCall, why });
    const given = claims.mayTell(name) || isNews ? { owner: told() } : {};
    return { ...given, ...this.#consumerStatus(peer, nowMs), conditions: this.#reach(peer) };
  }

  /** Written by the replica that takes from peers: the others try no ingress. */
  #reach({ name, spec }: KnownPeer): WantedCondition[] {
    const { catalog, plane, tried } = this.#options;
    const consumer = this.#options.consumer();
    if (consumer === undefined) return [];
    const isTaken = spec.address !== undefined || isTakenOverItsStream(spec);
    const services = consumer.report(name)?.services;
    const reachable =
      !isTaken || services === undefined
        ? undefined
        : servicesReachable({ services, sidecars: plane('sidecar'), ingress: tried(consumer.ingressesOf(name)) });
    const shared = catalog.count(name);
    const [first] = shared === 0 ? [] : catalog.offeredTo(name);
    const served = ingressServed(shared, { envoys: plane('ingress'), ingress: tried(first?.endpoints ?? []) });
    return [reachable, served].filter((one) => one !== undefined);
  }

  /** Ingresses of peers and our own. */
  *ingresses(): Generator<IngressTarget> {
    const { registry, exports, catalog } = this.#options;
    const consumer = this.#options.consumer();
    if (consumer === undefined) return;
    for (const { name, spec } of registry.values()) if (!spec.suspended) yield* consumer.ingressesOf(name);
    for (const key of exports.keys()) {
      for (const { service, wrong } of catalog.sharesOf(key)) {
        if (wrong !== '') continue;
        for (const { address, port } of service.endpoints.slice(0, ownIngressesMax))
          yield { address, port, serverName: service.id };
        break;
      }
    }
  }

  #consumerStatus(peer: KnownPeer, nowMs: number): Pick<WrittenStatus, 'consumer'> {
    const consumer = this.#options.consumer();
    if (consumer === undefined) return {};
    // Null takes away what was written when there still was an address.
    if (peer.spec.address === undefined && !isTakenOverItsStream(peer.spec)) return { consumer: null };
    const report = consumer.report(peer.name);
    if (report === undefined) return {};
    const status = consumerStatus(report, nowMs);
    return { consumer: { ...status, message: status.message || peer.warning } };
  }

  ofExport(key: string): ExportFindings | undefined {
    const { registry, exports, owner, catalog, claims } = this.#options;
    const peerExport = exports.get(key);
    if (peerExport === undefined) return undefined;
    return {
      peerExport,
      ingressProblem: this.#ingressProblem(peerExport, key),
      shares: catalog.sharesOf(key),
      report: (peer) => owner.report(peer),
      offered: (peer, id) => catalog.offered(peer, id),
      isKnown: (peer) => registry.get(peer) !== undefined,
      isServedElsewhere: (peer) => claims.isServedElsewhere(peer),
    };
  }

  /** As another replica wrote it in the status. */
  #ingressProblem({ status }: PeerExport, key: string): string {
    const { catalog, plane, tried } = this.#options;
    const ready = conditionOf(status?.conditions, 'Ready');
    const written = ready?.reason === 'IngressAway' ? ready.message : '';
    if (this.#options.consumer() === undefined) return written;
    for (const { service, wrong } of catalog.sharesOf(key))
      if (wrong === '')
        return ingressProblem({ envoys: plane('ingress'), ingress: tried(service.endpoints) }) ?? written;
    return '';
  }

  /** Peers that take from us, or should, and are not here. */
  *absentConsumers(): Generator<AbsentConsumer> {
    const { registry, owner, catalog, refused, claims } = this.#options;
    for (const { name, spec } of registry.values()) {
      const left = owner.left(name);
      const services = catalog.count(name);
      if (owner.report(name) !== undefined || claims.isServedElsewhere(name)) continue;
      if (spec.suspended || (left === undefined && services === 0)) continue;
      const isRefused = refused.get(name) !== undefined;
      yield {
        ...{ peer: name, services, sinceMs: left?.endedMs ?? this.#startedMs, isRefused },
        ...{ aliveMs: left?.aliveMs, fullSyncMs: left?.fullSyncMs },
      };
    }
  }
}
