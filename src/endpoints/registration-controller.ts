// Probes registered processes and writes their readiness into their slices. One runs per home: two would only do the
// same work twice, so the caller makes sure that it leads.

import { errorText, type Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Prober } from '../base/prober.ts';
import type { Timer, World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer, type Informer } from '../kube/controller/informer.ts';
import { isConflict, isNotFound } from '../kube/objects/api-error.ts';
import { type EndpointSlice, endpointSliceType, sliceManagedByLabel } from '../kube/objects/endpoint-slice.ts';
import { type CheckState, decodeCheck, type HealthCheck, nextCheckState } from './health-check.ts';
import { checkAnnotation, registrationManager } from './registration.ts';

export interface RegistrationControllerOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly prober: Prober;
  readonly metrics?: Metrics;
}

/** One registered process under watch. */
interface Watched {
  readonly annotation: string;
  readonly check: HealthCheck;
  state: CheckState;
  timer: Timer | undefined;
  isStopped: boolean;
}

export class RegistrationController {
  readonly #options: RegistrationControllerOptions;
  readonly #log;
  readonly #watched = new Map<string, Watched>();
  readonly #probes;
  readonly #slices;

  constructor(options: RegistrationControllerOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ controller: 'registration' });
    this.#probes = this.#options.metrics?.counter({
      name: 'registration_probes_total',
      help: 'Probes of registered processes, by result.',
      labelNames: ['result'],
    });
    this.#slices = createInformer<EndpointSlice>({
      ...this.#options,
      type: endpointSliceType,
      labelSelector: `${sliceManagedByLabel}=${registrationManager}`,
    });
    this.#slices.on((key, slice) => this.#follow(key, slice));
    this.#slices.start();
  }

  /** How many processes are being probed. */
  get checks(): number {
    return this.#watched.size;
  }

  stop(): void {
    this.#slices.stop();
    for (const [key, one] of this.#watched) this.#forget(key, one);
  }

  #follow(key: string, slice: EndpointSlice | undefined): void {
    const annotation = slice?.metadata.annotations?.[checkAnnotation];
    const present = this.#watched.get(key);
    if (present !== undefined && present.annotation === annotation) return;
    if (present !== undefined) this.#forget(key, present);
    if (slice === undefined || annotation === undefined) return;
    const check = readCheck(key, annotation, this.#log);
    if (check === undefined) return;
    const state = { isUp: slice.endpoints[0]?.conditions?.ready === true, against: 0 };
    const next: Watched = { annotation, check, state, timer: undefined, isStopped: false };
    this.#watched.set(key, next);
    // At a random moment of the first interval: a thousand processes are not to be probed all at once.
    this.#plan(key, next, this.#options.world.random.float() * Math.min(check.intervalMs, 1000));
  }

  #forget(key: string, present: Watched): void {
    present.isStopped = true;
    present.timer?.cancel();
    this.#watched.delete(key);
  }

  #plan(key: string, one: Watched, delayMs: number): void {
    if (!one.isStopped) one.timer = this.#options.world.timers.after(delayMs, () => void this.#look(key, one));
  }

  async #look(key: string, one: Watched): Promise<void> {
    try {
      await this.#probeOnce(key, one);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error))
        this.#log.warn('readiness was not written', { key, error: errorText(error) });
    }
    this.#plan(key, one, one.check.intervalMs * (0.9 + this.#options.world.random.float() / 5));
  }

  async #probeOnce(key: string, one: Watched): Promise<void> {
    const address = this.#slices.get(key)?.endpoints[0]?.addresses?.[0];
    if (address === undefined) return;
    const { probe, timeoutMs } = one.check;
    const http = probe.kind === 'http' ? { isSecure: probe.isSecure, host: probe.host, path: probe.path } : undefined;
    const answer = await this.#options.prober.probe({ address, port: probe.port, http, timeoutMs });
    if (one.isStopped) return;
    this.#probes?.inc({ result: answer.isGood ? 'good' : 'bad' });
    const before = one.state;
    one.state = nextCheckState(before, answer.isGood, one.check);
    if (one.state.isUp !== before.isUp) {
      this.#log.info(one.state.isUp ? 'process is ready' : 'process is not ready', {
        key,
        reason: answer.isGood ? undefined : answer.reason,
      });
    }
    await this.#write(this.#slices, key, one.state.isUp);
  }

  /** Also repeats a write that failed at an earlier look: what counts is what the slice says now. */
  async #write(informer: Informer<EndpointSlice>, key: string, isReady: boolean): Promise<void> {
    const slice = informer.get(key);
    const endpoint = slice?.endpoints[0];
    if (slice === undefined || endpoint === undefined || endpoint.conditions?.ready === isReady) return;
    const conditions = { ready: isReady, serving: isReady, terminating: false };
    await this.#options.client.update(endpointSliceType, { ...slice, endpoints: [{ ...endpoint, conditions }] });
  }
}

function readCheck(key: string, annotation: string, log: Log): HealthCheck | undefined {
  try {
    return decodeCheck(annotation);
  } catch (error) {
    log.warn('check cannot be read, the process is not probed; register it again', { key, error: errorText(error) });
    return undefined;
  }
}
