// Tries one TLS server once: whether it answers a handshake for a server name. Certificates are not verified and none is
// shown: a server that asks for one has answered.

import { isIP } from 'node:net';
import { connect } from 'node:tls';

export interface TlsTarget {
  readonly address: string;
  readonly port: number;
  readonly serverName: string;
  readonly timeoutMs: number;
}

/** Never rejects, and answers within the time given: why it failed, or nothing. */
export function probeTls({ address, port, serverName, timeoutMs }: TlsTarget): Promise<string> {
  return new Promise((resolve) => {
    const named = isIP(serverName) === 0 ? { servername: serverName } : {};
    const socket = connect({ host: address, port, ...named, rejectUnauthorized: false, minVersion: 'TLSv1.2' });
    const end = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(why);
    };
    const timer = setTimeout(() => end(`no answer within ${timeoutMs / 1000} s`), timeoutMs);
    socket.once('secureConnect', () => end(''));
    socket.on('error', (error: NodeJS.ErrnoException) => end(whyFailed(error, serverName)));
    socket.once('close', () => end(closed(serverName)));
  });
}

function whyFailed(error: NodeJS.ErrnoException, serverName: string): string {
  const { code = '', message } = error;
  if (code === 'ECONNRESET') return closed(serverName);
  if (code === 'ECONNREFUSED') return 'connection refused';
  if (code === 'ENOTFOUND') return 'its name does not resolve';
  // An alert is an answer, unless it is about the name.
  if (/^ERR_SSL_.*ALERT/.test(code)) return /UNRECOGNIZED_NAME/.test(code) ? closed(serverName) : '';
  return code || message;
}

function closed(serverName: string): string {
  return `it closes connections for ${serverName}: no Envoy there has it in its configuration`;
}
