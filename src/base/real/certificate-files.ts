// Certificates that were given as files. Renewal replaces the files, so they are read again; a pair that does not fit, as in
// the moment between two writes, is left for the next time.

import { createSecureContext } from 'node:tls';
import { isSameJson } from '../json.ts';
import { errorText, type Log } from '../log.ts';
import type { Timer, World } from '../world.ts';

interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  readonly clientAuthority?: string;
}

export interface FollowFilesOptions<T extends CertificateFiles> {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  /** The content at the start. */
  readonly first: T;
  readonly read: () => Promise<T>;
  readonly onChange: (next: T) => void;
}

const readAgainMs = 10_000;

/** Returns how to end it. */
export function followCertificateFiles<T extends CertificateFiles>(options: FollowFilesOptions<T>): () => void {
  const { world, log, read, onChange } = options;
  let current = options.first;
  let lastProblem = '';
  let isStopped = false;
  let timer: Timer = world.timers.after(readAgainMs, () => void look());

  async function look(): Promise<void> {
    try {
      const next = await read();
      if (isStopped) return;
      if (!isSameJson(next, current)) {
        createSecureContext({ cert: next.certificate, key: next.key, ca: next.clientAuthority });
        current = next;
        onChange(next);
        log.info('certificate files changed: the new certificate is served');
      }
      lastProblem = '';
    } catch (error) {
      const problem = errorText(error);
      if (problem !== lastProblem) log.warn('certificate files: the earlier certificate stays', { error: problem });
      lastProblem = problem;
    }
    if (!isStopped) timer = world.timers.after(readAgainMs, () => void look());
  }

  return () => {
    isStopped = true;
    timer.cancel();
  };
}
