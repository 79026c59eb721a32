import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Verdict } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { renewalPath } from '../identity/proxy-files.ts';
import type { ProxyCaller, ProxyIdentity } from '../identity/proxy-identity.ts';
import { Renewal } from './renewal.ts';

const identity: ProxyIdentity = { role: 'sidecar', cluster: 'east', name: 'web' };
const trusted: Verdict<ProxyCaller> = { kind: 'trusted', caller: { identity } };

function start() {
  let nowMs = 0;
  const renewed: string[] = [];
  const renewal = new Renewal({
    clock: { wallMs: () => nowMs, monotonicMs: () => nowMs },
    certify: ({ name }) => `certificate of ${name}`,
    onRenewed: ({ name }) => renewed.push(name),
  });
  const ask = async (body: unknown, verdict = trusted) => {
    const route = renewal.route({ path: renewalPath, verdict, from: '' })!;
    const { status, body: text } = 'status' in route ? route : await route.withBody(Buffer.from(JSON.stringify(body)));
    return `${status} ${Object.values(JSON.parse(text) as object)[0]}`;
  };
  return { renewal, renewed, ask, pass: (ms: number) => (nowMs += ms) };
}

const publicPem = (curve: string) =>
  generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export({ type: 'spki', format: 'pem' });

test('renewal: a proxy with a good certificate -> another one in its own name, at most one a second', async () => {
  const { ask, renewed, pass } = start();
  const request = { publicKey: publicPem('P-256') };
  expect(await ask(request)).toBe('200 certificate of web');
  expect(await ask(request)).toBe('429 sidecar~east~web renewed its certificate less than a second ago');
  pass(1000);
  expect(await ask({ ...request, name: 'other' })).toBe('200 certificate of web');
  expect(renewed).toEqual(['web', 'web']);
});

test('renewal: two proxies in turn -> the limit counts for each', async () => {
  const { ask } = start();
  const request = { publicKey: publicPem('P-256') };
  const other: Verdict<ProxyCaller> = { kind: 'trusted', caller: { identity: { ...identity, name: 'other' } } };
  expect(await ask(request)).toMatch(/^200/);
  expect(await ask(request, other)).toMatch(/^200/);
  expect(await ask(request)).toMatch(/^429/);
  expect(await ask(request, other)).toMatch(/^429/);
});

test('renewal: no certificate, or one that is refused -> Unauthorized', async () => {
  const { ask } = start();
  const request = { publicKey: publicPem('P-256') };
  expect(await ask(request, { kind: 'trusted', caller: { identity: undefined } })).toMatch(/^401 only a caller with/);
  expect(await ask(request, { kind: 'refused', code: codes.unauthenticated, reason: 'expired' })).toBe('401 expired');
});

test.each([
  ['nothing', undefined],
  ['a text', 'x'],
  ['no key', { publicKey: 7 }],
  ['nonsense', { publicKey: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----' }],
  ['another curve', { publicKey: publicPem('P-384') }],
  [
    'a private key',
    {
      publicKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    },
  ],
])('renewal: %s in place of a public key -> refused', async (_what, body) => {
  const { ask, renewed } = start();
  expect(await ask(body ?? null)).toMatch(/^400 expected/);
  expect(renewed).toEqual([]);
});

test('renewal: another path -> not served', () => {
  expect(start().renewal.route({ path: '/other', verdict: trusted, from: '' })).toBeUndefined();
});
