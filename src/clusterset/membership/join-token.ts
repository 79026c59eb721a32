// A join token: everything a cluster needs to become a member, in one string that survives copying. It begins with
// its version and ends with a checksum, so that a truncated token is told from a refused one. Pure.

import { createHash } from 'node:crypto';

export interface JoinToken {
  readonly clusterset: string;
  readonly clusterId: string;
  /** The member's own namespace at the broker. */
  readonly namespace: string;
  readonly server: string;
  /** PEM; empty where the system's own authorities are trusted. */
  readonly certificateAuthority: string;
  /** Token of the member's account; valid for a short time and for one use. */
  readonly token: string;
  /** RFC 3339. */
  readonly expiresAt: string;
}

const version = 'portolan1';
const checksumLength = 8;
const fields: readonly (keyof JoinToken)[] = [
  'clusterset',
  'clusterId',
  'namespace',
  'server',
  'certificateAuthority',
  'token',
  'expiresAt',
];

export function formatJoinToken(token: JoinToken): string {
  const body = Buffer.from(JSON.stringify(fields.map((field) => token[field]))).toString('base64url');
  return `${version}.${body}.${checksumOf(body)}`;
}

export function parseJoinToken(text: string): JoinToken {
  const [head = '', body = '', checksum = '', ...rest] = text.replace(/\s+/g, '').split('.');
  if (!/^portolan\d+$/.test(head))
    throw new Error('invalid join token: want the output of portolan broker token, which begins with portolan1.');
  if (head !== version) throw new Error(`join token: made by another version (${head}); this one reads ${version}`);
  if (rest.length > 0 || checksumOf(body) !== checksum) {
    throw new Error('join token: it is not whole; copy all of what portolan broker token printed');
  }
  return readBody(body);
}

function readBody(body: string): JoinToken {
  const values: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
  const isWhole =
    Array.isArray(values) && values.length === fields.length && values.every((one) => typeof one === 'string');
  if (!isWhole) throw new Error('join token: its content makes no sense; ask for a new one');
  return Object.fromEntries(fields.map((field, index) => [field, values[index]])) as unknown as JoinToken;
}

function checksumOf(body: string): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, checksumLength).replaceAll('-', 'A');
}
