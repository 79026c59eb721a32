// Makes private keys. The one place that takes the randomness of keys from the runtime instead of the World: a key
// that could be replayed from a seed would be no key.

import { generateKeyPairSync } from 'node:crypto';

/** A new P-256 key as PKCS #8 PEM. */
export function generatePrivateKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
