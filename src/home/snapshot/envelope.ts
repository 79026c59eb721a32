// The outside of a snapshot: a first line that says the format and how it is encrypted, the payload, and a SHA-256 of all
// bytes before it. The checksum can be verified without the key. Bytes in, bytes out; content.ts has the payload.

import {
  type CipherGCM,
  createCipheriv,
  createDecipheriv,
  createHash,
  type DecipherGCM,
  type Hash,
  scrypt,
  timingSafeEqual,
} from 'node:crypto';
import type { Random } from '../../base/world.ts';
import { SnapshotError } from './snapshot-error.ts';

const formatVersion = 1;
const cipherName = 'aes-256-gcm';
const checksumBytes = 32;
const tagBytes = 16;
const firstLineBytesMax = 4096;
const secretLengthMin = 16;

/** How a key is made of a secret: the parameters are in the first line of the file. */
interface Sealing {
  readonly cipher: typeof cipherName;
  readonly salt: string;
  readonly nonce: string;
}

export interface SealKey {
  readonly sealing: Sealing;
  readonly key: Uint8Array;
}

/** Undefined if the secret is long enough. */
export function secretProblem(secret: string): string | undefined {
  if (secret.length >= secretLengthMin) return undefined;
  return `it has ${secret.length} characters, and needs ${secretLengthMin} at least; openssl rand -base64 32 makes a good one`;
}

/** A key of its own for each snapshot. */
export async function createSealKey(secret: string, random: Random): Promise<SealKey> {
  const [salt, nonce] = [random.bytes(16), random.bytes(12)].map((bytes) => Buffer.from(bytes).toString('base64'));
  const sealing: Sealing = { cipher: cipherName, salt: salt!, nonce: nonce! };
  return { sealing, key: await deriveKey(secret, sealing) };
}

function deriveKey(secret: string, { salt }: Sealing): Promise<Uint8Array> {
  const cost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) =>
    scrypt(secret, Buffer.from(salt, 'base64'), 32, cost, (error, key) =>
      error === null ? resolve(key) : reject(error),
    ),
  );
}

/** Puts the envelope around a payload. */
export class Sealer {
  readonly #hash = createHash('sha256');
  readonly #firstLine: Buffer;
  readonly #cipher: CipherGCM | undefined;

  constructor(seal?: SealKey) {
    const encryption = seal?.sealing ?? null;
    this.#firstLine = Buffer.from(`${JSON.stringify({ portolanSnapshot: formatVersion, encryption })}\n`);
    if (seal === undefined) return;
    this.#cipher = createCipheriv(cipherName, seal.key, Buffer.from(seal.sealing.nonce, 'base64'));
    this.#cipher.setAAD(this.#firstLine);
  }

  begin(): Uint8Array {
    return this.#hashed(this.#firstLine);
  }

  add(payload: Uint8Array): Uint8Array {
    return this.#hashed(this.#cipher === undefined ? payload : this.#cipher.update(payload));
  }

  end(): Uint8Array {
    const rest = this.#cipher === undefined ? [] : [this.#cipher.final(), this.#cipher.getAuthTag()];
    const body = this.#hashed(Buffer.concat(rest));
    return Buffer.concat([body, this.#hash.digest()]);
  }

  #hashed(bytes: Uint8Array): Uint8Array {
    this.#hash.update(bytes);
    return bytes;
  }
}

export interface OpenedEnvelope {
  readonly isEncrypted: boolean;
  readonly sizeBytes: number;
}

export interface OpenOptions {
  /** For one that is encrypted. Without it the checksum is verified and nothing is handed on. */
  readonly secret?: string | undefined;
  readonly onPayload: (bytes: Uint8Array) => void;
}

/** Rejects with a SnapshotError if anything is wrong, which may show only after all the payload was handed on. */
export async function openEnvelope(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  options: OpenOptions,
): Promise<OpenedEnvelope> {
  const opener = new Opener(options.onPayload);
  let first: Buffer | undefined = Buffer.alloc(0);
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (first === undefined) {
      opener.push(chunk);
      continue;
    }
    first = Buffer.concat([first, chunk]);
    const end = first.indexOf(0x0a);
    if (end < 0 && first.length <= firstLineBytesMax) continue;
    if (end < 0 || end > firstLineBytesMax) throw noSnapshot();
    await opener.begin(first.subarray(0, end + 1), options.secret);
    const rest = first.subarray(end + 1);
    first = undefined;
    opener.push(rest);
  }
  if (first !== undefined) throw sizeBytes === 0 ? new SnapshotError('it is empty') : noSnapshot();
  opener.end();
  return { isEncrypted: opener.isEncrypted, sizeBytes };
}

