// The proxies that are or were connected: what each refused, for as long as it may come back. Bounded: of those that are
// away the longest away is forgotten first.

import { formatTime } from '../../kube/objects/conditions.ts';
import type { EndingCertificate } from '../identity/ending-certificates.ts';
import { type Life, renewAtMs } from '../identity/proxy-files.ts';
import type { ProxyRole } from '../identity/proxy-identity.ts';
import { type Cause, type Variant, type XdsType, xdsTypes } from '../resource.ts';
import type { Refusals } from '../session/messages.ts';
import type { XdsSession } from '../session/session.ts';

export interface ProxyStreamState {
  readonly variant: Variant;
  readonly sinceMs: number;
  readonly session: XdsSession;
}

export interface ProxyRecord {
  readonly id: string;
  readonly role: ProxyRole;
  userAgent: string;
  /** Lifetime of its newest certificate; undefined on the local socket. */
  life: Life | undefined;
  readonly refusals: Refusals;
  readonly streams: Set<ProxyStreamState>;
}

export interface ProxyReport {
  readonly id: string;
  readonly role: ProxyRole;
  readonly isConnected: boolean;
  readonly userAgent: string;
  readonly streams: readonly { readonly variant: Variant; readonly sinceMs: number }[];
  /** Resources it holds, and those it has not answered for yet. */
  readonly holds: Readonly<Record<XdsType, number>>;
  readonly inFlight: number;
  /** RFC 3339; absent without a certificate. */
  readonly certificateEnds?: string;
  readonly refused: readonly RefusedResource[];
}

export interface RefusedResource {
  readonly type: XdsType;
  readonly name: string;
  readonly message: string;
  readonly isHeldAtLastGood: boolean;
  readonly causes: readonly Cause[];
}

const awayMax = 1000;

export class Proxies {
  readonly #records = new Map<string, ProxyRecord>();

  get connected(): number {
    return [...this.#records.values()].filter(({ streams }) => streams.size > 0).length;
  }

  record(id: string, role: ProxyRole): ProxyRecord {
    let record = this.#records.get(id);
    if (record === undefined) {
      record = { id, role, userAgent: '', life: undefined, refusals: new Map(), streams: new Set() };
      this.#records.set(id, record);
      this.#forgetSome();
    }
    return record;
  }

  /** The longest away stands first. */
  left(record: ProxyRecord): void {
    if (record.streams.size > 0) return;
    this.#records.delete(record.id);
    this.#records.set(record.id, record);
    this.#forgetSome();
  }

  /** It got a new certificate, which its next connection will show. */
  renewed(id: string, life: Life): void {
    const record = this.#records.get(id);
    if (record !== undefined) record.life = life;
  }

  /** Connected ones whose certificate should have been renewed. */
  ending(nowMs: number): EndingCertificate[] {
    return [...this.#records.values()].flatMap(({ id, life, streams }) =>
      life === undefined || streams.size === 0 || nowMs < renewAtMs(life) ? [] : [{ proxy: id, ...life }],
    );
  }

  /** When the first certificate of a connected proxy ends; undefined if none has one. */
  firstEndMs(): number | undefined {
    const ends = [...this.#records.values()].flatMap(({ life, streams }) =>
      life === undefined || streams.size === 0 ? [] : [life.endMs],
    );
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  reports(): ProxyReport[] {
    return [...this.#records.values()].map(reportOf).sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  #forgetSome(): void {
    const away = [...this.#records.values()].filter(({ streams }) => streams.size === 0);
    for (const { id } of away.slice(0, Math.max(0, away.length - awayMax))) this.#records.delete(id);
  }
}

function reportOf({ id, role, userAgent, life, refusals, streams }: ProxyRecord): ProxyReport {
  const holds = Object.fromEntries(xdsTypes.map((type) => [type, 0])) as Record<XdsType, number>;
  let inFlight = 0;
  for (const { session } of streams) {
    for (const type of xdsTypes) {
      const state = session.describe(type);
      holds[type] += state.held;
      inFlight += state.inFlight;
    }
  }
  return {
    id,
    role,
    userAgent,
    isConnected: streams.size > 0,
    streams: [...streams].map(({ variant, sinceMs }) => ({ variant, sinceMs })),
    holds,
    inFlight,
    ...(life === undefined ? {} : { certificateEnds: formatTime(life.endMs) }),
    refused: [...refusals.values()].map(({ entry, message, lastGood }) => ({
      type: entry.type,
      name: entry.name,
      message,
      isHeldAtLastGood: lastGood !== undefined,
      causes: entry.causes,
    })),
  };
}
