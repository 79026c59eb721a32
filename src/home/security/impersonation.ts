// Impersonation: the user that the Impersonate headers name, and every permission that takes. Pure.

import type { Attributes, User } from '../model/access.ts';
import { StatusError } from '../model/status.ts';

const headerPrefix = 'impersonate-';
const accountPattern = /^system:serviceaccount:([^:]+):([^:]+)$/;

type Headers = Readonly<Record<string, string>>;

export interface Impersonation {
  readonly user: User;
  /** All of these must be allowed to the one who asks. */
  readonly needs: readonly Attributes[];
}

/** Undefined if the request is in its sender's own name. */
export function parseImpersonation(headers: Headers): Impersonation | undefined {
  let isAsked = false;
  for (const name in headers) isAsked ||= name.startsWith(headerPrefix);
  if (!isAsked) return undefined;
  const name = headers['impersonate-user'] ?? '';
  if (name === '') {
    throw new StatusError(
      'BadRequest',
      'impersonation: groups, uid or extra without a user; send Impersonate-User too',
    );
  }
  const groups = splitList(headers['impersonate-group']);
  const uid = headers['impersonate-uid'];
  const extra = extraOf(headers);
  return {
    user: { name, groups: impliedGroups(name, groups), uid, extra },
    needs: [userNeed(name), ...groups.map((group) => need('groups', group)), ...uidNeeds(uid), ...extraNeeds(extra)],
  };
}

function impliedGroups(name: string, groups: readonly string[]): string[] {
  const [, namespace] = accountPattern.exec(name) ?? [];
  const base =
    namespace !== undefined && groups.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
      : groups;
  const authGroup = name === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated';
  return [...new Set([...base, authGroup])];
}

function userNeed(name: string): Attributes {
  const [, namespace, account] = accountPattern.exec(name) ?? [];
  if (namespace === undefined || account === undefined) return need('users', name);
  return need('serviceaccounts', account, { namespace });
}

function uidNeeds(uid: string | undefined): Attributes[] {
  return uid === undefined ? [] : [need('uids', uid, { group: 'authentication.k8s.io' })];
}

function extraNeeds(extra: Record<string, string[]>): Attributes[] {
  return Object.entries(extra).flatMap(([key, values]) =>
    values.map((value) => need('userextras', value, { group: 'authentication.k8s.io', subresource: key })),
  );
}

function need(resource: string, name: string, more: Partial<Attributes> = {}): Attributes {
  return {
    verb: 'impersonate',
    group: '',
    version: more.group === undefined ? '' : 'v1',
    resource,
    subresource: '',
    namespace: '',
    name,
    ...more,
  };
}

function extraOf(headers: Headers): Record<string, string[]> {
  const prefix = `${headerPrefix}extra-`;
  const extras = Object.entries(headers).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(extras.map(([name, value]) => [decode(name.slice(prefix.length)), splitList(value)]));
}

// HTTP joins headers of one name with commas.
function splitList(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function decode(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
