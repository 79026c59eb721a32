// Ends the connection-tracking entries of backends that are gone: without it a client that keeps its UDP port would stay with
// a dead one, and so would a new TCP connection from a port whose last one was never answered. Established TCP goes on.
//
// Each run of conntrack reads the whole table of the kernel. So all backends that went together are looked for in one
// listing, and only what is found there is removed.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import { formatIp, type Ip, parseIp } from '../../base/net/ip.ts';
import { MissingProgram, runProgram } from './edge/programs.ts';
import type { GoneBackend } from './ruleset.ts';

/** More runs than this for one listing are not made: then one run removes the entries of several. */
const runsMax = 20;

export class Conntrack {
  readonly #host: Host;
  readonly #log: Log;
  #isMissing = false;
  #waiting: GoneBackend[] = [];
  #running: Promise<void> | undefined;

  constructor(host: Host, log: Log) {
    this.#host = host;
    this.#log = log;
  }

  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Resolves when they are gone, or could not be removed. Those that go meanwhile are one more round. */
  clear(gone: readonly GoneBackend[]): Promise<void> {
    for (const backend of gone) this.#waiting.push(backend);
    this.#running ??= this.#rounds().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #rounds(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isMissing) {
      const groups = Map.groupBy(this.#waiting.splice(0), ({ version, protocol }) => `${version} ${protocol}`);
      for (const backends of groups.values()) await this.#round(backends);
    }
    this.#waiting = [];
  }

  async #round(gone: readonly GoneBackend[]): Promise<void> {
    const { version, protocol } = gone[0]!;
    const filter = [
      ...(version === 4 ? [] : ['-f', 'ipv6']),
      ...['-p', protocol, ...(protocol === 'tcp' ? ['--state', 'SYN_SENT'] : [])],
    ];
    const listed = await this.#run(['-L', ...filter]);
    if (listed === undefined) return;
    const pairs = new Set(gone.map(({ ip, backend }) => `${ip} ${backend.split(' ')[0]}`));
    const found = [...new Set(flowsIn(listed))].filter((pair) => pairs.has(pair));
    for (const more of removalsOf(found)) await this.#run(['-D', ...filter, ...more]);
  }

  /** Its output; undefined if it failed. */
  async #run(args: readonly string[]): Promise<string | undefined> {
    if (this.#isMissing) return undefined;
    try {
      const { code, out, err } = await runProgram(this.#host, 'conntrack', args);
      if (code === 0 || /0 flow entries have been/.test(err)) return out;
      this.#log.warn('connection-tracking entries were not removed', { args: args.join(' '), error: err });
    } catch (error) {
      if (error instanceof MissingProgram) {
        this.#isMissing = true;
        this.#log.warn('conntrack is not installed: clients may stay with removed endpoints; install conntrack');
      } else this.#log.warn('connection-tracking entries were not removed', { error: errorText(error) });
    }
    return undefined;
  }
}

/** Where each flow was sent and who is to answer it: the first `dst` and the second `src` of a line. */
function* flowsIn(listing: string): IterableIterator<string> {
  for (const [, to, from] of listing.matchAll(/^[^\n]*?\bdst=(\S+)[^\n]*?\bsrc=(\S+)/gm))
    yield `${plain(to!)} ${plain(from!)}`;
}

function plain(address: string): string {
  const ip = parseIp(address);
  return ip === undefined ? address : formatIp(ip);
}

/** One for each pair, or for each address that clients know; beyond that one for the range around all of them. */
function removalsOf(found: readonly string[]): readonly string[][] {
  const pairs = found.map((pair) => pair.split(' ') as [to: string, from: string]);
  if (pairs.length <= runsMax) return pairs.map(([to, from]) => ['--orig-dst', to, '--reply-src', from]);
  const addresses = [...new Set(pairs.map(([to]) => to))];
  if (addresses.length <= runsMax) return addresses.map((to) => ['--orig-dst', to]);
  return [['--orig-dst', rangeAround(addresses.map((text) => parseIp(text)!))]];
}

function rangeAround(addresses: readonly Ip[]): string {
  const { family } = addresses[0]!;
  let [low, high] = [addresses[0]!.value, addresses[0]!.value];
  for (const { value } of addresses) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  let shared = 0n;
  while (low >> shared !== high >> shared) shared += 1n;
  const bits = family === 'IPv4' ? 32n : 128n;
  return `${formatIp({ family, value: (low >> shared) << shared })}/${bits - shared}`;
}
