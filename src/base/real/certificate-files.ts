// Certificates that were given as files. Renewal replaces the files, so they are read again; a pair that does not fit, as in
// the moment between two writes, is left for the next time.

import { createSecureContext } from 'node:tls';
import { type FollowedValueOptions, followValue } from './followed-value.ts';

interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  readonly clientAuthority?: string;
}

const readAgainMs = 10_000;

/** Returns how to end it. */
export function followCertificateFiles<T extends CertificateFiles>(
  options: Omit<FollowedValueOptions<T>, 'what' | 'everyMs'>,
): () => void {
  return followValue({
    ...options,
    what: 'certificate files',
    everyMs: readAgainMs,
    onChange: (next) => {
      createSecureContext({ cert: next.certificate, key: next.key, ca: next.clientAuthority });
      options.onChange(next);
    },
  });
}
