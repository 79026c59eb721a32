// A TSIG key in a Secret: `name`, `algorithm` (hmac-sha256 unless it says otherwise) and `secret`, the key in base64 as
// tsig-keygen and keymgr print it; or in a file, as tsig-keygen writes it. Pure.

import type { TsigKey } from '../../base/dns/tsig.ts';
import type { Secret } from '../../kube/objects/secret.ts';

const algorithms: readonly TsigKey['algorithm'][] = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512', 'hmac-sha1'];

/** The key, or what is wrong with the Secret; its contents are not repeated. */
export function tsigKeyOf(secret: Secret): TsigKey | { readonly problem: string } {
  const text = (field: string) =>
    Buffer.from(secret.data?.[field] ?? '', 'base64')
      .toString('utf8')
      .trim();
  const where = `secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  return keyOf({ name: text('name'), algorithm: text('algorithm'), secret: text('secret') }, where);
}

/** `key "name" { algorithm hmac-sha256; secret "…"; };`, once or more often; throws with what is wrong. */
export function parseTsigFile(text: string, where: string): TsigKey[] {
  const plain = text.replace(/\/\*[\s\S]*?\*\/|(?:\/\/|#).*$/gm, '');
  const keys = [...plain.matchAll(/\bkey\s+"?([^"\s{]+)"?\s*\{([^}]*)\}/g)].map(([, name = '', body = '']) => {
    const field = (word: string) => new RegExp(`\\b${word}\\s+"?([^";\\s]+)"?\\s*;`).exec(body)?.[1] ?? '';
    const key = keyOf({ name, algorithm: field('algorithm'), secret: field('secret') }, `${where}: key ${name}`);
    if ('problem' in key) throw new Error(key.problem);
    return key;
  });
  if (keys.length === 0) throw new Error(`${where}: want key "name" { algorithm hmac-sha256; secret "…"; };`);
  return keys;
}

interface KeyTexts {
  readonly name: string;
  readonly algorithm: string;
  /** Base64. */
  readonly secret: string;
}

function keyOf(texts: KeyTexts, where: string): TsigKey | { readonly problem: string } {
  const name = texts.name.replace(/\.$/, '').toLowerCase();
  const wanted = texts.algorithm.toLowerCase() || 'hmac-sha256';
  const algorithm = algorithms.find((known) => known === wanted);
  const bytes = Buffer.from(texts.secret, 'base64');
  if (name === '') return { problem: `${where}: want the name of the key under "name"` };
  if (!algorithm) return { problem: `${where}: algorithm is none of ${algorithms.join(', ')}` };
  if (bytes.length < 16) return { problem: `${where}: want at least 16 bytes in base64 under "secret"` };
  return { name, algorithm, secret: new Uint8Array(bytes) };
}
