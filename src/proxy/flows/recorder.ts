// Turns the kernel's events into flows: a flow is told of when it is known whether the endpoint answers, and again at its end. What is
// open is bounded; of the oldest beyond that only the end is told. The kernel forgets unanswered connections late, so a flow without
// an answer for some seconds is told of as such; if the answer comes after all, that is told too. Pure.

import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { RefusedCall } from '../access/refusals.ts';
import { type ConntrackEvent, parseConntrackEvent, type Tuple } from './conntrack-event.ts';
import type { Flow, FlowFilter, Transferred } from './flow.ts';
import { FlowLog, type LogPage } from './flow-log.ts';
import type { FlowOwner, FlowOwners } from './owners.ts';

type Known = Pick<Flow, 'id' | 'outcome'> & Partial<Flow>;

interface Open {
  readonly id: number;
  readonly startedMs: number;
  readonly answeredAfterMs?: number;
}

interface Waiting {
  readonly event: ConntrackEvent;
  readonly service: string;
}

type Owners = Pick<FlowOwners, 'serviceAt' | 'ownerOf'>;

const noPod = (_address: string): string | undefined => undefined;
const openMax = 20_000;
const noAnswerMs = 3_000;

export class FlowRecorder {
  readonly #owners: Owners;
  readonly #log: FlowLog;
  readonly #openMax: number;
  readonly #podAt: (address: string) => string | undefined;
  /** By the kernel's id, oldest first. */
  readonly #open = new Map<string, Open>();
  /** Without an answer yet, oldest first; each is open too. */
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;

  constructor(owners: Owners, { log = new FlowLog(), openLimit = openMax, podAt = noPod } = {}) {
    this.#owners = owners;
    this.#log = log;
    this.#openMax = openLimit;
    this.#podAt = podAt;
  }

  /** A line of the kernel's events. */
  line(text: string, nowMs: number): void {
    // Most lines may be of connections that are none of ours: those are not read any further.
    const service = this.#owners.serviceAt(addressIn(text));
    const event = service === undefined ? undefined : parseConntrackEvent(text);
    if (service === undefined || event === undefined) return;
    this.#giveUpWaiting(nowMs);
    if (event.kind === 'NEW') this.#started(event, service);
    else if (event.kind === 'UPDATE') this.#answered(event, service, nowMs);
    else this.#ended(event, service, nowMs);
  }

  /** The kernel drops these before it tracks them; the port of the client is not known. */
  denied({ endpoint, port, packets, ...known }: RefusedCall, cluster: string, nowMs: number): void {
    this.#count += 1;
    const to = { address: endpoint, port, endpoint, endpointPort: port, cluster };
    const times = { startedMs: nowMs, endedMs: nowMs };
    const flow: Flow = { ...known, ...to, ...times, id: this.#count, clientPort: 0, way: 'direct', outcome: 'denied' };
    this.#log.note({ ...flow, sent: { packets, bytes: 0 } }, nowMs);
  }

  page(after: number | undefined, filter: FlowFilter, nowMs: number): LogPage {
    this.#giveUpWaiting(nowMs);
    return this.#log.page(after, filter, nowMs);
  }

  #giveUpWaiting(nowMs: number): void {
    for (const [id, { event, service }] of this.#waiting) {
      if (nowMs - event.atMs < noAnswerMs) return;
      this.#waiting.delete(id);
      const open = this.#open.get(id);
      if (open !== undefined)
        this.#note(event, this.#ownerOf(event, service, nowMs), { ...open, outcome: 'no-answer' });
    }
  }

  #started(event: ConntrackEvent, service: string): void {
    this.#count += 1;
    this.#close(event.id);
    this.#open.set(event.id, { id: this.#count, startedMs: event.atMs });
    this.#waiting.set(event.id, { event, service });
    if (this.#open.size <= this.#openMax) return;
    for (const oldest of this.#open.keys()) return this.#close(oldest);
  }

  #close(id: string): void {
    this.#open.delete(id);
    this.#waiting.delete(id);
  }

  #answered(event: ConntrackEvent, service: string, nowMs: number): void {
    const open = this.#open.get(event.id);
    // Its start was not seen, or it was told of already.
    if (open === undefined || open.answeredAfterMs !== undefined || !event.isReplied) return;
    const answered = { ...open, answeredAfterMs: elapsed(open.startedMs, event.atMs) };
    this.#open.set(event.id, answered);
    this.#waiting.delete(event.id);
    this.#note(event, this.#ownerOf(event, service, nowMs), { ...answered, outcome: 'answered' });
  }

  #ended(event: ConntrackEvent, service: string, nowMs: number): void {
    const open = this.#open.get(event.id);
    this.#close(event.id);
    if (open === undefined) this.#count += 1;
    const known = {
      ...(open ?? { id: this.#count }),
      outcome: outcomeOf(event),
      endedMs: event.atMs,
      ...transferred('sent', event.original),
      ...transferred('received', event.reply),
    };
    this.#note(event, this.#ownerOf(event, service, nowMs), known);
  }

  #ownerOf({ reply }: ConntrackEvent, service: string, nowMs: number): FlowOwner {
    return this.#owners.ownerOf(service, `${plain(reply.source)} ${reply.sourcePort}`, nowMs);
  }

  #note(event: ConntrackEvent, { service, cluster, way }: FlowOwner, known: Known): void {
    const { protocol, original, reply } = event;
    const client = plain(original.source);
    const clientPod = this.#podAt(client);
    const flow: Flow = {
      protocol,
      client,
      ...(clientPod === undefined ? {} : { clientPod }),
      clientPort: original.sourcePort,
      ...{ service, cluster, way },
      address: plain(original.destination),
      port: original.destinationPort,
      endpoint: plain(reply.source),
      endpointPort: reply.sourcePort,
      ...known,
    };
    this.#log.note(flow, event.atMs);
  }
}

/** Where the client connected to. */
function addressIn(line: string): string {
  const at = line.indexOf(' dst=') + 5;
  return at < 5 ? '' : plain(line.slice(at, line.indexOf(' ', at)));
}

/** A connection that is refused ends at once, with one packet of the endpoint and none that counts as an answer. */
function outcomeOf({ isReplied, state, reply }: ConntrackEvent): Flow['outcome'] {
  if (isReplied) return 'answered';
  return state === 'CLOSE' || (reply.packets ?? 0) > 0 ? 'refused' : 'no-answer';
}

function transferred<K extends string>(name: K, { packets, bytes }: Tuple): Partial<Record<K, Transferred>> {
  if (packets === undefined || bytes === undefined) return {};
  return { [name]: { packets, bytes } } as Record<K, Transferred>;
}

/** Clocks may be set back meanwhile. */
function elapsed(fromMs: number, toMs: number): number {
  return Math.max(0, Math.round((toMs - fromMs) * 1000) / 1000);
}

/** IPv6 addresses are printed in other forms than ours. */
function plain(address: string): string {
  if (!address.includes(':')) return address;
  const ip = parseIp(address);
  return ip === undefined ? address : formatIp(ip);
}
