// A connection that can be cut: passes bytes to a server on this machine, TLS included.

import { connect, createServer, type Socket } from 'node:net';

export interface Line {
  /** The URL on this side. */
  readonly server: string;
  cut(): void;
  stop(): void;
}

export async function startLine(server: string): Promise<Line> {
  const port = Number(new URL(server).port);
  const sockets = new Set<Socket>();
  const listener = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    server: `https://127.0.0.1:${(listener.address() as { port: number }).port}`,
    cut,
    stop: () => {
      listener.close();
      cut();
    },
  };
}
