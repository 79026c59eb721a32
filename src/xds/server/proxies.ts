// The proxies that are or were connected: what each refused, for as long as it may come back. Bounded: of those that are
// away the longest away is forgotten first. Refusals count against objects while a proxy with a certificate is connected,
// and for the time in which one comes back.

import { formatTime } from '../../kube/objects/conditions.ts';
import type { ProgrammedProxies } from '../../kube/objects/reports/data-plane.ts';
import type { EndingCertificate } from '../identity/ending-certificates.ts';
import { type Life, renewAtMs } from '../identity/proxy-files.ts';
import type { ProxyRole } from '../identity/proxy-identity.ts';
import { type Cause, type Variant, type XdsType, xdsTypes } from '../resource.ts';
import type { Refusals } from '../session/messages.ts';
import type { XdsSession } from '../session/session.ts';

interface ProxyStreamState {
  readonly variant: Variant;
  readonly sinceMs: number;
  readonly session: XdsSession;
}

export interface ProxyRecord {
  readonly id: string;
  readonly role: ProxyRole;
  /** By a certificate; anybody who may use the local socket can claim any id there. */
  readonly isIdentified: boolean;
  /** When its last stream ended, on the monotonic clock; undefined while it has one. */
  leftMs: number | undefined;
  /** Since when it has a configuration that it acknowledged, as wall time; undefined while it has none. */
  programmedMs: number | undefined;
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
  readonly isIdentified: boolean;
  readonly userAgent: string;
  readonly streams: readonly { readonly variant: Variant; readonly sinceMs: number }[];
  /** Resources it holds, and those it has not answered for yet. */
  readonly holds: Readonly<Record<XdsType, number>>;
  readonly inFlight: number;
  /** RFC 3339; absent without a certificate. */
  readonly certificateEnds?: string;
  readonly refused: readonly RefusedResource[];
}

interface RefusedResource {
  readonly type: XdsType;
  readonly name: string;
  readonly message: string;
  readonly isHeldAtLastGood: boolean;
  readonly causes: readonly Cause[];
}

/** Proxies that have gone: as many with a certificate as without. */
const awayMax = 1000;
/** Envoy tries again within half a minute. */
export const refusalsKeptMsDefault = 60_000;

export class Proxies {
  readonly #records = new Map<string, ProxyRecord>();
  readonly #refusalsKeptMs: number;

  constructor(refusalsKeptMs: number) {
    this.#refusalsKeptMs = refusalsKeptMs;
  }

  get connected(): number {
    return [...this.#records.values()].filter(({ streams }) => streams.size > 0).length;
  }

  record({ id, role, isIdentified }: Pick<ProxyRecord, 'id' | 'role' | 'isIdentified'>): ProxyRecord {
    const key = keyOf({ id, isIdentified });
    let record = this.#records.get(key);
    if (record === undefined) {
      const empty = { userAgent: '', life: undefined, leftMs: undefined, programmedMs: undefined };
      record = { id, role, isIdentified, ...empty, refusals: new Map(), streams: new Set() };
      this.#records.set(key, record);
      this.#forgetSome();
    }
    record.leftMs = undefined;
    return record;
  }

  /** The longest away stands first. */
  left(record: ProxyRecord, nowMs: number): void {
    if (record.streams.size > 0) return;
    record.leftMs = nowMs;
    record.programmedMs = undefined;
    const key = keyOf(record);
    this.#records.delete(key);
    this.#records.set(key, record);
    this.#forgetSome();
  }

  /** It got a new certificate, which its next connection will show. */
  renewed(id: string, life: Life): void {
    const record = this.#records.get(keyOf({ id, isIdentified: true }));
    if (record !== undefined) record.life = life;
  }

  /** Connected ones whose certificate should have been renewed. */
  ending(nowMs: number): EndingCertificate[] {
    return [...this.#records.values()].flatMap(({ id, life, streams }) =>
      life === undefined || streams.size === 0 || nowMs < renewAtMs(life) ? [] : [{ proxy: id, ...life }],
    );
  }

  /** Connected proxies with a listener that they acknowledged. */
  programmed(role: ProxyRole): Pick<ProgrammedProxies, 'proxies' | 'since'> | undefined {
    const times: number[] = [];
    for (const { role: own, programmedMs, streams } of this.#records.values())
      if (own === role && programmedMs !== undefined && isProgrammed(streams)) times.push(programmedMs);
    return times.length === 0 ? undefined : { proxies: times.length, since: formatTime(Math.min(...times)) };
  }

  /** When the first certificate of a connected proxy ends; undefined if none has one. */
  firstEndMs(): number | undefined {
    const ends = [...this.#records.values()].flatMap(({ life, streams }) =>
      life === undefined || streams.size === 0 ? [] : [life.endMs],
    );
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  /** Those whose refusals count against objects. */
  refusing(nowMs: number): ProxyReport[] {
    const counts = ({ isIdentified, refusals, leftMs = nowMs }: ProxyRecord) =>
      isIdentified && refusals.size > 0 && nowMs - leftMs < this.#refusalsKeptMs;
    return reportsOf([...this.#records.values()].filter(counts));
  }

  reports(): ProxyReport[] {
    return reportsOf([...this.#records.values()]);
  }

  #forgetSome(): void {
    for (const kind of [true, false]) {
      const away = [...this.#records.values()].filter((one) => one.isIdentified === kind && one.streams.size === 0);
      for (const one of away.slice(0, Math.max(0, away.length - awayMax))) this.#records.delete(keyOf(one));
    }
  }
}

export function isProgrammed(streams: ProxyRecord['streams']): boolean {
  for (const { session } of streams) if (session.hasAcknowledged('listener')) return true;
  return false;
}

function keyOf({ id, isIdentified }: Pick<ProxyRecord, 'id' | 'isIdentified'>): string {
  return isIdentified ? id : `local ${id}`;
}

function reportsOf(records: readonly ProxyRecord[]): ProxyReport[] {
  return records.map(reportOf).sort((one, other) => (one.id < other.id ? -1 : 1));
}

function reportOf({ id, role, isIdentified, userAgent, life, refusals, streams }: ProxyRecord): ProxyReport {
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
    isIdentified,
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
