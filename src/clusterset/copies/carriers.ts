// Whether something in this cluster carries connections to clusterset IPs: a node proxy whose Lease was renewed
// lately. An unknown value is undefined and no condition is derived from it.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';

export interface CarriersOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly systemNamespace: string;
  /** Called when what `hasProxy` says has changed. */
  readonly onChange: () => void;
}

export class Carriers {
  readonly #options: CarriersOptions;
  readonly #leases: Informer<Lease>;
  #hasProxy: boolean | undefined;

  constructor(options: CarriersOptions) {
    this.#options = options;
    const { home: client, world, log, systemNamespace: namespace } = options;
    const labelSelector = `${partLabel}=proxy`;
    this.#leases = createInformer<Lease>({ client, world, log, type: leaseType, namespace, labelSelector });
    this.#leases.on(() => this.look());
  }

  start(): void {
    this.#leases.start();
    // Without one, there would be no event for that.
    this.#leases.whenSynced().then(
      () => this.look(),
      () => {},
    );
  }

  stop(): void {
    this.#leases.stop();
  }

  get hasProxy(): boolean | undefined {
    return this.#hasProxy;
  }

  /** A proxy that falls silent changes nothing by itself: to be called now and then. */
  look(): void {
    if (!this.#leases.hasSynced) return;
    const nowMs = this.#options.world.clock.wallMs();
    const hasProxy = [...this.#leases.values()].some((lease) => partState(lease, nowMs).kind === 'reported');
    if (hasProxy === this.#hasProxy) return;
    this.#hasProxy = hasProxy;
    this.#options.onChange();
  }
}
