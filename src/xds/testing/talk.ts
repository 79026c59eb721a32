// A proxy's conversation with a session, written down line by line: what the proxy asks, what the server sends, how the
// proxy answers.

import type { Variant, XdsResource, XdsType } from '../resource.ts';
import type { Refusals, ServerResponse } from '../session/messages.ts';
import { XdsSession } from '../session/session.ts';
import type { Entry } from '../view/entry.ts';
import { type ResourceChange, ResourceSet } from '../view/resource-set.ts';
import { View } from '../view/view.ts';

export type Verdict = 'ack' | 'silent' | { readonly nack: string };

export class Talk {
  readonly lines: string[] = [];
  readonly set = new ResourceSet();
  readonly refusals: Refusals = new Map();
  readonly proven = new WeakSet<Entry>();
  readonly unanswered: ServerResponse[] = [];
  readonly #variant: Variant;
  readonly #names = new Map<XdsType, string[]>();
  readonly #held = new Map<XdsType, { version: string; versions: Record<string, string> }>();
  readonly #isEnvoy: boolean;
  readonly #drainMs: number;
  nowMs = 0;
  #session: XdsSession;
  judge: (response: ServerResponse) => Verdict = () => 'ack';

  constructor(variant: Variant, { isEnvoy = true, drainMs = 0 } = {}) {
    this.#variant = variant;
    this.#drainMs = drainMs;
    this.#isEnvoy = isEnvoy;
    this.#session = this.#open();
    this.set.onChange((changes: readonly ResourceChange[]) => {
      for (const event of this.#session.changed(changes)) this.#note(event);
    });
  }

  /** Replaces what one owner has; nothing is sent before `flush`. */
  put(owner: string, ...resources: readonly XdsResource[]): this {
    this.set.replace(owner, resources);
    return this;
  }

  /** Everything ACKed now counts as accepted by some proxy. */
  prove(): this {
    for (const type of ['cluster', 'endpoints', 'listener'] as const) {
      for (const entry of this.set.entries(type)) this.proven.add(entry);
    }
    return this;
  }

  ask(type: XdsType, ...names: readonly string[]): this {
    this.lines.push(`> ${type} ${names.join(' ') || '(all)'}`);
    const isFirst = !this.#names.has(type);
    this.#names.set(type, [...names]);
    const held = isFirst ? this.#held.get(type) : undefined;
    this.#take(type, names, held);
    return this.flush();
  }

  /** Lets time pass until the session has something to send by itself. */
  wait(ms: number): this {
    this.nowMs += ms;
    const { wakeMs } = this.#session;
    return wakeMs === undefined || wakeMs > this.nowMs ? this : this.flush();
  }

  /** Delta: no longer wanted. State of the world: the names that stay. */
  leave(type: XdsType, name: string): this {
    this.lines.push(`> ${type} not ${name}`);
    const stay = (this.#names.get(type) ?? []).filter((one) => one !== name);
    this.#names.set(type, stay);
    const isDelta = this.#variant === 'delta';
    this.#session.take(type, {
      typeUrl: type,
      names: isDelta ? { kind: 'changes', subscribe: [], unsubscribe: [name] } : { kind: 'all', names: stay },
      held: isDelta ? { versions: {} } : { version: '' },
    });
    return this.flush();
  }

  reconnect(): this {
    this.lines.push('--- reconnect');
    this.#names.clear();
    this.unanswered.length = 0;
    this.#session = this.#open();
    return this;
  }

  /** Answers the oldest response that was left without an answer. */
  answer(verdict: Verdict): this {
    const response = this.unanswered.shift();
    if (response !== undefined) this.#answer(response, verdict);
    return this.flush();
  }

  /** A request with a nonce of one's own. */
  answerNonce(type: XdsType, nonce: string, error?: string): this {
    const answer = error === undefined ? { nonce } : { nonce, error };
    this.#take(type, this.#names.get(type) ?? [], undefined, answer);
    return this.flush();
  }

  flush(): this {
    for (;;) {
      const response = this.#session.next(this.nowMs);
      if (response === undefined) return this;
      this.lines.push(describe(response));
      const verdict = this.judge(response);
      if (verdict === 'silent') this.unanswered.push(response);
      else this.#answer(response, verdict);
    }
  }

  /** The lines since the last call. */
  said(): string[] {
    return this.lines.splice(0);
  }

  #open(): XdsSession {
    return new XdsSession({
      variant: this.#variant,
      view: new View({ wildcard: [this.set], byName: [] }),
      refusals: this.refusals,
      proven: this.proven,
      isAggregated: true,
      isEnvoy: this.#isEnvoy,
      drainMs: this.#drainMs,
    });
  }

  #answer(response: ServerResponse, verdict: Verdict): void {
    const error = typeof verdict === 'object' ? verdict.nack : undefined;
    if (error === undefined) this.#hold(response);
    else this.lines.push(`  refused: ${error}`);
    const answer = error === undefined ? { nonce: response.nonce } : { nonce: response.nonce, error };
    this.#take(response.type, this.#names.get(response.type) ?? [], undefined, answer);
  }

  #hold({ type, version, entries, removed }: ServerResponse): void {
    const held = this.#held.get(type) ?? { version: '', versions: {} };
    const versions = { ...held.versions };
    for (const entry of entries) versions[entry.name] = entry.version;
    for (const name of removed) delete versions[name];
    this.#held.set(type, { version, versions });
  }

  #take(
    type: XdsType,
    names: readonly string[],
    held: { version: string; versions: Record<string, string> } | undefined,
    answer?: { nonce: string; error?: string },
  ): void {
    const isDelta = this.#variant === 'delta';
    const events = this.#session.take(type, {
      typeUrl: type,
      names: isDelta
        ? { kind: 'changes', subscribe: answer === undefined ? names : [], unsubscribe: [] }
        : { kind: 'all', names },
      held: isDelta ? { versions: held?.versions ?? {} } : { version: held?.version ?? '' },
      ...(answer && { answer }),
    });
    for (const event of events) this.#note(event);
  }

  #note(event: ReturnType<XdsSession['take']>[number]): void {
    if (event.kind === 'recovered') this.lines.push(`  recovered: ${event.type} ${event.name}`);
    else if (event.kind === 'refused') {
      const { entry, lastGood } = event.refusal;
      this.lines.push(`  held: ${entry.type} ${entry.name} at ${lastGood === undefined ? 'nothing' : 'last good'}`);
    } else if (event.kind === 'stale') this.lines.push('  stale nonce');
  }
}

function describe({ type, entries, removed }: ServerResponse): string {
  const names = entries.map(({ name }) => name).sort();
  const gone = removed.map((name) => `-${name}`);
  return `< ${type} ${[...names, ...gone].join(' ') || '(none)'}`;
}
