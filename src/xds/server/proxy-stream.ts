// One stream of one proxy: its first request says who it is and so what it sees; then requests go to the session and
// responses go out as fast as the proxy takes them.

import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { MalformedError } from '../../base/protobuf/wire-reader.ts';
import type { Timer } from '../../base/world.ts';
import { typeOfUrl } from '../envoy-schema.ts';
import { admitNode, type ProxyCaller } from '../identity/proxy-identity.ts';
import type { ClientRequest, NodeInfo, SessionEvent } from '../session/messages.ts';
import { XdsSession } from '../session/session.ts';
import { withAbsentListeners } from '../view/absent-listeners.ts';
import type { Method } from './methods.ts';
import { isProgrammed, type ProxyRecord } from './proxies.ts';
import { RequestBudget } from './request-budget.ts';
import type { StreamContext } from './stream-context.ts';
import { decodeRequest, encodeResponse, namesMax } from './wire.ts';

interface Opened {
  readonly session: XdsSession;
  readonly record: ProxyRecord;
  readonly close: () => void;
}

const endedCertificate = [
  'certificate',
  codes.unauthenticated,
  'the certificate of this connection has ended; connect again with the present one',
] as const;

/** Envoy's own --drain-time-s, 600 unless given, and some time for its answers. */
const drainMs = 630_000;

export class ProxyStream implements CallHandlers {
  readonly #call: ServerCall<ProxyCaller>;
  readonly #method: Method;
  readonly #context: StreamContext;
  readonly #budget: RequestBudget;
  #opened: Opened | undefined;
  #isBlocked = false;
  #isEnded = false;
  #wake: Timer | undefined;

  constructor(call: ServerCall<ProxyCaller>, method: Method, context: StreamContext) {
    this.#call = call;
    this.#method = method;
    this.#context = context;
    this.#budget = new RequestBudget(context.world.clock.monotonicMs());
  }

