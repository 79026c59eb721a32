// Between a record and its sealed form: AES-256-GCM, bound to its place, so that what was sealed as one object, in one epoch
// and with one counter, opens as nothing else. Pure; the nonce is given.

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { decodeRecord, type PlainRecord } from './plain-record.ts';

export interface SealedPlace {
  readonly clusterset: string;
  /** Id of the exporting cluster. */
  readonly exporter: string;
  /** Name of the sealed record. */
  readonly object: string;
  readonly audience: string;
  readonly epoch: number;
  readonly counter: number;
}

export const contentKeyBytes = 32;
export const nonceBytes = 12;
const tagBytes = 16;
const cipherName = 'aes-256-gcm';

export interface SealWith {
  readonly key: Uint8Array;
  /** Never twice with one key. */
  readonly nonce: Uint8Array;
}

export function sealRecord(record: PlainRecord, place: SealedPlace, { key, nonce }: SealWith): string {
  const cipher = createCipheriv(cipherName, key, nonce);
  cipher.setAAD(boundTo(place));
  const sealed = [cipher.update(JSON.stringify(record)), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString('base64');
}

export type Opened =
  | { readonly kind: 'opened'; readonly record: PlainRecord }
  | { readonly kind: 'refused'; readonly why: string };

export function openRecord(data: string, place: SealedPlace, key: Uint8Array): Opened {
  const bytes = Buffer.from(data, 'base64');
  if (bytes.length < nonceBytes + tagBytes) return { kind: 'refused', why: 'it is cut off' };
  const text = decrypt(bytes, boundTo(place), key);
  if (text === undefined)
    return { kind: 'refused', why: 'it was changed, or was sealed for another place or with another key' };
  const record = decodeRecord(text);
  return record === undefined
    ? { kind: 'refused', why: 'its content is not what an export has' }
    : { kind: 'opened', record };
}

function decrypt(sealed: Buffer, aad: Buffer, key: Uint8Array): string | undefined {
  const decipher = createDecipheriv(cipherName, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(aad);
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    const text = decipher.update(sealed.subarray(nonceBytes + tagBytes));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

function boundTo({ clusterset, exporter, object, audience, epoch, counter }: SealedPlace): Buffer {
  return Buffer.from(
    JSON.stringify(['portolan.dev/sealed/v1', clusterset, exporter, object, audience, epoch, counter]),
  );
}
