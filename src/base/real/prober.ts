// Real probes: a TCP connection, or a GET whose status is from 200 to 399. Certificates are not verified, as with
// Kubernetes' own probes: the question is whether the process is well, not who it is. Redirects are not followed.

import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { ProbeAnswer, Prober, ProbeTarget } from '../prober.ts';
import { request as httpRequest } from './node-http.ts';

export function createRealProber(): Prober {
  return { probe: (target) => (target.http === undefined ? probeTcp(target) : probeHttp(target, target.http)) };
}

function probeTcp({ address, port, timeoutMs }: ProbeTarget): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (answer: ProbeAnswer) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end(bad(`no connection within ${timeoutMs} ms`)), timeoutMs);
    socket.once('connect', () => end({ isGood: true }));
    socket.on('error', (error) => end(bad(error.message)));
  });
}

function probeHttp(
  { address, port, timeoutMs }: ProbeTarget,
  http: NonNullable<ProbeTarget['http']>,
): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const send = http.isSecure ? httpsRequest : httpRequest;
    const headers = { host: http.host, 'user-agent': 'portolan-check', connection: 'close' };
    const tls = { rejectUnauthorized: false };
    const request = send({ host: address, port, path: http.path, headers, agent: false, ...tls });
    const end = (answer: ProbeAnswer) => {
      clearTimeout(timer);
      request.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end(bad(`no answer within ${timeoutMs} ms`)), timeoutMs);
    request.on('error', (error) => end(bad(error.message)));
    request.once('response', ({ statusCode = 0 }) =>
      end(statusCode >= 200 && statusCode < 400 ? { isGood: true } : bad(`answered ${statusCode}`)),
    );
    request.end();
  });
}

function bad(reason: string): ProbeAnswer {
  return { isGood: false, reason };
}