  onMessage(message: Buffer): void {
    if (this.#isEnded) return;
    const request = this.#decode(message);
    if (request === undefined) return;
    this.#opened ??= this.#open(request.node);
    if (this.#opened === undefined) return;
    const type = this.#method.type ?? typeOfUrl(request.typeUrl);
    const isOther = request.typeUrl !== '' && type !== undefined && typeOfUrl(request.typeUrl) !== type;
    // Types that we do not have are asked for in vain, as at any server.
    const events: SessionEvent[] = type === undefined || isOther ? [] : this.#opened.session.take(type, request);
    this.#note(events);
    if (this.#opened.session.subscribed > namesMax) {
      this.#end('flood', codes.resourceExhausted, `more than ${namesMax} names are subscribed on one stream`);
      return;
    }
    const isAnswer = events.some(({ kind }) => kind === 'answered');
    if (type === 'listener') this.#noteProgrammed(this.#opened.record);
    if (!isAnswer && !this.#budget.spend(this.#context.world.clock.monotonicMs())) {
      this.#end('flood', codes.resourceExhausted, 'too many requests that answer nothing; slow down');
      return;
    }
    this.pump();
  }

  onDrain(): void {
    this.#isBlocked = false;
    this.pump();
  }

  onClosed(): void {
    this.#isEnded = true;
    this.#wake?.cancel();
    this.#opened?.close();
    this.#opened = undefined;
  }

  /** Sends what there is to send, until the way is full. */
  pump(): void {
    const session = this.#opened?.session;
    while (session !== undefined && !this.#isBlocked && !this.#isEnded) {
      const response = session.next(this.#context.world.clock.monotonicMs());
      if (response === undefined) return this.#sleep(session);
      const bytes = encodeResponse(this.#method.variant, response);
      this.#context.meter.sent(response.type, bytes.length);
      this.#isBlocked = !this.#call.send(bytes);
    }
  }

  /** Until the session has something more to send by itself. */
  #sleep({ wakeMs }: XdsSession): void {
    const { clock, timers } = this.#context.world;
    this.#wake?.cancel();
    this.#wake =
      wakeMs === undefined
        ? undefined
        : timers.after(Math.max(0, wakeMs - clock.monotonicMs()), () => this.#context.schedule(this));
  }

  #decode(message: Buffer): ClientRequest | undefined {
    try {
      return decodeRequest(this.#method.variant, message);
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.#end('malformed', codes.invalidArgument, `the request cannot be read: ${error.message}`);
      return undefined;
    }
  }

  #open(node: NodeInfo | undefined): Opened | undefined {
    const { cluster, proxies, views, world } = this.#context;
    const admitted = admitNode(node?.id ?? '', this.#call.caller, cluster);
    if ('reason' in admitted || node === undefined) {
      this.#end('node', codes.permissionDenied, 'reason' in admitted ? admitted.reason : 'no node');
      return undefined;
    }
    const { role } = admitted.identity;
    const place = this.#context.placeOf({ zone: node.zone, region: node.region });
    const isClustersetProxied = node.metadata['clusterset'] === 'proxied';
    const { view, release } = views.open({ proxy: admitted.identity, place, isClustersetProxied });
    const isIdentified = this.#call.caller.identity !== undefined;
    const record = proxies.record({ id: node.id, role, isIdentified });
    record.userAgent = node.userAgent.slice(0, 100);
    record.life = this.#call.caller.life;
    const { variant, type } = this.#method;
    const session = new XdsSession({
      variant,
      view: role === 'grpc' && variant === 'sotw' ? withAbsentListeners(view) : view,
      refusals: record.refusals,
      proven: this.#context.proven,
      isAggregated: type === undefined,
      isEnvoy: node.userAgent === 'envoy',
      // Chains of an ingress or a gateway carry bytes: no request on an open connection looks for its cluster again.
      drainMs: role === 'sidecar' ? drainMs : 0,
    });
    const state = { variant, session, sinceMs: world.clock.wallMs() };
    record.streams.add(state);
    const off = view.onChange((changes) => {
      this.#note(session.changed(changes));
      this.#context.schedule(this);
    });
    const { life } = this.#call.caller;
    const untilEndMs = life === undefined ? undefined : Math.max(0, life.endMs - world.clock.wallMs());
    const ending =
      untilEndMs === undefined ? undefined : world.timers.after(untilEndMs, () => this.#end(...endedCertificate));
    const close = () => {
      off();
      ending?.cancel();
      release();
      record.streams.delete(state);
      const wasProgrammed = record.programmedMs !== undefined;
      proxies.left(record, world.clock.monotonicMs());
      if (wasProgrammed && record.programmedMs === undefined) this.#context.onProgrammed();
      if (record.streams.size === 0 && record.refusals.size > 0) this.#context.onLeft();
    };
    return { session, record, close };
  }

  #note(events: readonly SessionEvent[]): void {
    for (const event of events) {
      if (event.kind === 'refused') {
        const { entry, message } = event.refusal;
        this.#context.meter.refused(entry.type);
        this.#context.onRefused({ proxy: this.#opened?.record.id ?? '', entry, message });
      } else if (event.kind === 'recovered') this.#context.onRecovered();
      else if (event.kind === 'stale') this.#context.meter.stale();
    }
  }

  #noteProgrammed(record: ProxyRecord): void {
    if (record.programmedMs !== undefined || !isProgrammed(record.streams)) return;
    record.programmedMs = this.#context.world.clock.wallMs();
    this.#context.onProgrammed();
  }

  #end(
    why: 'certificate' | 'flood' | 'malformed' | 'node',
    code: (typeof codes)[keyof typeof codes],
    reason: string,
  ): void {
    this.#isEnded = true;
    this.#context.meter.turnedAway(why);
    this.#context.onTurnedAway(reason);
    this.#call.end(code, reason);
  }
}
