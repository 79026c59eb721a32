// Bounds the connections of a Node HTTP server, in all and from one address. When there is no room, the connection that has
// been without a request longest gives way to the new one; connections with a request in work are never cut.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionBounds {
  readonly max: number;
  readonly perAddressMax: number;
}

interface Entry {
  readonly socket: Socket;
  readonly address: string;
  requests: number;
}

export function boundConnections(server: Server, { max, perAddressMax }: ConnectionBounds): void {
  // In the order in which they were active last.
  const open = new Map<string, Entry>();
  const byAddress = new Map<string, number>();
  const touch = (key: string, entry: Entry) => {
    open.delete(key);
    open.set(key, entry);
  };
  const drop = (key: string, entry: Entry) => {
    if (open.get(key) !== entry) return;
    open.delete(key);
    const left = (byAddress.get(entry.address) ?? 1) - 1;
    if (left === 0) byAddress.delete(entry.address);
    else byAddress.set(entry.address, left);
  };
  const makeRoom = (isMeant: (entry: Entry) => boolean): boolean => {
    for (const [key, entry] of open) {
      if (entry.requests > 0 || !isMeant(entry)) continue;
      drop(key, entry);
      entry.socket.destroy();
      return true;
    }
    return false;
  };
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const isAddressFull = (byAddress.get(address) ?? 0) >= perAddressMax;
    const hasRoom = isAddressFull
      ? makeRoom((entry) => entry.address === address)
      : open.size < max || makeRoom(() => true);
    if (!hasRoom) return void socket.destroy();
    const key = keyOf(socket);
    const entry: Entry = { socket, address, requests: 0 };
    open.set(key, entry);
    byAddress.set(address, (byAddress.get(address) ?? 0) + 1);
    socket.once('close', () => drop(key, entry));
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const key = keyOf(request.socket);
    const entry = open.get(key);
    if (entry === undefined) return;
    entry.requests += 1;
    touch(key, entry);
    response.once('close', () => {
      entry.requests -= 1;
      if (open.get(key) === entry) touch(key, entry);
    });
  });
}

/** The same for a connection before and after its TLS handshake. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
