// One plain request to another mesh's peering endpoint, from the command line. The other side is known by its roots and
// by the trust domain of the identity in its certificate, not by a host name.

import http2 from 'node:http2';
import { peerUrl, splitPem } from '../../peering/kinds/peer.ts';
import { trustDomainOf } from '../../peering/kinds/shared-service.ts';

export interface PeerCall {
  readonly address: string;
  readonly domain: string;
  readonly bundle: string;
  readonly path: string;
  readonly body: unknown;
  readonly credentials?: { readonly certificate: string; readonly key: string };
}

export interface PeerAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each caller knows what it asked for.
  readonly body: any;
}

/** The other side speaks the protocol of peers or another one, but does not serve our own requests. */
export class NotPortolan extends Error {}

const answerMsMax = 15_000;

export function callPeer(call: PeerCall): Promise<PeerAnswer> {
  const url = peerUrl(call.address);
  return new Promise((resolve, reject) => {
    const session = http2.connect(url, {
      ca: splitPem(call.bundle),
      cert: call.credentials?.certificate,
      key: call.credentials?.key,
      checkServerIdentity: (_host, { subjectaltname = '' }) => wrongDomain(subjectaltname, call.domain),
    });
    const fail = (error: Error) => {
      session.destroy();
      reject(new Error(`${url}${call.path}: ${error.message}`, { cause: error.cause }));
    };
    const failAsForeign = (what: string) => {
      session.destroy();
      reject(new NotPortolan(`${url}${call.path}: ${what}: the other side is not a Portolan`));
    };
    const timer = setTimeout(() => fail(new Error(`no answer in ${answerMsMax / 1000} s`)), answerMsMax);
    session.on('error', fail);
    session.on('close', () => clearTimeout(timer));
    const stream = session.request({ ':method': 'POST', ':path': call.path, 'content-type': 'application/json' });
    const chunks: Buffer[] = [];
    let status = 0;
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
      if (headers['content-type'] !== 'application/json' || status === 404)
        failAsForeign(`answered with HTTP ${status}`);
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_HTTP2_STREAM_ERROR') failAsForeign('refused the request');
      else fail(error);
    });
    stream.on('end', () => {
      session.close();
      try {
        resolve({ status, body: JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') });
      } catch {
        fail(new Error(`answered with HTTP ${status} and something that is not JSON`));
      }
    });
    stream.end(JSON.stringify(call.body));
  });
}

function wrongDomain(names: string, domain: string): Error | undefined {
  const identities = names.split(', ').filter((name) => name.startsWith('URI:spiffe://'));
  if (identities.length === 1 && trustDomainOf((identities[0] as string).slice('URI:'.length)) === domain)
    return undefined;
  return new Error(`the other side is ${identities.join(', ') || 'without an identity'}, expected one of ${domain}`);
}
