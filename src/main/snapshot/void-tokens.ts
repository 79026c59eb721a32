// Join tokens end when a snapshot is restored: one that was used since then would be good again. Each lives and dies with
// a Secret, which is left out. Pure.

import { joinSecretName, membersNamespace } from '../../clusterset/rules/broker-layout.ts';

const secrets = '/registry/core/secrets/';
const joinSecret = new RegExp(`^[^/]+${membersNamespace('')}/${joinSecretName('').replaceAll('.', '\\.')}`);

export function isJoinToken(key: string): boolean {
  return key.startsWith(secrets) && joinSecret.test(key.slice(secrets.length));
}
