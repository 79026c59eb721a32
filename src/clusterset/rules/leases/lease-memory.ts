// The lease states that an agent has determined, as stored in the cluster's home: for its next run, and to explain
// why a service is withdrawn. Times are of this cluster's own clock. Pure.

import { formatTime } from '../../../kube/objects/conditions.ts';
import type { LeaseRecord, LeaseVerdict } from './lease-monitor.ts';

export interface LeaseMemory {
  readonly verdict: LeaseVerdict;
  /** RFC 3339: since when that is the verdict. */
  readonly since: string;
  readonly returns: number;
  /** For a stale member that is not held down: the lease at its expiry. */
  readonly token?: string;
  /** RFC 3339: set while it has come back and is not trusted yet. */
  readonly heldUntil?: string;
  /** RFC 3339, by the member's clock: its agent lives and has had no answer from its home since then. */
  readonly homeAwaySince?: string;
}

/** Undefined if there is nothing to remember: it lives, and has not been away lately. */
export function rememberLease(
  { verdict, returns, token, heldMs, homeAwaySince }: LeaseRecord,
  before: LeaseMemory | undefined,
  wallMs: number,
): LeaseMemory | undefined {
  if (verdict === 'alive' && returns === 0) return undefined;
  const isHeld = heldMs !== undefined;
  const isSameVerdict = before?.verdict === verdict;
  // The token of a lease that is renewed all the time would be written all the time.
  const kept = verdict === 'stale' && !isHeld && homeAwaySince === undefined ? token : undefined;
  const away = verdict === 'stale' ? homeAwaySince : undefined;
  // A lasting verdict is not written again: the rest of a hold-down follows from its end.
  const isSame = isSameVerdict && before.returns === returns && before.token === kept && before.homeAwaySince === away;
  if (isSame && (before.heldUntil !== undefined) === isHeld) return before;
  return {
    verdict,
    since: isSameVerdict && verdict === 'stale' ? before.since : formatTime(wallMs),
    returns,
    token: kept,
    ...(isHeld ? { heldUntil: formatTime(wallMs + heldMs) } : {}),
    ...(away === undefined ? {} : { homeAwaySince: away }),
  };
}

/** For the monitor of a new run. A clock that was put back does not make a hold-down longer than `holdDownMsMax`. */
export function recallLease(
  memory: LeaseMemory,
  { wallMs, holdDownMsMax }: { readonly wallMs: number; readonly holdDownMsMax: number },
): LeaseRecord & { readonly aliveMs: number } {
  const { verdict, since, returns, token, heldUntil, homeAwaySince } = memory;
  const heldMs = heldUntil === undefined ? undefined : clamp(Date.parse(heldUntil) - wallMs, holdDownMsMax);
  const aliveMs = verdict === 'alive' ? clamp(wallMs - Date.parse(since), Number.MAX_SAFE_INTEGER) : 0;
  return { verdict, returns, token, heldMs, aliveMs, homeAwaySince };
}

/** `alive`, `stale since …`, `held down until …`: for people. */
export function describeLease(memory: LeaseMemory | undefined): string {
  if (memory?.verdict !== 'stale') return 'alive';
  if (memory.homeAwaySince !== undefined)
    return `stale since ${memory.since}, its home away since ${memory.homeAwaySince}`;
  return memory.heldUntil === undefined ? `stale since ${memory.since}` : `held down until ${memory.heldUntil}`;
}

/** Why what it exports is not offered as ever; undefined if it is. */
export function whyNotTrusted(memory: LeaseMemory | undefined): string | undefined {
  if (memory?.verdict !== 'stale') return undefined;
  if (memory.homeAwaySince !== undefined)
    return `its agent has had no answer from its home since ${memory.homeAwaySince}`;
  if (memory.heldUntil === undefined) return `its lease has run out, ${memory.since}`;
  return `it has come back ${memory.returns} times lately and is held down until ${memory.heldUntil}`;
}

export function formatLeaseMemory(memory: LeaseMemory): string {
  return JSON.stringify(memory);
}

/** Undefined for text that makes no sense. */
export function parseLeaseMemory(text: string): LeaseMemory | undefined {
  try {
    const { verdict, since, returns, token, heldUntil, homeAwaySince } = JSON.parse(text) as Record<string, unknown>;
    if ((verdict !== 'alive' && verdict !== 'stale') || !isTime(since) || !Number.isInteger(returns)) return undefined;
    return {
      verdict,
      since,
      returns: returns as number,
      ...(typeof token === 'string' ? { token } : {}),
      ...(isTime(heldUntil) ? { heldUntil } : {}),
      ...(isTime(homeAwaySince) ? { homeAwaySince } : {}),
    };
  } catch {
    return undefined;
  }
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function clamp(ms: number, msMax: number): number {
  return Math.min(msMax, Math.max(0, ms));
}
