// The flows of userspace mode: it opens every connection itself, so it knows all of each.

import type { Flow, FlowFilter, FlowLosses } from '../flows/flow.ts';
import { FlowLog, type LogPage } from '../flows/flow-log.ts';
import type { FlowSource } from '../flows/flows.ts';
import type { EndpointPlace, Totals } from '../flows/totals.ts';
import type { Backend, PortChoice } from '../port-choice.ts';

type PlaceOf = (service: string, endpoint: string, nowMs: number) => EndpointPlace;

/** One connection to one endpoint. */
export interface OpenFlow {
  failed(outcome: 'refused' | 'no-answer'): void;
  answered(): void;
  /** After an answer. */
  ended(bytes: { readonly sent: number; readonly received: number }): void;
}

export interface FlowClient {
  readonly client: string;
  readonly clientPort: number;
}

export class UserspaceFlows implements FlowSource {
  readonly problem = '';
  readonly #log = new FlowLog();
  readonly #clock: { wallMs(): number };
  readonly #totals: Totals;
  readonly #placeOf: PlaceOf;
  #count = 0;

  constructor(clock: { wallMs(): number }, totals: Totals, placeOf: PlaceOf) {
    this.#clock = clock;
    this.#totals = totals;
    this.#placeOf = placeOf;
  }

  open(service: string, { ip, port }: Pick<PortChoice, 'ip' | 'port'>, backend: Backend, client: FlowClient): OpenFlow {
    this.#count += 1;
    const startedMs = this.#clock.wallMs();
    const known = {
      ...{ ...client, id: this.#count, protocol: 'tcp', service, address: ip, port, cluster: backend.cluster },
      ...{ endpoint: backend.address, endpointPort: backend.port, way: 'direct' as const, startedMs },
    };
    const place = this.#placeOf(service, `${backend.address} ${backend.port}`, startedMs);
    const sinceMs = () => Math.max(0, this.#clock.wallMs() - startedMs);
    let answer: Flow = { ...known, outcome: 'answered' };
    return {
      failed: (outcome) => {
        const refused = outcome === 'refused' ? 1 : 0;
        this.#totals.add(service, place, { tried: 1, refused });
        this.#note({ ...known, outcome, endedMs: startedMs + sinceMs() });
      },
      answered: () => {
        this.#totals.add(service, place, { tried: 1, answered: 1 });
        answer = { ...answer, answeredAfterMs: sinceMs() };
        this.#note(answer);
      },
      ended: ({ sent, received }) => {
        this.#totals.add(service, place, { sent, received });
        this.#note({
          ...answer,
          endedMs: startedMs + sinceMs(),
          ...{ sent: { bytes: sent }, received: { bytes: received } },
        });
      },
    };
  }

  page(after: number | undefined, filter: FlowFilter): LogPage {
    return this.#log.page(after, filter, this.#clock.wallMs());
  }

  async losses(): Promise<FlowLosses> {
    return { unrecorded: 0, overflows: 0, pausedMs: 0 };
  }

  #note(flow: Flow): void {
    this.#log.note(flow, this.#clock.wallMs());
  }
}