class Opener {
  readonly #onPayload: (bytes: Uint8Array) => void;
  readonly #hash: Hash = createHash('sha256');
  #decipher: DecipherGCM | undefined;
  isEncrypted = false;
  /** The last bytes so far: they may be the tag and the checksum. */
  #held: Buffer = Buffer.alloc(0);
  #heldBytes = checksumBytes;

  constructor(onPayload: (bytes: Uint8Array) => void) {
    this.#onPayload = onPayload;
  }

  async begin(line: Buffer, secret: string | undefined): Promise<void> {
    const sealing = sealingIn(line);
    this.#hash.update(line);
    if (sealing === undefined) return;
    this.isEncrypted = true;
    this.#heldBytes = checksumBytes + tagBytes;
    if (secret === undefined) return;
    const key = await deriveKey(secret, sealing);
    this.#decipher = createDecipheriv(cipherName, key, Buffer.from(sealing.nonce, 'base64'));
    this.#decipher.setAAD(line);
  }

  push(chunk: Uint8Array): void {
    const all = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk]);
    const take = Math.max(0, all.length - this.#heldBytes);
    this.#held = Buffer.from(all.subarray(take));
    if (take > 0) this.#take(all.subarray(0, take));
  }

  end(): void {
    if (this.#held.length < this.#heldBytes) throw cutShort();
    const tag = this.#held.subarray(0, this.#held.length - checksumBytes);
    this.#hash.update(tag);
    if (!timingSafeEqual(this.#hash.digest(), this.#held.subarray(-checksumBytes))) throw cutShort();
    if (this.#decipher === undefined) return;
    this.#decipher.setAuthTag(tag);
    try {
      this.#onPayload(this.#decipher.final());
    } catch {
      throw wrongKey();
    }
  }

  #take(bytes: Buffer): void {
    this.#hash.update(bytes);
    if (this.isEncrypted && this.#decipher === undefined) return;
    this.#onPayload(this.#decipher === undefined ? bytes : this.#decipher.update(bytes));
  }
}

function sealingIn(line: Buffer): Sealing | undefined {
  let head: { portolanSnapshot?: unknown; encryption?: Partial<Sealing> | null };
  try {
    head = JSON.parse(line.toString('utf8'));
  } catch {
    throw noSnapshot();
  }
  const version = head?.portolanSnapshot;
  if (typeof version !== 'number') throw noSnapshot();
  if (version > formatVersion) {
    throw new SnapshotError(
      `its format is ${version}, this portolan knows ${formatVersion}; use a portolan as new as the one that wrote it`,
    );
  }
  if (version !== formatVersion) throw noSnapshot();
  const { encryption } = head;
  if (encryption === null) return undefined;
  const { cipher, salt, nonce } = encryption ?? {};
  if (cipher !== cipherName || typeof salt !== 'string' || typeof nonce !== 'string') throw noSnapshot();
  if (Buffer.from(nonce, 'base64').length !== 12) throw noSnapshot();
  return { cipher, salt, nonce };
}

function noSnapshot(): SnapshotError {
  return new SnapshotError('it is not a snapshot of portolan');
}

function cutShort(): SnapshotError {
  return new SnapshotError('it is cut short or was changed: its checksum is not that of its content');
}

export function wrongKey(): SnapshotError {
  return new SnapshotError('it cannot be decrypted: the key is not the one it was encrypted with');
}
