// Questions to other servers over UDP. Each leaves from an unpredictable port with an unpredictable id (RFC 5452):
// for each server there is a large pool of sockets on ports that the kernel chose, thrown away after a while. Sockets
// are connected, so the kernel drops packets of others, and reports a closed port at once. A reply counts only if id
// and question are right to the letter; anything else is ignored and the wait goes on.

import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { World } from '../../base/world.ts';
import type { ServerAddress } from '../config/config.ts';
import { headerBytes } from '../message/wire.ts';
import { Deadline, Deadlines } from './deadlines.ts';
import type { ExchangeOptions, TakeReply } from './exchange.ts';
import { RandomNumbers } from './random-numbers.ts';
import { isReplyTo } from './reply.ts';

/** Ports that a forger has to choose from, for each server. */
const poolSize = 256;
const questionsPerSocket = 2000;
const waitingPerSocketMax = 4096;
const idlePoolMs = 60_000;

interface Pool {
  readonly sockets: (PooledSocket | undefined)[];
  usedMs: number;
  isClosed: boolean;
}

class WaitingQuestion extends Deadline {
  readonly id: number;
  readonly message: Uint8Array;
  readonly #socket: PooledSocket;
  readonly #done: TakeReply;

  constructor(id: number, message: Uint8Array, socket: PooledSocket, done: TakeReply) {
    super();
    this.id = id;
    this.message = message;
    this.#socket = socket;
    this.#done = done;
  }

  expire(): void {
    this.end(undefined);
  }

  end(reply: Uint8Array | undefined): void {
    this.list?.remove(this);
    this.#socket.forget(this);
    this.#done(reply);
  }
}

class PooledSocket {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, WaitingQuestion>();
  /** Questions from before the socket was connected; undefined from then on. */
  #unsent: WaitingQuestion[] | undefined = [];
  #questionsLeft = questionsPerSocket;
  #isRetired = false;

  constructor({ host, port }: ServerAddress) {
    const isV6 = isIPv6(host);
    this.#socket = createSocket({
      type: isV6 ? 'udp6' : 'udp4',
      lookup: (address, _options, callback) => callback(null, address, isV6 ? 6 : 4),
    });
    this.#socket.on('message', (reply) => this.#take(reply));
    // The port is closed: pending queries fail at once.
    this.#socket.on('error', () => this.#fail());
    this.#socket.connect(port, host, ((error?: Error) => this.#onConnected(error)) as () => void);
    this.#socket.unref();
  }

  get isWornOut(): boolean {
    return this.#questionsLeft <= 0 || this.#waiting.size >= waitingPerSocketMax;
  }

  has(id: number): boolean {
    return this.#waiting.has(id);
  }

  send(question: WaitingQuestion): void {
    this.#questionsLeft -= 1;
    this.#waiting.set(question.id, question);
    if (this.#unsent) this.#unsent.push(question);
    else this.#socket.send(question.message);
  }

  forget(question: WaitingQuestion): void {
    this.#waiting.delete(question.id);
    this.#closeIfIdle();
  }

  /** Closes when the last question has its reply. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#closeIfIdle();
  }

  close(): void {
    this.retire();
    this.#fail();
  }

  #onConnected(error: Error | undefined): void {
    const unsent = this.#unsent ?? [];
    this.#unsent = undefined;
    if (error) {
      this.#questionsLeft = 0;
      this.#fail();
      return;
    }
    for (const question of unsent) if (this.#waiting.get(question.id) === question) this.#socket.send(question.message);
  }

  #fail(): void {
    for (const question of [...this.#waiting.values()]) question.end(undefined);
  }

  #closeIfIdle(): void {
    if (this.#isRetired && this.#waiting.size === 0) this.#socket.close();
  }

  #take(reply: Buffer): void {
    if (reply.length < headerBytes) return;
    const question = this.#waiting.get((reply[0]! << 8) | reply[1]!);
    if (question && isReplyTo(reply, question.message)) question.end(reply);
  }
}

export class UdpSockets {
  readonly #world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly #numbers: RandomNumbers;
  readonly #deadlines: Deadlines;
  readonly #pools = new Map<string, Pool>();
  /** The same pools, for servers that have been asked before. */
  readonly #poolOf = new WeakMap<ServerAddress, Pool>();

  constructor(world: Pick<World, 'clock' | 'timers' | 'random'>) {
    this.#world = world;
    this.#numbers = new RandomNumbers(world.random);
    this.#deadlines = new Deadlines(world);
  }

  /** Writes the id into the message, which is the transport's from now on. */
  send({ server, message, timeoutMs }: ExchangeOptions, done: TakeReply): void {
    const socket = this.#pick(server);
    let id = this.#numbers.next();
    while (socket.has(id)) id = this.#numbers.next();
    message[0] = id >> 8;
    message[1] = id & 255;
    const question = new WaitingQuestion(id, message, socket, done);
    this.#deadlines.set(question, timeoutMs);
    socket.send(question);
  }

  /** Ends every question that waits. */
  close(): void {
    for (const { sockets } of this.#pools.values()) for (const socket of sockets) socket?.close();
    this.#pools.clear();
    this.#deadlines.close();
  }

  #pick(server: ServerAddress): PooledSocket {
    const pool = this.#poolFor(server);
    pool.usedMs = this.#world.clock.monotonicMs();
    const at = this.#numbers.next() % poolSize;
    const socket = pool.sockets[at];
    if (socket && !socket.isWornOut) return socket;
    socket?.retire();
    return (pool.sockets[at] = new PooledSocket(server));
  }

  #poolFor(server: ServerAddress): Pool {
    const known = this.#poolOf.get(server);
    if (known && !known.isClosed) return known;
    this.#closeIdle();
    const key = `${server.host} ${server.port}`;
    const pool = this.#pools.get(key) ?? { sockets: new Array(poolSize).fill(undefined), usedMs: 0, isClosed: false };
    this.#pools.set(key, pool);
    this.#poolOf.set(server, pool);
    return pool;
  }

  /** Unused servers; looked for when a new one comes. */
  #closeIdle(): void {
    const sinceMs = this.#world.clock.monotonicMs() - idlePoolMs;
    for (const [key, pool] of this.#pools) {
      if (pool.usedMs > sinceMs) continue;
      this.#pools.delete(key);
      pool.isClosed = true;
      for (const socket of pool.sockets) socket?.retire();
    }
  }
}
