// The Kubernetes Secret: small amounts of confidential data, in base64.

import { isSameJson } from '../../base/json.ts';
import { checkText, checkUnchanged } from './checks.ts';
import { type FieldError, forbidden, invalid, required, tooLong } from './field-error.ts';
import { isConfigKey } from './names.ts';
import type { KubernetesObject, ResourceType } from './object.ts';

export const secretType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  isNamespaced: true,
};

export interface Secret extends KubernetesObject {
  type?: string;
  /** Base64. */
  data?: Record<string, string>;
  /** For writing only: goes into `data`, over what is there. */
  stringData?: Record<string, string>;
  immutable?: boolean;
}

export const dataBytesMax = 1024 * 1024;

export function applySecretDefaults(secret: Secret): void {
  secret.type ||= 'Opaque';
  if (secret.stringData === undefined) return;
  // Made anew from entries, because a key may be called __proto__.
  const added = Object.entries(secret.stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  if (added.length > 0) secret.data = Object.fromEntries([...Object.entries(secret.data ?? {}), ...added]);
  delete secret.stringData;
}

export function validateSecret(secret: Secret, previous: Secret | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const data = secret.data ?? {};
  let bytes = 0;
  for (const [key, value] of Object.entries(data)) {
    checkText(errors, `data[${key}]`, key, isConfigKey);
    bytes += Buffer.byteLength(value, 'base64');
  }
  if (bytes > dataBytesMax) errors.push(tooLong('data', dataBytesMax));
  checkContents(errors, secret);
  if (previous === undefined) return errors;
  checkUnchanged(errors, 'type', secret.type, previous.type);
  if (previous.immutable === true) checkFrozen(errors, secret, previous, ['data']);
  return errors;
}

const keysOfType: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/dockercfg', ['.dockercfg']],
  ['kubernetes.io/dockerconfigjson', ['.dockerconfigjson']],
]);

function checkContents(errors: FieldError[], secret: Secret): void {
  const data = secret.data ?? {};
  const type = secret.type ?? '';
  const keys = keysOfType.get(type) ?? [];
  for (const key of keys) if (data[key] === undefined) errors.push(required(`data[${key}]`));
  if (type === 'kubernetes.io/basic-auth' && data['username'] === undefined && data['password'] === undefined) {
    errors.push(required('data[username]'), required('data[password]'));
  }
  const isTokenWithoutAccount =
    type === 'kubernetes.io/service-account-token' &&
    !secret.metadata.annotations?.['kubernetes.io/service-account.name'];
  if (isTokenWithoutAccount) errors.push(required('metadata.annotations[kubernetes.io/service-account.name]'));
  if (!type.startsWith('kubernetes.io/docker')) return;
  for (const key of keys) {
    // The contents of a secret are not repeated in an error.
    if (data[key] !== undefined && !isJson(data[key]))
      errors.push(invalid(`data[${key}]`, '<secret contents redacted>', 'must be JSON'));
  }
}

function isJson(base64: string): boolean {
  try {
    JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

/** An immutable Secret or ConfigMap can change only its metadata. */
export function checkFrozen<T extends { immutable?: boolean }>(
  errors: FieldError[],
  now: T,
  before: T,
  fields: readonly (keyof T & string)[],
): void {
  const why = 'field is immutable when `immutable` is set';
  if (now.immutable !== true) errors.push(forbidden('immutable', why));
  for (const field of fields) {
    if (!isSameJson(now[field] ?? {}, before[field] ?? {})) errors.push(forbidden(field, why));
  }
}
