import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { keepFields } from './keep-fields.ts';
import { keptKinds } from './kept-fields.ts';
import { holdsSecret, scrub } from './scrub.ts';
import { tarOf } from './tar.ts';

describe('bug report: kept fields', () => {
  test('fields that are not listed -> left out, at every depth', () => {
    const object = {
      spec: { a: 1, list: [{ x: 1, y: 2 }], map: { k: { x: 3, y: 4 } } },
      data: { key: 'secret' },
      b: null,
    };
    expect(keepFields(object, ['spec.a', 'spec.list.*.x', 'spec.map.*.y'])).toEqual({
      spec: { a: 1, list: [{ x: 1 }], map: { k: { y: 4 } } },
    });
    expect(keepFields(object, ['spec.list.**'])).toEqual({ spec: { list: [{ x: 1, y: 2 }] } });
    expect(keepFields(object, ['other.*'])).toBeUndefined();
    expect(keepFields(object, ['data'])).toEqual({ data: { key: 'secret' } });
  });

  test('a MeshExternalService with inline keys -> its keys, certificates and configuration are left out', () => {
    const { fields } = keptKinds.find(({ type }) => type.kind === 'MeshExternalService')!;
    const tls = {
      enabled: true,
      clientKey: { inlineString: 'KEY' },
      caCert: { inline: 'CA' },
      verification: { skip: true },
    };
    const extension = { type: 'Lambda', config: { secretAccessKey: 'KEY' } };
    const kept = keepFields(
      { spec: { match: [{ port: 1 }], destination: { type: 'Regular', tls, extension } } },
      fields,
    );
    expect(kept).toEqual({
      spec: {
        match: [{ port: 1 }],
        destination: {
          type: 'Regular',
          tls: { enabled: true, verification: { skip: true } },
          extension: { type: 'Lambda' },
        },
      },
    });
  });

  test('no kind that holds secrets is listed', () => {
    const kinds = keptKinds.map(({ type }) => type.kind);
    for (const kind of ['Secret', 'ConfigMap', 'Pod', 'ServiceAccount']) expect(kinds).not.toContain(kind);
  });
});

const pem =
  '-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\nabc=\n-----END PRIVATE KEY-----';

describe('bug report: texts', () => {
  test.each([
    ['key', `before ${pem} after`, 'before (left out) after'],
    ['key in JSON', JSON.stringify({ a: pem }), '{"a":"(left out)"}'],
    ['cut key', pem.slice(0, 60), '(left out)'],
    ['token of an account', 'got eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIn0.AbC_1-2', 'got (left out)'],
    ['join token', 'portolan1.WyJhIl0.Ab1 of west', '(left out) of west'],
    ['token of a peer', 'portolan-peer-eyJhIjoxfQ of west', '(left out) of west'],
    ['header', 'authorization: Bearer abcdefgh1', 'authorization: Bearer (left out)'],
    ['password in a URL', 'dial https://ann:pw@db:5432/x', 'dial https://(left out)@db:5432/x'],
    ['named secret', '{"password":"hunter22","port":1}', '{"password":"(left out)","port":1}'],
    ['random word', 'hash aGVsbG8gd29ybGQgMTIzNDU2Nzg5MEFCQ0RFRg==', 'hash (left out)'],
    ['hex', `id ${'0123456789abcdef'.repeat(3)}`, 'id (left out)'],
  ])('%s -> left out', (_what, text, wanted) => expect(scrub(text)).toBe(wanted));

  test.each([
    'checkout.shop.svc.clusterset.local A 10.2.0.7',
    'portolan-peering-checkout-frontend-canary-2026-07-blue-green',
    '"uid":"6f1c2a80-1111-4222-8333-444455556666"',
    '2026-11-15T17:35:00Z cluster east: tokenExpiresAt 2026-12-01T00:00:00Z',
    'spec.certificateSecret: {"name":"peer-tls"}',
  ])('%s -> stays', (text) => expect(scrub(text)).toBe(text));

  test.each([
    ['as it is', (secret: string) => `x ${secret} y`],
    ['base64', (secret: string) => Buffer.from(secret).toString('base64')],
    ['base64 inside another text', (secret: string) => Buffer.from(`user:${secret}:tail`).toString('base64')],
    ['base64url', (secret: string) => Buffer.from(secret).toString('base64url')],
    ['hex', (secret: string) => Buffer.from(secret).toString('hex')],
  ])('a known secret %s -> found', (_how, spell) => {
    const secret = 'correct-horse-battery-staple?>';
    expect(holdsSecret(spell(secret), [secret])).toBe(true);
    expect(holdsSecret(spell('another-text-of-the-same-length'), [secret])).toBe(false);
  });

  test('one line of a key -> found', () => {
    expect(holdsSecret('…MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg…', [pem])).toBe(true);
  });
});

test('bug report: the archive -> read by tar as it was written', () => {
  const files = [
    { path: 'README.txt', text: 'hello\n' },
    { path: '1-west/objects/x.json', text: 'ü'.repeat(700) },
    { path: 'empty', text: '' },
  ];
  const archive = tarOf(files, 1_790_000_000);
  const listed = execFileSync('tar', ['-tf', '-'], { input: archive, encoding: 'utf8' });
  expect(listed.trim().split('\n')).toEqual(files.map(({ path }) => path));
  const text = (path: string) => execFileSync('tar', ['-xOf', '-', path], { input: archive, encoding: 'utf8' });
  for (const { path, text: wanted } of files) expect(text(path)).toBe(wanted);
});
