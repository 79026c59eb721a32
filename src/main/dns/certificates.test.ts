import { expect, test } from 'vitest';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { StubCertificates, StubEndpoint } from '../../dns/config/config.ts';
import { dnsCertificates } from './certificates.ts';

function ending(notAfterMs: number): StubCertificates {
  const key = generatePrivateKey();
  const times = { serial: Buffer.from('01', 'hex'), notBeforeMs: 0, notAfterMs };
  const certificate = issueCertificate({ subject: { commonName: 'one' }, key, use: { kind: 'authority' }, ...times });
  return { certificate, key, clientAuthority: certificate };
}

test('certificates of a resolver: TLS, stub zones, a federation -> the end of each, also after a renewal', () => {
  let renew: (next: StubCertificates) => void = () => {};
  const onRenewed = (listener: typeof renew) => {
    renew = listener;
    return () => {};
  };
  const stubEndpoint: StubEndpoint = { ...ending(2000), host: '', port: 0, allowed: [], file: '', onRenewed };
  let served = ending(1000);
  const found = dnsCertificates({ tls: () => served.certificate, stubEndpoint, identity: ending(3000) });
  const ends = () => Object.fromEntries(found.map(({ name, endsMs }) => [name, endsMs()]));
  expect(ends()).toEqual({ 'dns-tls': 1000, 'stub-zones': 2000, 'federation-authority': 3000 });
  renew(ending(9000));
  expect(ends()['stub-zones']).toBe(9000);
  served = ending(8000);
  expect(ends()['dns-tls']).toBe(8000);
});

test('certificates of a resolver without any -> none', () => {
  expect(dnsCertificates({ tls: () => undefined })).toEqual([]);
});
