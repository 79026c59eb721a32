// Opens one connection to a server: TCP, TLS with our certificates, and the protocol both sides agreed on.

import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { checkServerIdentity, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { HttpAccess } from '../http.ts';
import { ConnectionError } from './connection-error.ts';

export interface Connection {
  readonly socket: Socket;
  readonly protocol: 'h2' | 'http/1.1';
}

const connectTimeoutMs = 10_000;
/**
 * The kernel repeats an unanswered SYN after 1, 3, 7 … s. Without a second attempt beside the first, a mended line
 * would be noticed that late.
 */
const unansweredMs = 500;
/** With the kernel's ten probes one second apart a dead peer is noticed in 20 s, also where no PING can be sent. */
const keepAliveMs = 10_000;

export async function openConnection(access: HttpAccess, timeoutMs = connectTimeoutMs): Promise<Connection> {
  const url = new URL(access.server);
  const pair = (await access.clientCertificatePair?.()) ?? {
    certificate: access.clientCertificate,
    key: access.clientKey,
  };
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const socket =
    url.protocol === 'https:'
      ? await secure(access, { host, port, timeoutMs, ...pair })
      : await plain(access, { host, port, timeoutMs });
  socket.setKeepAlive(true, keepAliveMs);
  socket.setNoDelay(true);
  const agreed = (socket as Partial<TLSSocket>).alpnProtocol;
  return { socket, protocol: agreed === 'h2' ? 'h2' : 'http/1.1' };
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly certificate?: string;
  readonly key?: string;
}

function plain(access: HttpAccess, target: Target): Promise<Socket> {
  return established(access, { event: 'connect', timeoutMs: target.timeoutMs }, () =>
    tcpConnect({ host: target.host, port: target.port }),
  );
}

function secure(access: HttpAccess, target: Target): Promise<Socket> {
  const expectedName = access.serverName ?? target.host;
  return established(access, { event: 'secureConnect', timeoutMs: target.timeoutMs }, () =>
    tlsConnect({
      host: target.host,
      port: target.port,
      ca: access.certificateAuthority,
      cert: target.certificate,
      key: target.key,
      rejectUnauthorized: !access.insecureSkipVerify,
      // RFC 6066 section 3: an address is not a server name.
      servername: isIP(expectedName) ? '' : expectedName,
      checkServerIdentity: (_host, certificate) => checkServerIdentity(expectedName, certificate),
      ALPNProtocols: ['h2', 'http/1.1'],
    }),
  );
}

interface Awaited {
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
}

function established(access: HttpAccess, { event, timeoutMs }: Awaited, open: () => Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const tries = new Set<Socket>();
    const end = (winner?: Socket) => {
      clearTimeout(timer);
      clearInterval(again);
      for (const socket of tries) if (socket !== winner) socket.on('error', () => {}).destroy();
    };
    const fail = (cause: unknown) => {
      end();
      reject(new ConnectionError(`connect to ${access.server}`, cause));
    };
    const start = () => {
      let socket: Socket;
      try {
        socket = open();
      } catch (error) {
        return fail(error);
      }
      tries.add(socket);
      const lost = (cause: unknown) => {
        tries.delete(socket);
        if (tries.size === 0) fail(cause);
      };
      socket.once('error', lost);
      socket.once('close', () => lost(new Error('closed during the handshake')));
      // Somebody is there: what takes time from now on is theirs, and another try would only add to it.
      socket.once('connect', () => clearInterval(again));
      socket.once(event, () => {
        end(socket);
        socket.removeAllListeners('close');
        socket.removeListener('error', lost);
        resolve(socket);
      });
    };
    const timer = setTimeout(() => fail(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs);
    const again = setInterval(start, unansweredMs);
    start();
  });
}
