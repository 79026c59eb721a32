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

export interface RegistrationController {
  /** How many processes are being probed. */
  readonly checks: number;
  stop(): void;
}

/** One registered process under watch. */
interface Watched {
  readonly annotation: string;
  readonly check: HealthCheck;
  state: CheckState;
  timer: Timer | undefined;
  isStopped: boolean;
}

export function runRegistrationController(options: RegistrationControllerOptions): RegistrationController {
  const log = options.log.with({ controller: 'registration' });
  const watched = new Map<string, Watched>();
  const probes = options.metrics?.counter({
    name: 'registration_probes_total',
    help: 'Probes of registered processes, by result.',
    labelNames: ['result'],
  });
  const slices = createInformer<EndpointSlice>({
    ...options,
    type: endpointSliceType,
    labelSelector: `${sliceManagedByLabel}=${registrationManager}`,
  });

  function follow(key: string, slice: EndpointSlice | undefined): void {
    const annotation = slice?.metadata.annotations?.[checkAnnotation];
    const present = watched.get(key);
    if (present !== undefined && present.annotation === annotation) return;
    if (present !== undefined) forget(key, present);
    if (slice === undefined || annotation === undefined) return;
    const check = readCheck(key, annotation, log);
    if (check === undefined) return;
    const state = { isUp: slice.endpoints[0]?.conditions?.ready === true, against: 0 };
    const next: Watched = { annotation, check, state, timer: undefined, isStopped: false };
    watched.set(key, next);
    // At a random moment of the first interval: a thousand processes are not to be probed all at once.
    plan(key, next, options.world.random.float() * Math.min(check.intervalMs, 1000));
  }

  function forget(key: string, present: Watched): void {
    present.isStopped = true;
    present.timer?.cancel();
    watched.delete(key);
  }

  function plan(key: string, one: Watched, delayMs: number): void {
    if (!one.isStopped) one.timer = options.world.timers.after(delayMs, () => void look(key, one));
  }

  async function look(key: string, one: Watched): Promise<void> {
    try {
      await probeOnce(key, one);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error))
        log.warn('readiness was not written', { key, error: errorText(error) });
    }
    plan(key, one, one.check.intervalMs * (0.9 + options.world.random.float() / 5));
  }

  async function probeOnce(key: string, one: Watched): Promise<void> {
    const address = slices.get(key)?.endpoints[0]?.addresses?.[0];
    if (address === undefined) return;
    const { probe, timeoutMs } = one.check;
    const http = probe.kind === 'http' ? { isSecure: probe.isSecure, host: probe.host, path: probe.path } : undefined;
    const answer = await options.prober.probe({ address, port: probe.port, http, timeoutMs });
    if (one.isStopped) return;
    probes?.inc({ result: answer.isGood ? 'good' : 'bad' });
    const before = one.state;
    one.state = nextCheckState(before, answer.isGood, one.check);
    if (one.state.isUp !== before.isUp) {
      log.info(one.state.isUp ? 'process is ready' : 'process is not ready', {
        key,
        reason: answer.isGood ? undefined : answer.reason,
      });
    }
    await write(slices, key, one.state.isUp);
  }

  /** Also repeats a write that failed at an earlier look: what counts is what the slice says now. */
  async function write(informer: Informer<EndpointSlice>, key: string, isReady: boolean): Promise<void> {
    const slice = informer.get(key);
    const endpoint = slice?.endpoints[0];
    if (slice === undefined || endpoint === undefined || endpoint.conditions?.ready === isReady) return;
    const conditions = { ready: isReady, serving: isReady, terminating: false };
    await options.client.update(endpointSliceType, { ...slice, endpoints: [{ ...endpoint, conditions }] });
  }

  slices.on(follow);
  slices.start();
  return {
    get checks() {
      return watched.size;
    },
    stop: () => {
      slices.stop();
      for (const [key, one] of watched) forget(key, one);
    },
  };
}

function readCheck(key: string, annotation: string, log: Log): HealthCheck | undefined {
  try {
    return decodeCheck(annotation);
  } catch (error) {
    log.warn('check cannot be read, the process is not probed; register it again', { key, error: errorText(error) });
    return undefined;
  }
}
