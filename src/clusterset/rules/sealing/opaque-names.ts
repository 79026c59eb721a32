// Names of sealed records: the same for the same thing, so that its writer finds it again, and telling nobody else what it
// is. They are made with a secret that never leaves the home. Pure.

import { createHash, createHmac } from 'node:crypto';

export type NameSecret = Uint8Array;

const nameBytes = 20;

export function nameSecretOf(privateKey: Uint8Array): NameSecret {
  return createHash('sha256').update('portolan.dev/sealed-names/v1').update(privateKey).digest();
}

/** Key records come first in the order of names, so that a list shows them before what they open. */
export function audienceId(secret: NameSecret, clusters: readonly string[] | undefined): string {
  return `a-${digest(secret, ['audience', clusters === undefined ? '*' : [...new Set(clusters)].sort()])}`;
}

export function sealedName(secret: NameSecret, record: { readonly kind: string; readonly name: string }): string {
  return `s-${digest(secret, [record.kind, record.name])}`;
}

function digest(secret: NameSecret, parts: readonly unknown[]): string {
  return createHmac('sha256', secret).update(JSON.stringify(parts)).digest().subarray(0, nameBytes).toString('hex');
}
