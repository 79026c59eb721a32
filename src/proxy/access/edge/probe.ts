// Proves that the table is enforced: connects from an address that stands for a caller to a port that is exported and to one that
// is not.

import { connect, createServer, type Server } from 'node:net';

/** Addresses of caller and endpoint, and two ports there. */
export interface ProbeEnds {
  readonly from: string;
  readonly to: string;
  readonly exported: number;
  readonly refused: number;
}

/** Whether each port was reached; undefined for a family that this machine does not have. */
export interface ProbeResult {
  readonly exported: boolean;
  readonly refused: boolean;
}

const answerMs = 2000;

export async function probeAccess({ from, to, ...ports }: ProbeEnds): Promise<ProbeResult | undefined> {
  const servers: Server[] = [];
  try {
    for (const port of [ports.exported, ports.refused]) {
      const server = await listen(to, port);
      if (server === undefined) return undefined;
      servers.push(server);
    }
    return {
      exported: await isReached({ from, to, port: ports.exported }),
      refused: !(await isReached({ from, to, port: ports.refused })),
    };
  } finally {
    for (const server of servers) server.close();
  }
}

function listen(host: string, port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen({ host, port }, () => resolve(server));
  });
}

function isReached({
  from,
  to,
  port,
}: {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: to, port, localAddress: from });
    const end = (reached: boolean) => {
      socket.destroy();
      resolve(reached);
    };
    socket.setTimeout(answerMs, () => end(false));
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
