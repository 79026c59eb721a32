// UDP, one socket. Answers are written into one large block that is used round and round, and sent from there: no
// buffer per query. The kernel takes most datagrams at once; only if some are still waiting when the block comes
// round is a new block taken instead. A fault in a packet loses only that packet.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Responder } from '../chain/responder.ts';
import type { TlsMaterial } from '../config/config.ts';
import { Answer } from '../message/answer.ts';
import { udpPayloadMax } from '../message/wire.ts';
import type { Tally } from '../metrics/observe.ts';

export interface UdpOptions {
  readonly responder: Responder;
  readonly nsid: Uint8Array;
  readonly host: string;
  readonly port: number;
  /** Several sockets share the port, and the kernel spreads clients over them. */
  readonly reusePort: boolean;
  readonly tally: Tally;
  readonly onError: (error: unknown) => void;
}

export interface Listening {
  readonly port: number;
  /** Takes no more connections; resolves when no query waits for other servers. What comes meanwhile is answered. */
  drain(): Promise<void>;
  close(): Promise<void>;
  /** Only where TLS is spoken: the certificate for connections from now on. */
  setTls?(material: TlsMaterial): void;
}

const blockBytes = 1 << 20;
const socketBufferBytes = 8 << 20;
/** More than any answer, with its OPT and an extended error. */
const answerRoom = 2 * udpPayloadMax;

export async function listenUdp(options: UdpOptions): Promise<Listening> {
  const { responder, tally } = options;
  const socket = openSocket(options);
  const answer = new Answer(new Uint8Array(blockBytes));
  answer.nsid = options.nsid;
  let at = 0;
  /** Queries that wait for upstream servers. */
  let waiting = 0;
  let onDrained = () => {};
  let isClosed = false;

  function send(bytes: Uint8Array, start: number, length: number, client: RemoteInfo): void {
    socket.send(bytes, start, length, client.port, client.address);
  }

  function sendLate(message: Uint8Array, client: RemoteInfo): void {
    if (isClosed) return;
    try {
      send(message, 0, message.length, client);
    } catch (error) {
      onFault(error);
    }
  }

  function onFault(error: unknown): void {
    tally.add('droppedFault');
    options.onError(error);
  }

  function onMessage(packet: Buffer, client: RemoteInfo): void {
    // Port 0 cannot be answered: sending throws.
    if (client.port === 0) return tally.add('droppedPortZero');
    try {
      take(packet, client);
    } catch (error) {
      onFault(error);
    }
  }

  function take(packet: Buffer, client: RemoteInfo): void {
    if (at + answerRoom > blockBytes) {
      if (socket.getSendQueueCount() > 0) answer.bytes = new Uint8Array(blockBytes);
      at = 0;
    }
    const result = responder.respond(packet, 'udp', client.address, client.port, '', answer, at);
    if (typeof result === 'number') {
      if (result === 0) return;
      send(answer.bytes, at, result, client);
      at += result;
    } else {
      waiting += 1;
      result.take((message) => {
        waiting -= 1;
        if (message) sendLate(message, client);
        if (waiting === 0) onDrained();
      });
    }
  }

  await bind(socket, options);
  socket.on('message', onMessage);
  socket.on('error', options.onError);
  enlargeBuffers(socket);
  return {
    port: socket.address().port,
    drain: () => (waiting === 0 ? Promise.resolve() : new Promise((resolve) => (onDrained = resolve))),
    // Right after the loop has read its sockets: packets that came before are answered, and the next ones reach the server
    // that shares the port.
    close: () =>
      new Promise((resolve) =>
        setImmediate(() => {
          isClosed = true;
          socket.close(() => resolve());
        }),
      ),
  };
}

function openSocket({ host, reusePort }: UdpOptions): Socket {
  const isV6 = isIPv6(host);
  return createSocket({
    type: isV6 ? 'udp6' : 'udp4',
    reusePort,
    ipv6Only: isV6,
    recvBufferSize: undefined,
    // Addresses come from the kernel as text: there is nothing to look up, and no reason to leave this tick.
    lookup: (address, _options, callback) => callback(null, address, isV6 ? 6 : 4),
  });
}

function bind(socket: Socket, { host, port }: UdpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off('error', reject);
      resolve();
    });
  });
}

/** As much as the kernel grants: it cuts the wish down silently, and refusal is no reason not to serve. */
function enlargeBuffers(socket: Socket): void {
  try {
    socket.setRecvBufferSize(socketBufferBytes);
    socket.setSendBufferSize(socketBufferBytes);
  } catch {
    // Small buffers lose packets under bursts; clients ask again.
  }
}
