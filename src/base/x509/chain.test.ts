// Our verdict on every chain of the table beside that of the real `openssl verify`, which must be the same.

import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { whatIsWrongWithChain } from './chain.ts';
import { type CertificateRow, type ChainRow, chainRows } from './testing/chains.ts';

const folder = mkdtempSync(join(tmpdir(), 'chains-'));
afterAll(() => rmSync(folder, { recursive: true }));
const dayMs = 86_400_000;
const issuedMs = Date.now();
let serial = 100;

const keyArguments = {
  'P-256': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'RSA 1024': ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'],
  'RSA 2048': ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
};
const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

const keys = new Map<string, string>();
/** The same key for the same place in a chain: making them is what takes time. */
function keyAt(depth: number | 'forger', { key = 'P-256' }: CertificateRow): string {
  const name = keys.get(`${depth} ${key}`) ?? `key-${keys.size}.pem`;
  if (!keys.has(`${depth} ${key}`)) {
    openssl('genpkey', ...keyArguments[key], '-out', name);
    openssl('pkey', '-in', name, '-pubout', '-out', `${name}.pub`);
  }
  keys.set(`${depth} ${key}`, name);
  return name;
}

/** Files of the certificates, from the root to the leaf. */
function make(chain: readonly CertificateRow[]): string[] {
  const files: string[] = [];
  for (const [depth, row] of chain.entries()) {
    serial += 1;
    const [file, extensions] = [`c${serial}.pem`, `c${serial}.ext`];
    writeFileSync(join(folder, extensions), `[v3]\n${row.extensions.join('\n')}\nsubjectKeyIdentifier=hash\n`);
    const key = keyAt(depth, row);
    const above = chain[depth - 1];
    const signer = row.isForged ? keyAt('forger', {} as CertificateRow) : keyAt(depth - 1, above ?? row);
    // A forged certificate names the key of the one above all the same: openssl looks at the subject alone.
    const issuer =
      above === undefined
        ? ['-signkey', key]
        : [
            '-CA',
            row.isForged ? forgedIssuer(files[depth - 1] as string, signer) : (files[depth - 1] as string),
            '-CAkey',
            signer,
          ];
    const about = [
      '-subj',
      row.subject ?? `/O=acme/CN=${depth}`,
      '-days',
      String(row.days ?? 30),
      `-${row.hash ?? 'sha256'}`,
    ];
    const rest = ['-set_serial', String(serial), '-extfile', extensions, '-extensions', 'v3', '-out', file];
    openssl(
      'x509',
      '-new',
      ...(above === undefined ? [] : ['-force_pubkey', `${key}.pub`]),
      ...about,
      ...issuer,
      ...rest,
    );
    files.push(file);
  }
  return files;
}

/** A certificate with the subject of another and a key of one's own. */
function forgedIssuer(file: string, key: string): string {
  const subject = openssl('x509', '-in', file, '-noout', '-subject', '-nameopt', 'compat').toString();
  const forged = `forged-${file}`;
  openssl(
    'x509',
    '-new',
    '-subj',
    subject.replace('subject=', '').trim(),
    '-signkey',
    key,
    '-days',
    '30',
    '-out',
    forged,
  );
  return forged;
}

function opensslVerdict(files: readonly string[], atMs: number): string {
  const [root = '', ...rest] = files;
  const untrusted = rest.slice(0, -1).flatMap((file) => ['-untrusted', file]);
  const how = [
    '-partial_chain',
    '-purpose',
    'sslclient',
    '-auth_level',
    '2',
    '-attime',
    String(Math.floor(atMs / 1000)),
  ];
  const { status, stderr } = spawnSync(
    'openssl',
    ['verify', ...how, '-CAfile', root, ...untrusted, rest.at(-1) ?? ''],
    {
      cwd: folder,
    },
  );
  return status === 0 ? 'good' : `bad: ${stderr.toString().replaceAll('\n', ' ')}`;
}

test.each(chainRows.map((row) => [row.name, row] as [string, ChainRow]))(
  'chain: %s -> as openssl says',
  (_name, row) => {
    const files = make(row.chain);
    const atMs = issuedMs + (row.atDays ?? 0.5) * dayMs;
    const [root, ...rest] = files.map((file) => new X509Certificate(readFileSync(join(folder, file))));
    const roots = [root as X509Certificate];
    const wrong = whatIsWrongWithChain({ presented: rest.reverse(), roots, nowMs: atMs, purpose: 'client' });
    expect(opensslVerdict(files, atMs)).toMatch(row.wrong === undefined || row.isStricter ? /^good/ : /^bad/);
    if (row.wrong === undefined) expect(wrong).toBeUndefined();
    else expect(wrong).toContain(row.wrong);
  },
);

test('chain: several ways up, one of them bad -> the good one counts', () => {
  const files = make([
    { extensions: ['basicConstraints=critical,CA:TRUE'] },
    { extensions: ['basicConstraints=critical,CA:TRUE'], days: 1 },
  ]);
  const again = make([
    { extensions: ['basicConstraints=critical,CA:TRUE'] },
    { extensions: ['basicConstraints=critical,CA:TRUE'] },
    { extensions: ['keyUsage=digitalSignature'] },
  ]);
  const read = (file: string | undefined) => new X509Certificate(readFileSync(join(folder, file as string)));
  const presented = [read(again[2]), read(files[1]), read(again[1])];
  const options = { presented, roots: [read(files[0]), read(again[0])], purpose: 'client' as const };
  expect(whatIsWrongWithChain({ ...options, nowMs: issuedMs + 2 * dayMs })).toBeUndefined();
  expect(whatIsWrongWithChain({ ...options, presented: presented.slice(0, 2), nowMs: issuedMs + 2 * dayMs })).toContain(
    'expired',
  );
});
