// Worlds for simulated processes: one virtual time, one network and one seed for all of them; clocks of its own that are off
// and drift, a disk and a random stream for each. Revoking a World is what kill -9 is to a process: its timers are gone, nothing it waits for
// ever comes.

import type { Hpke } from '../src/base/keys/hpke.ts';
import { createHpke } from '../src/base/real/hpke.ts';
import type { Disk, ListedFile, Random, World } from '../src/base/world.ts';
import { VirtualNetwork } from './virtual-network.ts';
import { VirtualTime } from './virtual-time.ts';

export interface SimulationOptions {
  readonly seed: number;
  readonly latencyMs?: { readonly min: number; readonly max: number };
  /** Wall clock time when virtual time begins. */
  readonly startWallMs?: number;
}

export interface VirtualWorldOptions {
  /** How far this process's wall clock is off when virtual time begins. */
  readonly wallSkewMs?: number;
  /** Seconds its clocks count in a true second: 1 by default. Its timers drift with them. */
  readonly clockRate?: number;
}

export interface VirtualWorld extends World {
  readonly name: string;
  readonly hpke: Hpke;
  revoke(): void;
}

export class Simulation {
  readonly time = new VirtualTime();
  readonly network: VirtualNetwork;
  readonly #random: () => number;
  readonly #disks = new Map<string, Map<string, Uint8Array>>();
  readonly #startWallMs: number;

  constructor(options: SimulationOptions) {
    this.#random = seededRandom(options.seed);
    this.#startWallMs = options.startWallMs ?? Date.UTC(2026, 0, 1);
    const latency = options.latencyMs ?? { min: 1, max: 5 };
    this.network = new VirtualNetwork(this.time, () => latency.min + this.#random() * (latency.max - latency.min));
  }

  /** The real one, in no time. */
  #hpke(random: Random, isRevoked: () => boolean): Hpke {
    const hpke = createHpke(random);
    const held = <T>(work: () => Promise<T>) => settleUnless(isRevoked, this.time.hold(work));
    return {
      makeKeys: () => held(() => hpke.makeKeys()),
      seal: (request) => held(() => hpke.seal(request)),
      open: (request) => held(() => hpke.open(request)),
    };
  }

  /** A process of that name. Its disk outlives it: the next World of the same name finds it. */
  world(name: string, options: VirtualWorldOptions = {}): VirtualWorld {
    let isRevoked = false;
    const live = (run: () => void) => () => {
      if (!isRevoked) run();
    };
    const { wallSkewMs = 0, clockRate = 1 } = options;
    const monotonicMs = () => this.time.nowMs * clockRate;
    const files = this.#disks.get(name) ?? new Map<string, Uint8Array>();
    this.#disks.set(name, files);
    const random = randomFrom(seededRandom(Math.floor(this.#random() * 2 ** 32)));
    return {
      name,
      hpke: this.#hpke(random, () => isRevoked),
      clock: { wallMs: () => this.#startWallMs + wallSkewMs + monotonicMs(), monotonicMs },
      timers: { after: (delayMs, run) => this.time.schedule(delayMs / clockRate, live(run)) },
      random,
      network: {
        http: (access) => {
          const transport = this.network.transport(name, access);
          const live = <T>(promise: Promise<T>) => settleUnless(() => isRevoked, promise);
          return {
            send: async (request) => {
              const response = await live(isRevoked ? never() : transport.send(request));
              if (response.body instanceof Uint8Array) return response;
              return { ...response, body: liveBody(response.body, live) };
            },
            close: () => transport.close(),
          };
        },
      },
      disk: virtualDisk(files, () => isRevoked),
      revoke: () => {
        isRevoked = true;
        this.network.breakStreams({ from: name });
      },
    };
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** A killed process sees neither what it waited for nor that it will not come. */
function settleUnless<T>(isRevoked: () => boolean, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.then(
      (value) => isRevoked() || resolve(value),
      (error) => isRevoked() || reject(error),
    );
  });
}

function liveBody(
  body: AsyncIterable<Uint8Array>,
  live: <T>(promise: Promise<T>) => Promise<T>,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = body[Symbol.asyncIterator]();
      return {
        next: () => live(source.next()),
        return: async () => {
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** mulberry32: small, fast, and the same everywhere. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomFrom(float: () => number): Random {
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => Math.floor(float() * 256));
  return {
    float,
    bytes,
    uuid: () => {
      const id = bytes(16);
      id[6] = (id[6]! & 0x0f) | 0x40;
      id[8] = (id[8]! & 0x3f) | 0x80;
      const hex = Buffer.from(id).toString('hex');
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
    },
  };
}

function wholeOf(content: Uint8Array | Iterable<Uint8Array>): Uint8Array {
  return content instanceof Uint8Array
    ? Uint8Array.from(content)
    : Buffer.concat(Array.from(content, (piece) => Buffer.from(piece)));
}

function virtualDisk(files: Map<string, Uint8Array>, isRevoked: () => boolean): Disk {
  const whileLive = <T>(run: () => T): Promise<T> => (isRevoked() ? never() : Promise.resolve(run()));
  return {
    read: (path) => whileLive(() => files.get(path)),
    write: (path, content) => whileLive(() => void files.set(path, wholeOf(content))),
    remove: (path) => whileLive(() => void files.delete(path)),
    list: (path) => whileLive(() => filesIn(files, `${path}/`)),
    freeBytes: () => whileLive(() => Number.POSITIVE_INFINITY),
  };
}

function filesIn(files: ReadonlyMap<string, Uint8Array>, prefix: string): ListedFile[] {
  return [...files]
    .filter(([path]) => path.startsWith(prefix) && !path.slice(prefix.length).includes('/'))
    .map(([path, bytes]) => ({ name: path.slice(prefix.length), sizeBytes: bytes.length }));
}
