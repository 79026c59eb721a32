// Listens on one clusterset address and UDP port: each active client has a socket of its own to its backend. A client
// moves when its backend is gone.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { Backend } from '../port-choice.ts';
import type { Listener, ListenOptions } from './server-tcp.ts';

interface Session {
  readonly backend: Backend;
  readonly upstream: Socket;
  timer: NodeJS.Timeout;
}

const idleMs = 30_000;
const sessionsMax = 1000;

export function listenUdp(options: ListenOptions): Promise<Listener> {
  const family = options.ip.includes(':') ? 'udp6' : 'udp4';
  const socket = createSocket(family);
  const sessions = new Map<string, Session>();

  const end = (key: string) => {
    const session = sessions.get(key);
    if (session === undefined) return;
    sessions.delete(key);
    clearTimeout(session.timer);
    session.upstream.close();
  };

  const begin = (key: string, from: RemoteInfo): Session | undefined => {
    const backend = options.balancer.pick(from.address);
    if (backend === undefined) return undefined;
    if (sessions.size >= sessionsMax) end(sessions.keys().next().value!);
    const upstream = createSocket(backend.address.includes(':') ? 'udp6' : 'udp4');
    upstream.on('message', (message) => socket.send(message, from.port, from.address));
    upstream.on('error', () => end(key));
    const session = { backend, upstream, timer: setTimeout(() => end(key), idleMs) };
    sessions.set(key, session);
    options.onConnection(backend, from.port);
    return session;
  };

  socket.on('message', (message, from) => {
    // It cannot be answered: sending to port 0 throws.
    if (from.port === 0) return;
    const key = `${from.address} ${from.port}`;
    const known = sessions.get(key);
    if (known !== undefined && !isStill(options, known.backend)) end(key);
    const session = sessions.get(key) ?? begin(key, from);
    if (session === undefined) return;
    session.timer.refresh();
    session.upstream.send(message, session.backend.port, session.backend.address);
  });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address: options.ip, port: options.port, exclusive: true }, () => {
      socket.removeListener('error', reject);
      socket.on('error', () => {});
      resolve({
        close: () => {
          for (const key of [...sessions.keys()]) end(key);
          return new Promise((done) => socket.close(() => done()));
        },
      });
    });
  });
}

function isStill({ balancer }: ListenOptions, { address, port }: Backend): boolean {
  return balancer.choice.backends.some((each) => each.address === address && each.port === port);
}
