// A TSIG key in a Secret: `name`, `algorithm` (hmac-sha256 unless it says otherwise) and `secret`, the key in base64 as
// tsig-keygen and keymgr print it. Pure.

import type { TsigKey } from '../base/dns/tsig.ts';
import type { Secret } from './secret.ts';

const algorithms: readonly TsigKey['algorithm'][] = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512', 'hmac-sha1'];

/** The key, or what is wrong with the Secret; its contents are not repeated. */
export function tsigKeyOf(secret: Secret): TsigKey | { readonly problem: string } {
  const text = (field: string) =>
    Buffer.from(secret.data?.[field] ?? '', 'base64')
      .toString('utf8')
      .trim();
  const where = `secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  const name = text('name').replace(/\.$/, '').toLowerCase();
  const wanted = text('algorithm').toLowerCase() || 'hmac-sha256';
  const algorithm = algorithms.find((known) => known === wanted);
  const bytes = Buffer.from(text('secret'), 'base64');
  if (name === '') return { problem: `${where}: want the name of the key under "name"` };
  if (!algorithm) return { problem: `${where}: algorithm is none of ${algorithms.join(', ')}` };
  if (bytes.length < 16) return { problem: `${where}: want at least 16 bytes in base64 under "secret"` };
  return { name, algorithm, secret: new Uint8Array(bytes) };
}
