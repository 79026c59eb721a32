// The user that a client certificate makes of a caller, and certificates that make none.

import { describe, expect, test } from 'vitest';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { drain, openTestPki, sendHttp2, text } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';

const { open, pki } = edgeSuite();

const dayMs = 24 * 60 * 60 * 1000;
const noRandom = { float: () => 0, bytes: (count: number) => new Uint8Array(count), uuid: () => 'id' };

describe('edge: client certificates', () => {
  const ask = async (credentials: { certificate: string; key: string } | undefined, protocol: 'http1' | 'http2') => {
    const { http1, http2, seen } = await open(() => text('hello'));
    await (protocol === 'http1' ? http1(credentials) : sendHttp2(http2(credentials)));
    const { clientCertificate, clientCertificateError } = seen[0] ?? {};
    return { clientCertificate, clientCertificateError };
  };

  test.each(['http1', 'http2'] as const)('edge: ours over %s -> user from CN, groups from O', async (protocol) => {
    const client = pki().signClient({ commonName: 'ann', organizations: ['dev', 'ops'], lifetimeMs: dayMs });
    expect(await ask(client, protocol)).toEqual({
      clientCertificate: { commonName: 'ann', organizations: ['dev', 'ops'], endsMs: expect.any(Number) },
      clientCertificateError: undefined,
    });
  });

  test('edge: none -> nobody, and nothing is wrong', async () => {
    expect(await ask(undefined, 'http2')).toEqual({ clientCertificate: undefined, clientCertificateError: undefined });
  });

  test('edge: from a foreign authority of the same name -> refused, whatever it claims', async () => {
    const other = await openTestPki();
    const client = other.pki.signClient({ commonName: 'admin', organizations: ['system:masters'], lifetimeMs: dayMs });
    other.remove();
    const found = await ask(client, 'http1');
    expect(found.clientCertificate).toBeUndefined();
    expect(found.clientCertificateError).toMatch(/UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SIGNATURE/);
  });

  test('edge: signed by itself -> refused', async () => {
    const key = generatePrivateKey();
    const certificate = issueCertificate({
      subject: { commonName: 'admin', organizations: ['system:masters'] },
      key,
      use: { kind: 'client' },
      serial: Buffer.alloc(16, 7),
      notBeforeMs: Date.now() - dayMs,
      notAfterMs: Date.now() + dayMs,
    });
    const found = await ask({ certificate, key }, 'http2');
    expect(found).toMatchObject({ clientCertificate: undefined, clientCertificateError: expect.any(String) });
  });

  test('edge: past its time -> refused', async () => {
    const client = pki().signClient({ commonName: 'ann', organizations: [], lifetimeMs: -1000 });
    expect(await ask(client, 'http1')).toEqual({
      clientCertificate: undefined,
      clientCertificateError: 'CERT_HAS_EXPIRED',
    });
  });

  test('edge: expires while its connection is open -> refused from then on', async () => {
    const client = pki().signClient({ commonName: 'ann', organizations: [], lifetimeMs: dayMs });
    let skewMs = 0;
    const clock = { wallMs: () => Date.now() + skewMs, monotonicMs: () => performance.now() };
    const { http2, seen } = await open(() => text('hello'), { world: { clock, random: { ...noRandom } } });
    const session = http2(client);
    await sendHttp2(session);
    skewMs = 2 * dayMs;
    await sendHttp2(session);
    expect(seen.map((request) => request.clientCertificateError)).toEqual([undefined, 'CERT_HAS_EXPIRED']);
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'edge: a %s session taken up again without its certificate -> nobody',
    async (version) => {
      const client = pki().signClient({ commonName: 'ann', organizations: [], lifetimeMs: dayMs });
      const { raw, seen } = await open(() => text('hello'));
      const tls = { ALPNProtocols: ['http/1.1'], minVersion: version, maxVersion: version };
      const first = await raw({ ...tls, cert: client.certificate, key: client.key });
      let session = first.getSession();
      first.on('session', (ticket) => (session = ticket));
      const get = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
      first.write(get);
      await drain(first);
      const second = await raw({ ...tls, session });
      expect(second.isSessionReused()).toBe(false);
      second.write(get);
      await drain(second);
      expect(seen.map((request) => request.clientCertificate?.commonName)).toEqual(['ann', undefined]);
    },
  );

  test("edge: the server's own certificate shown by a client -> refused, it is for serving", async () => {
    const found = await ask(pki().serverCredentials(), 'http1');
    expect(found).toEqual({ clientCertificate: undefined, clientCertificateError: 'INVALID_PURPOSE' });
  });
});
