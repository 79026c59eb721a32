// Encrypts what is stored, with a key from a file. A file may hold several keys: the first encrypts, each decrypts, so a
// key can be replaced while older rows are still there. What is sealed for one place cannot be opened at another.

import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type { Random } from '../../../base/world.ts';

interface SealKey {
  readonly id: Buffer;
  readonly secret: Buffer;
}

const secretBytes = 32;
const idBytes = 4;
const ivBytes = 12;
const tagBytes = 16;
const algorithm = 'aes-256-gcm';

export class SealError extends Error {}

export class Seal {
  readonly #keys: readonly SealKey[];
  readonly #random: Pick<Random, 'bytes'>;

  private constructor(keys: readonly SealKey[], random: Pick<Random, 'bytes'>) {
    this.#keys = keys;
    this.#random = random;
  }

  /** One key a line, 32 bytes in base64; empty lines and those that begin with # do not count. */
  static parse(text: string, random: Pick<Random, 'bytes'>): Seal {
    const lines = text.split('\n').map((line) => line.trim());
    const keys = lines.filter((line) => line !== '' && !line.startsWith('#')).map(keyOf);
    if (keys.length === 0) throw new SealError('there is no key in it; make one with: openssl rand -base64 32');
    return new Seal(keys, random);
  }

  seal(place: string, plain: Uint8Array): Buffer {
    const { id, secret } = this.#keys[0]!;
    const iv = this.#random.bytes(ivBytes);
    const cipher = createCipheriv(algorithm, secret, iv).setAAD(Buffer.from(place));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([id, iv, cipher.getAuthTag(), body]);
  }

  open(place: string, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const key = this.#keys.find(({ id }) => id.equals(bytes.subarray(0, idBytes)));
    if (key === undefined)
      throw new SealError(`encrypted with key ${bytes.toString('hex', 0, idBytes)}, which is not in the key file`);
    const tagAt = idBytes + ivBytes;
    try {
      const decipher = createDecipheriv(algorithm, key.secret, bytes.subarray(idBytes, tagAt));
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(tagAt, tagAt + tagBytes));
      return Buffer.concat([decipher.update(bytes.subarray(tagAt + tagBytes)), decipher.final()]);
    } catch (cause) {
      throw new SealError('it was changed after it was encrypted', { cause });
    }
  }

  /** Whether it is sealed with the key that encrypts now. */
  isCurrent(sealed: Uint8Array): boolean {
    return this.#keys[0]!.id.equals(sealed.subarray(0, idBytes));
  }
}

function keyOf(line: string): SealKey {
  const secret = Buffer.from(line, 'base64');
  if (secret.length !== secretBytes)
    throw new SealError(`a key of ${secret.length} bytes is in it; want ${secretBytes} bytes in base64`);
  return { id: createHash('sha256').update(secret).digest().subarray(0, idBytes), secret };
}
