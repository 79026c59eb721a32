// A network that loses, repeats and delays, and processes that die between two writes: stands between the virtual
// network and a home's handler. Quiet by default; all chance comes from one seeded stream.

import type { HttpRequest, HttpResponse } from '../src/base/http.ts';
import type { Random } from '../src/base/world.ts';
import type { HttpHandler } from './virtual-network.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface LossyRates {
  /** The request never arrives. */
  readonly lost: number;
  /** It is acted upon, and the answer never arrives. */
  readonly unanswered: number;
  /** It arrives twice. */
  readonly repeated: number;
  readonly delayed: number;
}

export const quiet: LossyRates = { lost: 0, unanswered: 0, repeated: 0, delayed: 0 };

const delayMsMax = 3_000;

export interface Crash {
  readonly agent: string;
  /** The write, counted from now, at which the process dies. */
  inWrites: number;
  readonly when: 'before' | 'after';
}

export class LossyNetwork {
  rates: LossyRates = quiet;
  readonly crashes: Crash[] = [];
  #isCalm = false;
  readonly #random: Random;
  readonly #time: VirtualTime;
  readonly #kill: (agent: string) => void;

  constructor(options: { random: Random; time: VirtualTime; kill: (agent: string) => void }) {
    this.#random = options.random;
    this.#time = options.time;
    this.#kill = options.kill;
  }

  /** Nothing goes wrong from now on, also not for requests that are on their way. */
  calmDown(): void {
    this.rates = quiet;
    this.crashes.length = 0;
    this.#isCalm = true;
  }

  wrap(handler: HttpHandler): HttpHandler {
    return async (request) => {
      const crash = this.#crashDue(request);
      if (crash?.when === 'before') this.#kill(crash.agent);
      const response = await this.#carry(handler, request);
      if (crash?.when === 'after' && !this.#isCalm) this.#kill(crash.agent);
      return response;
    };
  }

  async #carry(handler: HttpHandler, request: HttpRequest): Promise<HttpResponse> {
    const { lost, unanswered, repeated, delayed } = this.rates;
    if (this.#happens(delayed)) await this.#delay(this.#random.float() * delayMsMax);
    if (this.#happens(lost)) throw new Error('connection reset before the request arrived');
    if (isWrite(request) && this.#happens(repeated)) await handler(request);
    const response = await handler(request);
    if (this.#happens(unanswered)) throw new Error('connection reset before the answer arrived');
    return response;
  }

  #crashDue(request: HttpRequest): Crash | undefined {
    if (!isWrite(request)) return undefined;
    const agent = agentOf(request);
    const crash = this.crashes.find((candidate) => candidate.agent === agent);
    if (crash === undefined || --crash.inWrites > 0) return undefined;
    this.crashes.splice(this.crashes.indexOf(crash), 1);
    return crash;
  }

  #happens(rate: number): boolean {
    return rate > 0 && this.#random.float() < rate;
  }

  #delay(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#time.schedule(delayMs, resolve));
  }
}

export function isWrite(request: HttpRequest): boolean {
  return request.method !== 'GET';
}

export function agentOf(request: HttpRequest): string | undefined {
  return /^Bearer agent-(.+)$/.exec(request.headers['authorization'] ?? '')?.[1];
}
