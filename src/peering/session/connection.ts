// The connection to one owner: in which state it is, and what comes next after it opened, failed or was asked to try again.
// Pure: `step` takes an input and returns what to do. The states are those of the protocol's client (seed 000, Appendix
// A): dialing (1), registering (2), receiving (3), updating (4), waiting (5), backingOff (6 and 8), stopped (7 and 9).

import { Backoff } from '../../base/backoff.ts';
import { type Code, codes } from '../../base/grpc/status.ts';
import type { Random } from '../../base/world.ts';
import type { PeerVersion } from '../kinds/peer.ts';
import type { Held } from '../rules/link-config.ts';
import type { ConsumerState } from './consumer-session.ts';
import { afterClose, reconnectBackoff } from './reconnect.ts';

export type LinkState =
  | { readonly kind: 'dialing' }
  | { readonly kind: 'registering' | 'receiving' | 'updating' | 'waiting' }
  | Held
  | { readonly kind: 'backingOff'; readonly reason: string; readonly delayMs: number }
  | { readonly kind: 'stopped'; readonly code: Code; readonly reason: string };

export type ConnectionInput =
  /** `certificate` is what we present; undefined if there is none yet. */
  | { readonly kind: 'dial'; readonly certificate: string | undefined }
  /** Somebody asked for it: the state so far does not count. */
  | { readonly kind: 'retry'; readonly certificate: string | undefined }
  | { readonly kind: 'opened'; readonly nowMs: number }
  | { readonly kind: 'session'; readonly state: ConsumerState['kind'] }
  /** The owner's catalog is complete: the connection was a success. */
  | { readonly kind: 'reconciled' }
  | {
      readonly kind: 'closed';
      readonly nowMs: number;
      readonly code: Code;
      readonly reason: string;
      readonly certificate: string | undefined;
      readonly hadTooManyPings?: boolean;
    };

export type ConnectionOutput =
  | { readonly kind: 'dial'; readonly version: PeerVersion; readonly keepAliveMs: number }
  | { readonly kind: 'dialLater'; readonly delayMs: number; readonly code: Code; readonly reason: string }
  | { readonly kind: 'stopped'; readonly code: Code; readonly reason: string };

export interface ConnectionOptions {
  readonly random: Random;
  readonly versions: readonly PeerVersion[];
  readonly held?: Held;
  /** How often the owner is asked for a sign of life; less often if it objects. */
  readonly keepAliveMs: number;
  /** Before that time the owner may not know us yet. */
  readonly newUntilMs?: number;
}

/** A stream that lived this long was a success, whatever ended it. */
const healthyMs = 30_000;
/** The bounds of servers in use: one ping in 40 s, and stock gRPC's one in five minutes without data. */
const patientKeepAlivesMs = [45_000, 310_000];

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #backoff: Backoff;
  #state: LinkState;
  #versionIndex = 0;
  #keepAliveMs: number;
  /** Our certificate on the newest stream. */
  #certificate: string | undefined;
  #openedMs: number | undefined;
  #hasFailed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random, reconnectBackoff);
    this.#state = options.held ?? { kind: 'dialing' };
    this.#keepAliveMs = options.keepAliveMs;
  }

  get state(): LinkState {
    return this.#state;
  }

  get version(): PeerVersion {
    return this.#options.versions[this.#versionIndex] ?? 'v1alpha1';
  }

  get keepAliveMs(): number {
    return this.#keepAliveMs;
  }

  /** When the owner took the stream up; undefined while there is none. */
  get openedMs(): number | undefined {
    return this.#openedMs;
  }

  /** Whether a stream ended since the start. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  step(input: ConnectionInput): ConnectionOutput[] {
    switch (input.kind) {
      case 'retry':
        this.#backoff.reset();
        this.#versionIndex = 0;
        this.#openedMs = undefined;
        return this.#dial(input.certificate);
      case 'dial':
        return this.#dial(input.certificate);
      case 'opened':
        this.#openedMs ??= input.nowMs;
        return [];
      case 'session':
        if (input.state !== 'closed') this.#state = { kind: input.state };
        return [];
      case 'reconciled':
        this.#backoff.reset();
        return [];
      case 'closed':
        return this.#closed(input);
    }
  }

  #dial(certificate: string | undefined): ConnectionOutput[] {
    if (this.#options.held !== undefined) return [];
    this.#certificate = certificate;
    this.#state = { kind: 'dialing' };
    if (this.#options.versions.length === 0)
      return this.#stop(codes.failedPrecondition, 'none of the versions that its Peer names is switched on here');
    if (certificate === undefined)
      return this.#stop(codes.unauthenticated, 'this mesh has no certificate of its own yet');
    return [{ kind: 'dial', version: this.version, keepAliveMs: this.#keepAliveMs }];
  }

  #closed({
    nowMs,
    code,
    reason,
    certificate,
    hadTooManyPings,
  }: ConnectionInput & { kind: 'closed' }): ConnectionOutput[] {
    const wasHealthy = this.#openedMs !== undefined && nowMs - this.#openedMs >= healthyMs;
    this.#openedMs = undefined;
    this.#hasFailed = true;
    if (hadTooManyPings)
      this.#keepAliveMs = patientKeepAlivesMs.find((ms) => ms > this.#keepAliveMs) ?? this.#keepAliveMs * 2;
    if (wasHealthy) this.#backoff.reset();
    // It is the old certificate that was refused, perhaps because it had expired; we have another one by now.
    if (code === codes.unauthenticated && certificate !== undefined && certificate !== this.#certificate)
      return this.#dial(certificate);
    const hasNextVersion = this.#versionIndex + 1 < this.#options.versions.length;
    const next = afterClose(code, { hasNextVersion });
    const isUnknownYet = code === codes.unauthenticated && nowMs < (this.#options.newUntilMs ?? 0);
    if (next.kind === 'stop' && !isUnknownYet) return this.#stop(code, reason);
    if (next.kind === 'nextVersion') {
      this.#versionIndex += 1;
      return this.#dial(certificate);
    }
    const delayMs = this.#backoff.nextMs();
    this.#state = { kind: 'backingOff', reason, delayMs };
    return [{ kind: 'dialLater', delayMs, code, reason }];
  }

  #stop(code: Code, reason: string): ConnectionOutput[] {
    this.#hasFailed = true;
    this.#state = { kind: 'stopped', code, reason };
    return [{ kind: 'stopped', code, reason }];
  }
}
