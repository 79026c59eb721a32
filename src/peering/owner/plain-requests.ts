// Requests at the peering endpoint without a stream: an introduction, and the catalog of the calling peer for
// `portolan peer diff`.

import type { PlainAnswer, PlainRequest, PlainRoute } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { sleep, type World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { catalogPath, introductionPath } from '../rules/peer-introduction.ts';
import { v1alpha1 } from '../transport/wire.ts';
import type { PeerCaller, PeerVerdict } from '../trust/trust.ts';
import { introduce } from './introduction.ts';
import { IntroductionLimits } from './introduction-limits.ts';
import type { Owner } from './owner.ts';
import type { OwnerCatalog } from './owner-catalog.ts';

export interface PlainRequestsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly namespace: string;
  readonly secretsNamespace: string;
  readonly owner: Owner;
  readonly catalog: OwnerCatalog;
  /** Whether our watch on Peers has this one. */
  readonly isKnown: (peer: string) => boolean;
}

/** Between the write of a Peer and our watch on Peers. */
const knownMsMax = 5_000;
const knownStepMs = 20;

export class PlainRequests {
  readonly #options: PlainRequestsOptions;
  readonly #introductions: IntroductionLimits;

  constructor(options: PlainRequestsOptions) {
    this.#options = options;
    this.#introductions = new IntroductionLimits(options.world.clock);
  }

  route({ path, verdict, from }: PlainRequest<PeerCaller>): PlainRoute | undefined {
    const { client, namespace, secretsNamespace, world } = this.#options;
    if (path === introductionPath && !this.#introductions.mayTry(from))
      return { status: 429, body: JSON.stringify({ message: 'too many introductions were tried; try again later' }) };
    if (path === introductionPath)
      return {
        withBody: (body) =>
          introduce({
            ...{ client, namespace, secretsNamespace, nowMs: world.clock.wallMs(), body },
            untilKnown: (peer) => this.#untilKnown(peer),
          }),
      };
    return path === catalogPath ? this.#listCatalog(verdict) : undefined;
  }

  /** Or until it has taken longer than a watch should. */
  async #untilKnown(peer: string): Promise<void> {
    const { world, isKnown } = this.#options;
    for (let waitedMs = 0; !isKnown(peer) && waitedMs < knownMsMax; waitedMs += knownStepMs)
      await sleep(world.timers, knownStepMs);
  }

  /** The services that this peer is offered, by content, and which of them it refused. */
  #listCatalog(verdict: PeerVerdict): PlainAnswer {
    if (verdict.kind !== 'trusted')
      return {
        status: verdict.code === codes.unauthenticated ? 401 : 503,
        body: JSON.stringify({ message: verdict.reason }),
      };
    const { peer } = verdict.caller;
    const { catalog, owner } = this.#options;
    const view = catalog.view(peer, v1alpha1, { epoch: '', revision: () => 0, hasSynced: () => true });
    const refusals = owner.report(peer)?.refusals;
    const services = Array.from(view.ids, (id) => ({
      id,
      service: view.offer(id)?.service,
      refused: refusals?.get(id)?.reason,
    }));
    return { status: 200, body: JSON.stringify({ services }) };
  }
}
