// The certificate authority of a home, and its replacement by a new one without refusing any client: first the new
// one is trusted beside the old (begin), then it issues certificates (switch), then the old one is removed (finish).
// The files say how far it has come, so that a running home and a command see the same: `ca-next.crt` is there after
// begin, `ca-old.crt` after switch.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import {
  type Credentials,
  certificateFacts,
  isKeyOf,
  issueCertificate,
  type Subject,
} from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { PkiFiles } from './pki-files.ts';

const authorityLifetimeMs = 10 * 365 * 24 * 60 * 60 * 1000;
/** Certificates begin a little in the past, for clients whose clock is behind. */
export const backdateMs = 5 * 60 * 1000;

export interface AuthorityOptions {
  readonly world: Pick<World, 'clock' | 'random' | 'disk'>;
  readonly directory: string;
  readonly log: Log;
}

/** The one that issues certificates. */
export type Authority = Credentials & {
  readonly subject: Subject;
  /** PEM of all that are trusted, this one first. */
  readonly trusted: string;
};

const firstSubject = { commonName: 'portolan-ca' };

export async function openAuthority(options: AuthorityOptions, files: PkiFiles): Promise<Authority> {
  await completeSwitch(files);
  const [certificate, key] = [await files.read('ca.crt'), await files.read('ca.key')];
  if (certificate !== undefined && key !== undefined) {
    files.check('ca.crt', () => isKeyOf(certificate, key), 'it does not belong to ca.key');
    return withTrusted(files, certificate, key);
  }
  if (certificate !== undefined) {
    throw new Error(`open ${files.path('ca.key')}: ca.crt is there and its key is not; put it back, or remove both`);
  }
  // The key goes to disk first: a crash in between leaves a key that the next start uses, never a certificate without.
  const made = key ?? generatePrivateKey();
  await files.write('ca.key', made);
  const issued = issueAuthority(options, firstSubject, made);
  await files.write('ca.crt', issued);
  options.log.info('made a certificate authority', { path: files.path('ca.crt') });
  return withTrusted(files, issued, made);
}

async function withTrusted(files: PkiFiles, certificate: string, key: string): Promise<Authority> {
  const others = [await files.read('ca-next.crt'), await files.read('ca-old.crt')];
  const trusted = [certificate, ...others.filter((other) => other !== undefined)].map((pem) => `${pem.trimEnd()}\n`);
  return {
    certificate,
    key,
    subject: subjectOf(certificate),
    trusted: trusted.length === 1 ? certificate : trusted.join(''),
  };
}

function subjectOf(certificate: string): Subject {
  const [, commonName = firstSubject.commonName] = /^CN=(.*)$/m.exec(certificateFacts(certificate).subject) ?? [];
  return { commonName };
}

function issueAuthority({ world }: AuthorityOptions, subject: Subject, key: string): string {
  const nowMs = world.clock.wallMs();
  return issueCertificate({
    subject,
    key,
    use: { kind: 'authority' },
    serial: world.random.bytes(16),
    notBeforeMs: nowMs - backdateMs,
    notAfterMs: nowMs + authorityLifetimeMs,
  });
}

export type RotationStep = 'begin' | 'switch' | 'finish';

/** How far a rotation has come: the step that comes next. */
async function nextRotationStep(files: PkiFiles): Promise<RotationStep> {
  if ((await files.read('ca-next.crt')) !== undefined) return 'switch';
  return (await files.read('ca-old.crt')) === undefined ? 'begin' : 'finish';
}

/** Throws if another step comes next. */
export async function rotateAuthority(options: AuthorityOptions, step: RotationStep): Promise<void> {
  const files = new PkiFiles(options);
  if ((await files.read('ca.crt')) === undefined) {
    throw new Error(`rotate ${files.path('ca.crt')}: there is no authority; is --data the folder of a home?`);
  }
  await completeSwitch(files);
  const next = await nextRotationStep(files);
  if (step !== next) throw new Error(`rotate ${files.path('ca.crt')}: the next step is ${next}, not ${step}`);
  if (step === 'begin') await begin(options, files);
  else if (step === 'switch') await startSwitch(files);
  else await files.remove('ca-old.crt');
}

async function begin(options: AuthorityOptions, files: PkiFiles): Promise<void> {
  const key = generatePrivateKey();
  // A name of its own: who verifies a certificate looks for its issuer by name.
  const suffix = Buffer.from(options.world.random.bytes(4)).toString('hex');
  await files.write('ca-next.key', key);
  await files.write('ca-next.crt', issueAuthority(options, { commonName: `portolan-ca-${suffix}` }, key));
}

async function startSwitch(files: PkiFiles): Promise<void> {
  await files.write('ca-old.crt', (await files.read('ca.crt'))!);
  await completeSwitch(files);
}

/** Both are there only in the middle of a switch, which goes on where it was broken off. */
async function completeSwitch(files: PkiFiles): Promise<void> {
  const [old, certificate, key] = [
    await files.read('ca-old.crt'),
    await files.read('ca-next.crt'),
    await files.read('ca-next.key'),
  ];
  if (old === undefined || certificate === undefined || key === undefined) return;
  await files.write('ca.key', key);
  await files.write('ca.crt', certificate);
  await files.remove('ca-next.crt');
  await files.remove('ca-next.key');
}
