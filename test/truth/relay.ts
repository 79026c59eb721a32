// A TCP relay in front of a server. Cut, it keeps connections open, takes new ones and passes nothing on, as a network does that
// loses all packets. Healed, what was sent meanwhile arrives late.

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #waiting: (() => void)[] = [];
  #isCut = false;

  private constructor(target: () => number) {
    this.#server = createServer({ pauseOnConnect: true }, (inner) => {
      this.#keep(inner);
      const join = () => this.#join(inner, target());
      if (this.#isCut) this.#waiting.push(join);
      else join();
    });
  }

  /** The target may change its port. */
  static async open(target: () => number, port = 0): Promise<Relay> {
    const relay = new Relay(target);
    await new Promise<void>((resolve, reject) => {
      relay.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  heal(): void {
    this.#isCut = false;
    for (const join of this.#waiting.splice(0)) join();
    for (const socket of this.#sockets) socket.resume();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(inner: Socket, port: number): void {
    if (inner.destroyed) return;
    const outer = connect({ host: '127.0.0.1', port });
    this.#keep(outer);
    this.#pass(inner, outer);
    this.#pass(outer, inner);
    if (!this.#isCut) inner.resume();
  }

  #pass(from: Socket, to: Socket): void {
    from.on('data', (bytes) => {
      if (to.destroyed) return;
      if (!to.write(bytes)) {
        from.pause();
        to.once('drain', () => {
          if (!this.#isCut) from.resume();
        });
      }
    });
    from.on('end', () => to.end());
    // An end that is lost is not noticed on the other side.
    from.on('close', () => {
      if (!this.#isCut) to.destroy();
      else this.#waiting.push(() => to.destroy());
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
