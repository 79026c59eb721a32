// One connection to a service, as a node proxy tells of it. Addresses, sizes and times; never what was sent. Pure.

export const flowOutcomes = ['answered', 'refused', 'no-answer', 'denied'] as const;
type FlowOutcome = (typeof flowOutcomes)[number];

export interface Transferred {
  /** Absent where no packets are seen. */
  readonly packets?: number;
  readonly bytes: number;
}

export interface Flow {
  /** Unique while this proxy runs. A flow is sent again when it has ended. */
  readonly id: number;
  readonly protocol: string;
  readonly client: string;
  /** The Pod that has this address, `namespace/name`; of this cluster alone. */
  readonly clientPod?: string;
  /** The cluster of the client, if it is not that of the node. */
  readonly from?: string;
  readonly clientPort: number;
  /** `namespace/name`. */
  readonly service: string;
  /** The clusterset address and port that the client connected to; of a denied one, those of the endpoint. */
  readonly address: string;
  readonly port: number;
  /** The cluster that serves it. Empty if the endpoint is not known any more. */
  readonly cluster: string;
  /** For a connection through a gateway, the Envoy of this node. */
  readonly endpoint: string;
  readonly endpointPort: number;
  readonly way: 'direct' | 'gateway';
  readonly outcome: FlowOutcome;
  /** By the node's clock. Absent if its start was not seen. */
  readonly startedMs?: number;
  /** Told of by an Envoy, when it had ended; the kernel tells of the others. */
  readonly seenBy?: 'envoy';
  /** The Envoy, if it is not the node that tells of it. */
  readonly node?: string;
  /** Of HTTP, where an Envoy saw it. */
  readonly status?: number;
  /** Until the first packet of the endpoint, or its first byte where an Envoy saw it. */
  readonly answeredAfterMs?: number;
  /** When the kernel forgot it: for TCP up to two minutes after the last packet. Absent while it is open. */
  readonly endedMs?: number;
  /** Known at the end, and only if the kernel counts them. */
  readonly sent?: Transferred;
  readonly received?: Transferred;
}

/** What a node proxy answers to GET /flows. */
export interface FlowPage {
  readonly node: string;
  /** The cluster of the node. */
  readonly from: string;
  /** Each time something became known of a flow, oldest first. */
  readonly flows: readonly Flow[];
  /** To be given as `after` to see what comes next. */
  readonly next: number;
  /** There is more after `next` already. */
  readonly hasMore: boolean;
  /** Entries after the given number that memory does not hold any more. */
  readonly forgotten: number;
  readonly losses: FlowLosses;
  /** Why less is known than should be; empty if all is well. */
  readonly problem: string;
}

/** Since the proxy was started. */
export interface FlowLosses {
  /** Connections beyond the rate that is recorded, as the kernel counted them. Absent if it could not be asked. */
  readonly unrecorded?: number;
  /** Times at which events came faster than they were read. How many were lost then is not known. */
  readonly overflows: number;
  /** Time during which nothing was read, to save CPU. */
  readonly pausedMs: number;
}

export interface FlowFilter {
  readonly service?: string;
  readonly to?: string;
  readonly outcome?: string;
}

export function passes(flow: Flow, { service, to, outcome }: FlowFilter): boolean {
  return (
    (service === undefined || flow.service === service) &&
    (to === undefined || flow.cluster === to) &&
    (outcome === undefined || flow.outcome === outcome)
  );
}
