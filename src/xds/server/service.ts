// The discovery service without its sockets: takes calls, gives each a stream with the view of its proxy, and wakes the
// streams whose view changed, all of one turn together.

import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
import type { Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import { EnvoyFlows } from '../access-logs/envoy-flows.ts';
import type { ProxyCaller } from '../identity/proxy-identity.ts';
import { ViewIndex } from '../view/view-index.ts';
import { LogStream, logMethod } from './log-stream.ts';
import { measureXds, type XdsMeter } from './meter.ts';
import { methodOf } from './methods.ts';
import { Proxies, refusalsKeptMsDefault } from './proxies.ts';
import { ProxyStream } from './proxy-stream.ts';
import type { Pumped, StreamContext } from './stream-context.ts';

export interface XdsServiceOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cluster: string;
  /** Where the cluster is, for proxies that say less. */
  readonly place: () => Place;
  readonly refusalsKeptMs?: number;
}

export class XdsService {
  readonly views = new ViewIndex();
  /** What Envoys tell of connections. */
  readonly flows: EnvoyFlows;
  readonly proxies: Proxies;
  /** How long refusals of a proxy that is away count. */
  readonly refusalsKeptMs: number;
  readonly meter: XdsMeter;
  readonly #options: XdsServiceOptions;
  readonly #context: StreamContext;
  readonly #waiting = new Set<Pumped>();
  readonly #listeners = new Set<() => void>();
  readonly #programmed = new Set<() => void>();
  #timer: Timer | undefined;
  #expiry: Timer | undefined;

  constructor(options: XdsServiceOptions) {
    this.#options = options;
    this.refusalsKeptMs = options.refusalsKeptMs ?? refusalsKeptMsDefault;
    this.flows = new EnvoyFlows({ clock: options.world.clock });
    this.proxies = new Proxies(this.refusalsKeptMs);
    this.meter = measureXds(options.metrics, this.proxies, options.world.clock);
    const lines = new LogBudget(options.world.clock);
    const warn = (text: string, fields: Readonly<Record<string, unknown>>) => {
      const more = lines.take();
      if (more !== undefined) options.log.warn(text, { ...fields, ...more });
    };
    this.#context = {
      world: options.world,
      cluster: options.cluster,
      proxies: this.proxies,
      views: this.views,
      proven: new WeakSet(),
      meter: this.meter,
      placeOf: (said) => {
        const own = options.place();
        return { cluster: own.cluster, zone: said.zone || own.zone || '', region: said.region || own.region || '' };
      },
      schedule: (stream) => this.#schedule(stream),
      onRefused: ({ proxy, entry, message }) => {
        warn('a proxy refused a resource', { proxy, type: entry.type, name: entry.name, message });
        this.#changed();
      },
      onRecovered: () => this.#changed(),
      onProgrammed: () => {
        for (const listener of this.#programmed) listener();
      },
      onLeft: () => {
        this.#expiry ??= options.world.timers.after(this.refusalsKeptMs, () => {
          this.#expiry = undefined;
          this.#changed();
          // One that left meanwhile has time of its own.
          if (this.proxies.refusing(options.world.clock.monotonicMs()).some(({ isConnected }) => !isConnected))
            this.#context.onLeft();
        });
      },
      onTurnedAway: (reason) => warn('a proxy was turned away', { reason }),
    };
  }

  /** Undefined for a method that is not served. */
  accept(call: ServerCall<ProxyCaller>): CallHandlers | undefined {
    const { cluster } = this.#options;
    if (call.path === logMethod) return new LogStream(call, { flows: this.flows, cluster });
    const method = methodOf(call.path);
    return method === undefined ? undefined : new ProxyStream(call, method, this.#context);
  }

  /** Called when what proxies refused has changed. */
  onRefusals(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called when a proxy has acknowledged its first listener, or one that had is gone. */
  onProgrammed(listener: () => void): () => void {
    this.#programmed.add(listener);
    return () => this.#programmed.delete(listener);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#expiry?.cancel();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  // One change may come in several steps, such as a cluster and the listener that uses it: they are sent in one go.
  #schedule(stream: Pumped): void {
    this.#waiting.add(stream);
    this.#timer ??= this.#options.world.timers.after(0, () => {
      this.#timer = undefined;
      const streams = [...this.#waiting];
      this.#waiting.clear();
      for (const each of streams) each.pump();
    });
  }
}
