// The keys and certificates that make a home the one it is, as files that belong together. The serving certificate is
// not among them: a home issues it anew.

import { createHash, createPublicKey } from 'node:crypto';
import { sleep, type World } from '../../base/world.ts';
import { isKeyOf } from '../../base/x509/certificates.ts';
import { PkiFiles } from './pki-files.ts';

export const tokenKeyFile = 'service-account.key';
const copiedPkiFiles: readonly string[] = [
  'ca.crt',
  'ca.key',
  'ca-next.crt',
  'ca-next.key',
  'ca-old.crt',
  tokenKeyFile,
];

export interface PkiCopyOptions {
  readonly world: Pick<World, 'disk' | 'timers'>;
  readonly directory: string;
}

const attemptsMax = 10;
const pauseMs = 100;

/** A rotation that is just under way has the key of one authority beside the certificate of another, for a moment. */
export async function copyPki(options: PkiCopyOptions): Promise<Record<string, string>> {
  const files = new PkiFiles(options);
  for (let attempt = 1; ; attempt++) {
    const copy = await readAll(files);
    const problem = pkiProblem(copy);
    if (problem === undefined) return copy;
    if (attempt === attemptsMax) throw new Error(`copy ${files.path('')}: ${problem}`);
    await sleep(options.world.timers, pauseMs);
  }
}

async function readAll(files: PkiFiles): Promise<Record<string, string>> {
  const copy: Record<string, string> = {};
  for (const name of copiedPkiFiles) {
    const content = await files.read(name);
    if (content !== undefined) copy[name] = content;
  }
  return copy;
}

/** Why these are not the files of a home; undefined if they are. */
export function pkiProblem(files: Readonly<Record<string, string>>): string | undefined {
  const unknown = Object.keys(files).find((name) => !copiedPkiFiles.includes(name));
  if (unknown !== undefined) return `a home has no file ${JSON.stringify(unknown)}`;
  const { 'ca.crt': certificate, 'ca.key': key, [tokenKeyFile]: tokenKey } = files;
  if (certificate === undefined || key === undefined || tokenKey === undefined)
    return 'a key or certificate is missing';
  try {
    homeIdOf(tokenKey);
    return isKeyOf(certificate, key) ? undefined : 'ca.crt does not belong to ca.key';
  } catch {
    return 'a key or certificate is not PEM';
  }
}

/** Names a home by the key that signs its tokens, which stays when authorities are replaced. */
export function homeIdOf(tokenKey: string): string {
  const spki = createPublicKey(tokenKey).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex').slice(0, 32);
}
