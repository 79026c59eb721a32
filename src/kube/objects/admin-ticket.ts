// A ticket lets its bearer ask one part over its admin endpoint: a token of an account without any right, made by
// TokenRequest for that part alone. The right to make tokens of this account is the right to ask. No API server accepts the
// token for anything else. Pure.

import { systemNamespace } from './ours.ts';
import type { PolicyRule } from './rbac.ts';

export const ticketAccount = { namespace: systemNamespace, name: 'portolan-admin-caller' } as const;
export const ticketUser = `system:serviceaccount:${ticketAccount.namespace}:${ticketAccount.name}`;
/** The right that a part needs to check tickets. */
export const ticketRule: PolicyRule = {
  apiGroups: ['authentication.k8s.io'],
  resources: ['tokenreviews'],
  verbs: ['create'],
};
/** The shortest that API servers grant. */
export const ticketLifetimeMs = 600_000;

/** `place` is where the ticket is sent, so that nobody can use it elsewhere: the name of a Pod, or a URL. */
export function ticketAudience(place: string): string {
  return `portolan-admin/${place}`;
}

/** The claims of a ticket, unchecked: a text that claims another part is not worth a question to the API server. */
export function claimedAudiences(ticket: string): readonly string[] {
  try {
    const claims = JSON.parse(Buffer.from(ticket.split('.')[1] ?? '', 'base64url').toString('utf8')) as {
      aud?: unknown;
    };
    return [claims?.aud].flat().filter((one) => typeof one === 'string');
  } catch {
    return [];
  }
}
