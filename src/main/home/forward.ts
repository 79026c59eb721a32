// While another process writes the home, this one passes connections on to it, byte by byte: clients reach the home by any
// of its processes, and TLS is between them and the one that answers.

import { connect, createServer, type Socket } from 'node:net';
import { errorText, type Log } from '../../base/log.ts';
import { type HostPort, parseHostPort } from '../../base/net/host-port.ts';

export interface Forwarder {
  /** Connections from now on go there, or are ended at once; those that are open stay. */
  to(address: string | undefined): void;
  /** Ends them all. The port is free when it resolves. */
  close(): Promise<void>;
}

const connectionsMax = 2_000;
const connectMs = 2_000;

export function forwardConnections(listen: HostPort, log: Log): Forwarder {
  let target: HostPort | undefined;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    if (target === undefined || target.port === 0) return void client.destroy();
    const holder = connect({ ...target, timeout: connectMs });
    holder.once('connect', () => holder.setTimeout(0));
    holder.once('timeout', () => holder.destroy());
    for (const [one, other] of [
      [client, holder],
      [holder, client],
    ] as const) {
      open.add(one);
      one.setNoDelay(true);
      one.on('error', () => {});
      one.once('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
    client.pipe(holder);
    holder.pipe(client);
  });
  server.maxConnections = connectionsMax;
  server.on('error', (error) => log.warn('connections cannot be passed on', { error: errorText(error) }));
  if (listen.port !== 0) server.listen(listen.port, listen.host);
  return {
    to: (address) => {
      target = address === undefined ? undefined : parseHostPort(address);
    },
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Whether nobody listens there. A process that is frozen or cannot be reached does not refuse. */
export function isRefusedAt(address: string): Promise<boolean> {
  const target = parseHostPort(address);
  if (target === undefined || target.port === 0) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ ...target, timeout: connectMs });
    const end = (isRefused: boolean) => {
      socket.destroy();
      resolve(isRefused);
    };
    socket.once('connect', () => end(false));
    socket.once('timeout', () => end(false));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED'));
  });
}
