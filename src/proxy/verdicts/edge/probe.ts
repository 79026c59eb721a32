// Probes one endpoint from this node: connects, and closes at once with a reset. A second attempt is made half-way, so that one lost
// packet is not taken for silence.

import { connect, type Socket } from 'node:net';
import type { ProbeRequest, ProbeResult } from '../paths.ts';

const ownTroubles: ReadonlySet<string | undefined> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
]);

export function probeEndpoint({ address, port, waitMs }: ProbeRequest): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const sockets: Socket[] = [];
    const end = (found: ProbeResult) => {
      clearTimeout(second);
      clearTimeout(last);
      for (const socket of sockets) close(socket);
      resolve(found);
    };
    const attempt = (isSecond: boolean) => {
      const startedMs = performance.now();
      const socket = connect({ host: address, port });
      sockets.push(socket);
      socket.once('connect', () => end({ tookMs: performance.now() - startedMs, isSecond }));
      // Refused, or no way there: the second attempt would be no better.
      socket.on('error', ({ code }: NodeJS.ErrnoException) => end(ownTroubles.has(code) ? 'unknown' : 'unanswered'));
    };
    const second = setTimeout(() => attempt(true), waitMs / 2);
    const last = setTimeout(() => end('unanswered'), waitMs);
    attempt(false);
  });
}

/** A reset of one that is not connected yet would wait until it is: for minutes where nobody answers. */
function close(socket: Socket): void {
  if (socket.connecting) socket.destroy();
  else socket.resetAndDestroy();
}
