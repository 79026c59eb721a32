// Notices a half-open connection by an unanswered PING, long before TCP would. An edge.

import type { Http2Session } from 'node:http2';

export interface KeepAliveOptions {
  /** Between two PINGs; a dead connection is given up after at most twice this time. */
  readonly intervalMs: number;
  readonly onAlive?: () => void;
  /** Called some time after the session was given up, by either side. */
  readonly onGivenUp?: () => void;
}

export function keepAlive(session: Http2Session, { intervalMs, onAlive, onGivenUp }: KeepAliveOptions): void {
  let isAnswered = true;
  let bytesSeen = 0;
  const timer = setInterval(() => {
    if (session.destroyed) {
      clearInterval(timer);
      return onGivenUp?.();
    }
    // A PING can be late behind much data; the data is a sign of life too.
    const bytesRead = session.socket.bytesRead ?? 0;
    if (!isAnswered && bytesRead === bytesSeen)
      return session.destroy(new Error(`the other side did not answer keep-alive for ${intervalMs} ms`));
    bytesSeen = bytesRead;
    isAnswered = false;
    session.ping((error) => {
      if (error !== null) return;
      isAnswered = true;
      onAlive?.();
    });
  }, intervalMs);
  session.on('close', () => clearInterval(timer));
}
