// Asks one server that wants a certificate for one path over HTTP/2, and says in words at which step that fails: no
// connection, a certificate that is not the expected one or out of its time, or a server that does not take ours.

import { connect as connectHttp2 } from 'node:http2';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import type { Credentials } from '../x509/certificates.ts';

export interface MutualTlsTarget {
  readonly address: string;
  readonly port: number;
  /** Asked for in TLS. */
  readonly serverName: string;
  readonly path: string;
  /** PEM: those that may have signed the server's certificate. */
  readonly roots: readonly string[];
  /** The URI that the server's certificate has to carry. */
  readonly identity: string;
  readonly own: Credentials;
  readonly timeoutMs: number;
}

export type ProbeMutualTls = (target: MutualTlsTarget) => Promise<string>;

/** Never rejects, and answers within the time given: why it failed, or nothing. */
export const probeMutualTls: ProbeMutualTls = (target) => {
  const { address, port, serverName, roots, own, timeoutMs } = target;
  return new Promise((resolve) => {
    let isShaken = false;
    const socket = connect({
      ...{ host: address, port, servername: serverName, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'] },
      ...{ ca: [...roots], cert: own.certificate, key: own.key },
      // Judged below, to say why.
      ...{ rejectUnauthorized: false, checkServerIdentity: () => undefined },
    });
    const end = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(why);
    };
    const timer = setTimeout(() => end(`it does not answer within ${timeoutMs / 1000} s`), timeoutMs);
    socket.on('error', (error: NodeJS.ErrnoException) => end(whyFailed(error, isShaken, serverName)));
    socket.once('close', () => end(isShaken ? refusesOurs : unknownName(serverName)));
    socket.once('secureConnect', () => {
      isShaken = true;
      const wrong = certificateProblem(socket, target.identity);
      if (wrong !== undefined) return end(wrong);
      ask(socket, target.path, end);
    });
  });
};

function ask(socket: TLSSocket, path: string, end: (why: string) => void): void {
  const session = connectHttp2('https://health', { createConnection: () => socket });
  session.on('error', () => {});
  const stream = session.request({ ':method': 'GET', ':path': path }, { endStream: true });
  stream.on('error', () => {});
  stream.once('response', ({ ':status': status }) => {
    if (status === 200) end('');
    else end(status === 503 ? 'it is being drained' : `it answers ${status}`);
  });
}

const refusesOurs = 'it refuses our certificate';

function unknownName(serverName: string): string {
  return `it refuses us: it has no configuration for ${serverName}`;
}

function certificateProblem(socket: TLSSocket, identity: string): string | undefined {
  const peer = socket.getPeerCertificate();
  const code = socket.authorized ? '' : String(socket.authorizationError);
  if (code === 'CERT_HAS_EXPIRED') return `its certificate expired ${peer.valid_to}`;
  if (code === 'CERT_NOT_YET_VALID') return `its certificate is valid from ${peer.valid_from}: a clock is off`;
  if (code !== '') return `its certificate is signed by no root of that cluster (${code})`;
  const carried = urisOf(peer);
  if (carried.includes(identity)) return undefined;
  return `its certificate is that of ${carried[0] ?? 'nobody'}, not of ${identity}`;
}

function urisOf({ subjectaltname = '' }: PeerCertificate): string[] {
  return subjectaltname.split(', ').flatMap((one) => (one.startsWith('URI:') ? [one.slice(4)] : []));
}

/** In TLS 1.3 a server judges our certificate after the handshake. */
function whyFailed({ code = '', message }: NodeJS.ErrnoException, isShaken: boolean, serverName: string): string {
  if (code === 'ECONNREFUSED') return 'it refuses connections';
  if (/ALERT_CERTIFICATE_EXPIRED/.test(code)) return `${refusesOurs}: it has expired`;
  if (/ALERT/.test(code)) return isShaken ? refusesOurs : unknownName(serverName);
  if (code === 'ECONNRESET') return isShaken ? refusesOurs : unknownName(serverName);
  return code || message;
}
