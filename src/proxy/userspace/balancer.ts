// Picks the backend of one connection in userspace mode: at random by its share, or the one this client had within the timeout.
// Pure but for the clock and the random it is given.

import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Clock, Random } from '../../base/world.ts';
import type { Backend, PortChoice } from '../port-choice.ts';

interface Remembered {
  readonly backend: Backend;
  readonly untilMs: number;
}

const clientsMax = 10_000;

export class Balancer {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #clients = new BoundedCache<Remembered>(clientsMax);
  #choice: PortChoice;

  constructor(choice: PortChoice, world: { readonly clock: Clock; readonly random: Random }) {
    this.#choice = choice;
    this.#clock = world.clock;
    this.#random = world.random;
  }

  get choice(): PortChoice {
    return this.#choice;
  }

  update(choice: PortChoice): void {
    this.#choice = choice;
  }

  /** Undefined if there is none but those that were tried. */
  pick(client: string, tried: ReadonlySet<Backend> = new Set()): Backend | undefined {
    const { affinitySeconds } = this.#choice;
    const backends = this.#choice.backends.filter((backend) => !tried.has(backend));
    const known = affinitySeconds > 0 ? this.#remembered(client, backends) : undefined;
    const backend = known ?? this.#draw(backends, tried);
    if (backend !== undefined && affinitySeconds > 0) this.#remember(client, backend);
    return backend;
  }

  /** A lot whose backends were all tried leaves its share to the others. */
  #draw(backends: readonly Backend[], tried: ReadonlySet<Backend>): Backend | undefined {
    const { lots } = this.#choice;
    if (lots === undefined) return backends[Math.floor(this.#random.float() * backends.length)];
    const left = lots
      .map(({ share, endpoints }) => ({ share, endpoints: endpoints.filter((backend) => !tried.has(backend)) }))
      .filter(({ endpoints }) => endpoints.length > 0);
    let at = this.#random.float() * left.reduce((sum, { share }) => sum + share, 0);
    const lot = left.find(({ share }) => (at -= share) < 0) ?? left.at(-1);
    return lot?.endpoints[Math.floor(this.#random.float() * lot.endpoints.length)];
  }

  #remembered(client: string, backends: readonly Backend[]): Backend | undefined {
    const known = this.#clients.get(client);
    if (known === undefined || known.untilMs <= this.#clock.monotonicMs()) return undefined;
    return backends.find(({ address, port }) => address === known.backend.address && port === known.backend.port);
  }

  #remember(client: string, backend: Backend): void {
    const untilMs = this.#clock.monotonicMs() + 1000 * this.#choice.affinitySeconds;
    this.#clients.set(client, { backend, untilMs });
  }
}
