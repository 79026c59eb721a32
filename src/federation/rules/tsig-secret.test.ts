import { expect, test } from 'vitest';
import { tsigKeyOf } from './tsig-secret.ts';

const secret = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'key', namespace: 'prod' },
  data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
});
const bytes = Buffer.alloc(32, 7).toString('base64');

test.each([
  [
    { name: 'Update.', secret: bytes },
    { name: 'update', algorithm: 'hmac-sha256' },
  ],
  [
    { name: 'update', algorithm: 'HMAC-SHA512', secret: `${bytes}\n` },
    { name: 'update', algorithm: 'hmac-sha512' },
  ],
  [{ secret: bytes }, { problem: 'secret prod/key: want the name of the key under "name"' }],
  [{ name: 'a', algorithm: 'hmac-md5', secret: bytes }, { problem: expect.stringContaining('algorithm is none of') }],
  [{ name: 'a', secret: 'c2hvcnQ=' }, { problem: expect.stringContaining('at least 16 bytes') }],
])('tsig secret: %j -> %j', (data, expected) => {
  expect(tsigKeyOf(secret(data as Record<string, string>))).toMatchObject(expected);
});
