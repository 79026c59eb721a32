// Listens on one clusterset address and port, and passes connections on. A backend that refuses is left for another one;
// established connections go on when the choice changes, and when the listener closes.

import { connect, createServer, type Server, type Socket } from 'node:net';
import type { ConnectionCounts } from '../../kube/objects/reports/connections.ts';
import type { Backend } from '../port-choice.ts';
import type { Balancer } from './balancer.ts';
import type { FlowClient, OpenFlow } from './flows.ts';

export interface Listener {
  close(): Promise<void>;
}

export interface ListenOptions {
  readonly ip: string;
  readonly port: number;
  readonly balancer: Balancer;
  readonly onConnection: (backend: Backend, clientPort: number) => void;
  readonly onOutcome?: (backend: Backend, outcome: keyof ConnectionCounts) => void;
  readonly openFlow?: (backend: Backend, client: FlowClient) => OpenFlow;
}

const connectMs = 3000;
const triesMax = 3;

export function listenTcp(options: ListenOptions): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    sockets.add(client);
    client.once('close', () => sockets.delete(client));
    client.on('error', () => client.destroy());
    passOn(client, options);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.ip, port: options.port }, () => {
      server.removeListener('error', reject);
      server.on('error', () => {});
      resolve({
        close: () => {
          // New ones are refused from here on; those that are open end by themselves, and hold up nothing.
          server.close();
          for (const socket of sockets) socket.unref();
          return Promise.resolve();
        },
      });
    });
  });
}

async function passOn(client: Socket, options: ListenOptions): Promise<void> {
  const tried = new Set<Backend>();
  for (let tries = 0; tries < triesMax; tries += 1) {
    const backend = options.balancer.pick(client.remoteAddress ?? '', tried);
    if (backend === undefined) break;
    tried.add(backend);
    const from = { client: client.remoteAddress ?? '', clientPort: client.remotePort ?? 0 };
    const flow = options.openFlow?.(backend, from);
    const upstream = await open(backend);
    // Counted together: one under way is no failed one.
    options.onOutcome?.(backend, 'tried');
    if (typeof upstream === 'string') {
      flow?.failed(upstream);
      continue;
    }
    flow?.answered();
    upstream.once('close', () => flow?.ended({ sent: upstream.bytesWritten, received: upstream.bytesRead }));
    options.onOutcome?.(backend, 'answered');
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') options.onOutcome?.(backend, 'reset');
    });
    if (client.destroyed) return void upstream.destroy();
    options.onConnection(backend, client.remotePort ?? 0);
    join(client, upstream);
    return;
  }
  client.resetAndDestroy();
}

/** What became of it where there is no connection. */
function open({ address, port }: Backend): Promise<Socket | 'refused' | 'no-answer'> {
  return new Promise((resolve) => {
    let outcome: 'refused' | 'no-answer' = 'no-answer';
    const socket = connect({ host: address, port, allowHalfOpen: true });
    const timer = setTimeout(() => socket.destroy(new Error('timeout')), connectMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') outcome = 'refused';
      socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(outcome);
    });
  });
}

function join(client: Socket, upstream: Socket): void {
  client.pipe(upstream).pipe(client);
  client.once('close', () => upstream.destroy());
  upstream.once('close', () => client.destroy());
  client.resume();
}
