// A certificate and its key as they come from files and Secrets: looked at before they are used, because a pair that does
// not fit together must not take the place of one that does. Pure.

import { createPrivateKey, X509Certificate } from 'node:crypto';

export interface OwnCredentials {
  readonly certificate: string;
  readonly key: string;
}

/** Our own certificate and key, from wherever they are kept. */
export interface CredentialsSource {
  current(): OwnCredentials | undefined;
  /** Returns what takes the handler off again. */
  onChanged(handler: () => void): () => void;
}

/** Empty if a connection can be made with them. */
export function whatIsWrongWithPair({ certificate, key }: OwnCredentials): string {
  try {
    const isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return isPair ? '' : 'the key is not that of the certificate';
  } catch {
    return 'the certificate or the key is not PEM';
  }
}
