// Hybrid public key encryption (RFC 9180) as the rest of the program sees it. What is sealed shows who sealed it (mode Auth):
// only the two keys together open it. Implemented in real/hpke.ts.

export interface KeyPair {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

export interface Hpke {
  makeKeys(): Promise<KeyPair>;
  /** Throws if the recipient's key is none. */
  seal(request: SealRequest): Promise<Uint8Array>;
  /** Undefined if it was not sealed by this sender for this recipient with this info, or was changed. */
  open(request: OpenRequest): Promise<Uint8Array | undefined>;
}

interface SealRequest {
  readonly sender: KeyPair;
  readonly recipient: Uint8Array;
  /** Bound to what is sealed: it opens with the same info only. */
  readonly info: Uint8Array;
  readonly plain: Uint8Array;
}

interface OpenRequest {
  readonly sender: Uint8Array;
  readonly recipient: KeyPair;
  readonly info: Uint8Array;
  readonly sealed: Uint8Array;
}

export const publicKeyBytes = 32;
