// The owners of cluster IPs: one key in the store for each address in use, written in the same commit as the
// Service that holds it, so no address is ever held twice or forgotten. An address is found by a few blind guesses, and
// when those fail by halving the range: each half is taken as often as it has free addresses, so that of many who look
// at once in a range that is nearly full hardly any two find the same one.

import { formatIp, type Ip, type IpFamily, type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import type { Random } from '../../base/world.ts';
import type { Compare, Entry, Store, Write } from '../store/store.ts';

const prefix = '/portolan/addresses/service/';
const guessesMax = 8;

interface Commit {
  readonly alsoCompare: Compare[];
  readonly alsoWrite: Write[];
}

/** Why an address could not be had, in words for the error on `spec.clusterIPs`. */
export class AddressError extends Error {}

export interface ServiceAddresses {
  /** The families there are ranges of, the preferred one first. */
  readonly families: readonly IpFamily[];
  /** Takes this very address for the owner. */
  take(store: Store, request: { readonly address: string; readonly owner: string }, commit: Commit): Promise<void>;
  /** Takes any free address of the family. */
  takeAny(
    store: Store,
    request: { readonly family: IpFamily; readonly owner: string },
    commit: Commit,
  ): Promise<string>;
  /** Gives it back, if it is the owner's. */
  release(store: Store, request: { readonly address: string; readonly owner: string }, commit: Commit): Promise<void>;
}

interface Pool {
  readonly text: string;
  readonly range: IpRange;
  /** Inclusive: without the network's own address and, for IPv4, the broadcast address. */
  readonly first: bigint;
  readonly last: bigint;
}

export function createServiceAddresses(ranges: readonly string[], random: Random): ServiceAddresses {
  const pools = ranges.map(parsePool);
  const families = [...new Set(pools.map((pool) => pool.range.family))];
  return {
    families,
    take: (store, request, commit) => take(store, pools, request, commit),
    takeAny: (store, request, commit) => takeAny(store, { pools, random, ...request }, commit),
    release,
  };
}

function parsePool(text: string): Pool {
  const range = parseRange(text);
  if (range === undefined || !text.includes('/')) {
    throw new Error(`service range ${JSON.stringify(text)}: not a CIDR such as 10.96.0.0/16 or fd00:96::/112`);
  }
  const end = range.first + range.size - 1n;
  if (range.size < 4n) throw new Error(`service range ${text}: too small, it needs at least four addresses`);
  return { text, range, first: range.first + 1n, last: range.family === 'IPv4' ? end - 1n : end };
}

/** Keys of one family sort as their addresses do. */
function keyOf(ip: Ip): string {
  const digits = ip.family === 'IPv4' ? 8 : 32;
  return `${prefix}${ip.family}/${ip.value.toString(16).padStart(digits, '0')}`;
}

async function take(
  store: Store,
  pools: readonly Pool[],
  { address, owner }: { address: string; owner: string },
  commit: Commit,
): Promise<void> {
  const ip = parseIp(address);
  if (ip === undefined) throw new AddressError(`failed to allocate IP ${address}: it is not an IP address`);
  const isInside = (pool: Pool) => isInRange(ip, pool.range) && ip.value >= pool.first && ip.value <= pool.last;
  if (!pools.some(isInside)) throw new AddressError(outsideText(address, ip.family, pools));
  const key = keyOf(ip);
  const held = await store.get(key);
  if (held !== undefined && ownerOf(held) !== owner) {
    throw new AddressError(`failed to allocate IP ${address}: provided IP is already allocated`);
  }
  hold(commit, { key, revision: held?.revision ?? 0 }, owner);
}

function outsideText(address: string, family: IpFamily, pools: readonly Pool[]): string {
  const texts = pools.filter((pool) => pool.range.family === family).map((pool) => pool.text);
  return `failed to allocate IP ${address}: the provided IP (${address}) is not in the valid range. The range of valid IPs is ${texts.join(', ')}`;
}

interface AnyRequest {
  readonly pools: readonly Pool[];
  readonly random: Random;
  readonly family: IpFamily;
  readonly owner: string;
}

async function takeAny(store: Store, request: AnyRequest, commit: Commit): Promise<string> {
  const pools = request.pools.filter(({ range }) => range.family === request.family);
  for (const pool of pools) {
    const { random } = request;
    const ip = (await guess(store, pool, random, commit)) ?? (await findByCounting(store, pool, random));
    if (ip === undefined || isTakenHere(commit, keyOf(ip))) continue;
    hold(commit, { key: keyOf(ip), revision: 0 }, request.owner);
    return formatIp(ip);
  }
  const texts = pools.map((pool) => pool.text).join(', ');
  throw new AddressError(
    `failed to allocate a serviceIP: range is full: every address of ${texts} is held by a Service`,
  );
}

async function guess(store: Store, pool: Pool, random: Random, commit: Commit): Promise<Ip | undefined> {
  const { family } = pool.range;
  const size = Number(pool.last - pool.first + 1n);
  for (let tries = 0; tries < guessesMax; tries += 1) {
    const ip = { family, value: pool.first + BigInt(Math.floor(random.float() * size)) };
    const key = keyOf(ip);
    if (isTakenHere(commit, key)) continue;
    if ((await store.get(key)) === undefined) return ip;
  }
  return undefined;
}

/** Any free address, each as likely as the others; undefined when there is none. */
async function findByCounting(store: Store, { range, first, last }: Pool, random: Random): Promise<Ip | undefined> {
  const { family } = range;
  const freeIn = async (low: bigint, high: bigint) =>
    Number(high - low + 1n) - (await countHeld(store, family, { low, high }));
  let [low, high] = [first, last];
  let free = await freeIn(low, high);
  if (free <= 0) return undefined;
  while (low < high) {
    const middle = (low + high) / 2n;
    const freeBelow = await freeIn(low, middle);
    const isBelow = Math.floor(random.float() * free) < freeBelow;
    if (isBelow) high = middle;
    else low = middle + 1n;
    free = isBelow ? freeBelow : free - freeBelow;
    // Somebody else took what was counted in between.
    if (free <= 0) return undefined;
  }
  return { family, value: low };
}

interface Span {
  readonly low: bigint;
  readonly high: bigint;
}

/** Counted below what both ends have in common, so that a small span costs little however many are held elsewhere. */
async function countHeld(store: Store, family: IpFamily, { low, high }: Span): Promise<number> {
  const ends = { low: keyOf({ family, value: low }), high: keyOf({ family, value: high }) };
  const common = commonPrefix(ends.low, ends.high);
  const heldAfter = async (after: string): Promise<number> => {
    const { entries, remaining } = await store.range({ prefix: common, after, limit: 1 });
    return entries.length + remaining;
  };
  const isLowHeld = (await store.get(ends.low)) !== undefined;
  return Number(isLowHeld) + (await heldAfter(ends.low)) - (await heldAfter(ends.high));
}

function commonPrefix(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}

function isTakenHere(commit: Commit, key: string): boolean {
  return commit.alsoWrite.some((write) => write.key === key);
}

async function release(
  store: Store,
  { address, owner }: { address: string; owner: string },
  commit: Commit,
): Promise<void> {
  const ip = parseIp(address);
  if (ip === undefined) return;
  const key = keyOf(ip);
  const held = await store.get(key);
  if (held === undefined || ownerOf(held) !== owner) return;
  commit.alsoCompare.push({ key, revision: held.revision });
  commit.alsoWrite.push({ key });
}

function hold(commit: Commit, compare: Compare, owner: string): void {
  commit.alsoCompare.push(compare);
  commit.alsoWrite.push({ key: compare.key, value: Buffer.from(owner) });
}

/** The holder is `namespace/name`: within one kind, that is who may hold it. */
function ownerOf(entry: Entry): string {
  return Buffer.from(entry.value).toString('utf8');
}
