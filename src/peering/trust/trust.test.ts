import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { meshOf } from '../testing/edge/mesh.ts';
import { judgeCertificate } from './trust.ts';

const acme = meshOf('acme.example');
const other = meshOf('other.example');
const stranger = meshOf('stranger.example');
const peers = [acme.trusted(), other.trusted({ identities: ['spiffe://other.example/mesh'] })];

function judge(pem: string, trusted = peers, nowMs = Date.now()): string {
  const chain = [...pem.matchAll(/-----BEGIN[\s\S]*?END CERTIFICATE-----\n/g)].map(([one]) => new X509Certificate(one));
  const verdict = judgeCertificate(chain, trusted, nowMs);
  return verdict.kind === 'trusted' ? `${verdict.caller.peer} as ${verdict.caller.identity}` : verdict.reason;
}

test('trust: a certificate of a peer, directly or through an intermediate -> trusted [000-31]', () => {
  expect(judge(acme.issue().certificate)).toBe('acme as spiffe://acme.example/mesh');
  expect(judge(acme.intermediate().issue().certificate)).toBe('acme as spiffe://acme.example/mesh');
});

test.each([
  ['no certificate', '', 'no certificate was presented'],
  [
    'an authority nobody knows',
    stranger.issue().certificate,
    'no peer has the identity spiffe://stranger.example/mesh',
  ],
  [
    "a certificate of A with B's identity",
    acme.issue({ identities: ['spiffe://other.example/mesh'] }).certificate,
    "spiffe://other.example/mesh: the certificate does not lead to one of this peer's roots",
  ],
  [
    'an identity of the right domain that was not agreed on',
    other.issue({ identities: ['spiffe://other.example/intruder'] }).certificate,
    'no peer has the identity spiffe://other.example/intruder',
  ],
  ['no identity', acme.issue({ identities: [] }).certificate, 'the certificate carries 0 SPIFFE identities'],
  [
    'two identities',
    acme.issue({ identities: ['spiffe://acme.example/a', 'spiffe://other.example/mesh'] }).certificate,
    'the certificate carries 2 SPIFFE identities',
  ],
  [
    'an identity with a query',
    acme.issue({ identities: ['spiffe://acme.example/mesh?x'] }).certificate,
    'no peer has the identity spiffe://acme.example/mesh?x',
  ],
  [
    'an identity with a fragment',
    acme.issue({ identities: ['spiffe://acme.example/mesh#x'] }).certificate,
    'no peer has the identity spiffe://acme.example/mesh#x',
  ],
  [
    'an identity with an empty segment',
    acme.issue({ identities: ['spiffe://acme.example//mesh'] }).certificate,
    'no peer',
  ],
  [
    'the identity of a proxy, whatever its purposes',
    acme.issue({ identities: ['spiffe://acme.example/portolan/proxy/sidecar/web'] }).certificate,
    'is the identity of a proxy, which may call services and nothing else',
  ],
  ['an authority with an identity', authorityLeaf(), 'an authority, which is no end of TLS'],
  ['an expired one', acme.issue({ notAfterMs: Date.now() - 1000 }).certificate, 'expired on'],
  ['one of a leaf that plays authority', leafSigned(), "does not lead to one of this peer's roots"],
])('trust: %s -> refused with the reason', (_name, pem, reason) => {
  expect(judge(pem)).toContain(reason);
});

test('trust: a root of A is given out twice, in the lists of A and B -> each vouches only for its own domain', () => {
  const both = [acme.trusted(), acme.trusted({ peer: 'b', domain: 'b.example' })];
  expect(judge(acme.issue({ identities: ['spiffe://c.example/mesh'] }).certificate, both)).toContain('no peer has');
});

test('trust: an identity hidden behind a comma in another name -> counts as none', () => {
  const sly = acme.issue({ identities: ['https://x.example/, URI:spiffe://other.example/mesh'] });
  expect(judge(sly.certificate)).toContain('the certificate carries 0 SPIFFE identities');
});

/** Issued by the root, with an identity, and an authority itself. */
function authorityLeaf(): string {
  const key = generatePrivateKey();
  return issueCertificate({
    ...{ subject: { commonName: 'sly' }, key, issuer: { subject: { commonName: 'mesh acme.example' }, key: acme.key } },
    use: { kind: 'authority', uris: ['spiffe://acme.example/mesh'] },
    ...{ serial: Buffer.alloc(16, 5), notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 60_000 },
  });
}

/** Signed with the key of an ordinary certificate, which is sent along as if it were an intermediate. */
function leafSigned(): string {
  const leaf = acme.issue();
  const forged = issueCertificate({
    subject: { commonName: 'forged' },
    key: generatePrivateKey(),
    issuer: { subject: { commonName: 'peering' }, key: leaf.key },
    use: { kind: 'identity', uris: ['spiffe://acme.example/mesh'] },
    serial: Buffer.alloc(16, 3),
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 60_000,
  });
  return forged + leaf.certificate;
}
