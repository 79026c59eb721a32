// The connections of one listening socket, as the kernel accepted them: one over TLS is the connection below it,
// found by the port it comes from. One too many pushes out the one that has been idle longest, so that held
// connections cannot keep others out; a handshake that takes too long ends.

import type { Socket } from 'node:net';
import type { Timer } from '../../base/world.ts';

interface Connection {
  readonly socket: Socket;
  /** Runs out if the handshake takes too long. */
  readonly handshake: Timer | undefined;
}

export class OpenConnections {
  /** In the order of their last query: the first has been idle longest. */
  readonly #connections = new Map<string, Connection>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket, handshake?: Timer): void {
    if (this.#connections.size >= this.#max) this.#closeOldest();
    const key = keyOf(socket);
    const connection = { socket, handshake };
    this.#connections.set(key, connection);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      handshake?.cancel();
      if (this.#connections.get(key) === connection) this.#connections.delete(key);
    });
  }

  /** Something good came from it: the handshake's end, or a whole query. */
  touch(socket: Socket): void {
    const key = keyOf(socket);
    const connection = this.#connections.get(key);
    if (!connection) return;
    connection.handshake?.cancel();
    this.#connections.delete(key);
    this.#connections.set(key, connection);
  }

  destroyAll(): void {
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #closeOldest(): void {
    for (const [key, { socket }] of this.#connections) {
      this.#connections.delete(key);
      socket.destroy();
      return;
    }
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
