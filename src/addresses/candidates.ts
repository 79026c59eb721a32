// Which addresses an owner tries, in which order. Pure, and the same in every cluster for the same owner and range.

import { createHash } from 'node:crypto';
import { formatIp, type IpRange, isInRange, parseIp } from '../base/net/ip.ts';

export interface AddressOwner {
  readonly kind: string;
  /** Empty for owners without one. */
  readonly namespace: string;
  readonly name: string;
  /** One of several things of the owner, each with an address of its own; absent for the owner's own address. */
  readonly part?: string;
}

export interface CandidateRequest {
  readonly owner: AddressOwner;
  readonly range: IpRange;
  /** Tried first, in this order, if they lie in the range. */
  readonly preferred: readonly string[];
  /** Addresses known to be taken; the scan skips them without a request. */
  readonly isTaken: (address: string) => boolean;
}

const hashesMax = 64;

export function* candidates(request: CandidateRequest): Generator<string> {
  const tried = new Set<string>();
  for (const address of likely(request)) {
    if (tried.has(address)) continue;
    tried.add(address);
    yield address;
  }
  for (const address of scan(request)) if (!tried.has(address) && !request.isTaken(address)) yield address;
}

/** One by one: the first is nearly always free, and a hash for each of the others would cost more than all else of it. */
function* likely(request: CandidateRequest): Generator<string> {
  yield* preferredInRange(request);
  yield* hashed(request);
}

/** Canonical text of an address that belongs to the range; undefined for anything else. */
export function addressIn(range: IpRange, text: string): string | undefined {
  const ip = parseIp(text);
  if (ip === undefined || !isInRange(ip, range)) return undefined;
  const { first, count } = usable(range);
  return ip.value >= first && ip.value < first + count ? formatIp(ip) : undefined;
}

function preferredInRange({ preferred, range }: CandidateRequest): string[] {
  return preferred.map((text) => addressIn(range, text)).filter((address) => address !== undefined);
}

function* hashed({ owner, range }: CandidateRequest): Generator<string> {
  for (let index = 0; index < hashesMax; index += 1) yield addressAt(range, hashOf(owner, index));
}

function* scan({ owner, range }: CandidateRequest): Generator<string> {
  const start = hashOf(owner, 0);
  const { count } = usable(range);
  for (let step = 0n; step < count; step += 1n) yield addressAt(range, start + step);
}

function addressAt(range: IpRange, offset: bigint): string {
  const { first, count } = usable(range);
  return formatIp({ family: range.family, value: first + (offset % count) });
}

function hashOf({ kind, namespace, name, part }: AddressOwner, index: number): bigint {
  const owner = `${kind}/${namespace}/${name}${part === undefined ? '' : `/${part}`}`;
  const digest = createHash('sha256').update(`${owner}/${index}`).digest('hex');
  return BigInt(`0x${digest}`);
}

/** How many addresses of a range owners can hold. */
export function usableCount(range: IpRange): number {
  return Number(usable(range).count);
}

// Some hosts treat the first and the last address of a network as special; where there are others, they are left alone.
function usable(range: IpRange): { first: bigint; count: bigint } {
  if (range.size <= 2n) return { first: range.first, count: range.size };
  return { first: range.first + 1n, count: range.size - 2n };
}
