// What the plain requests of proxies have in common: a public key comes in, and an answer in JSON goes out. Pure.

import { createPublicKey } from 'node:crypto';
import type { PlainAnswer } from '../../base/grpc/server-options.ts';
import { isObject } from '../../base/json.ts';

export function messageAnswer(status: number, message: string): PlainAnswer {
  return { status, body: JSON.stringify({ message }) };
}

/** Its `publicKey` as PEM of our own making; undefined for anything but the public half of a P-256 key. */
export function publicKeyOf(request: unknown): string | undefined {
  const text = isObject(request) ? request['publicKey'] : undefined;
  if (typeof text !== 'string' || !text.includes('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    const key = createPublicKey(text);
    const isP256 = key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    return isP256 ? key.export({ type: 'spki', format: 'pem' }).toString() : undefined;
  } catch {
    return undefined;
  }
}
