// One proxy for each network namespace: two would undo each other's rules. The name of an abstract socket belongs to its
// namespace, and ends with the process that holds it.

import { createServer } from 'node:net';

export interface Lock {
  release(): Promise<void>;
}

export function takeLock(): Promise<Lock> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'EADDRINUSE'
          ? new Error('another portolan proxy runs on this node; stop it first', { cause })
          : cause,
      ),
    );
    server.listen('\0portolan-proxy', () => {
      server.unref();
      resolve({ release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}
