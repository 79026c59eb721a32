// Notices a half-open connection by an unanswered PING, long before TCP would. An edge.

import type { Http2Session } from 'node:http2';

export interface KeepAliveOptions {
  /** Between two PINGs; a dead connection is given up after at most twice this time. */
  readonly intervalMs: number;
  /** Time for an answer, if it is to be shorter than until the next PING. */
  readonly answerMsMax?: number | undefined;
  readonly onAlive?: () => void;
  /** Called some time after the session was given up, by either side. */
  readonly onGivenUp?: () => void;
}

export function keepAlive(session: Http2Session, options: KeepAliveOptions): void {
  const { intervalMs, answerMsMax = intervalMs, onAlive, onGivenUp } = options;
  let isAnswered = true;
  let bytesSeen = 0;
  let answerTimer: NodeJS.Timeout | undefined;
  // A PING can be late behind much data; the data is a sign of life too.
  const isDead = () => !isAnswered && (session.socket.bytesRead ?? 0) === bytesSeen;
  const giveUp = () => session.destroy(new Error(`the other side did not answer keep-alive for ${answerMsMax} ms`));
  const timer = setInterval(() => {
    if (session.destroyed) {
      clearInterval(timer);
      return onGivenUp?.();
    }
    if (isDead()) return giveUp();
    bytesSeen = session.socket.bytesRead ?? 0;
    isAnswered = false;
    session.ping((error) => {
      if (error !== null) return;
      isAnswered = true;
      onAlive?.();
    });
    if (answerMsMax < intervalMs)
      answerTimer = setTimeout(() => {
        if (!session.destroyed && isDead()) giveUp();
      }, answerMsMax);
  }, intervalMs);
  session.on('close', () => {
    clearInterval(timer);
    clearTimeout(answerTimer);
  });
}
