// A ticket lets its bearer ask one part over its admin endpoint: a token of an account without any right, made by
// TokenRequest for that part alone. The right to make tokens of this account is the right to ask. No API server accepts the
// token for anything else. Reading traffic is a right of its own: an account of its own. Pure.

import { systemNamespace } from './ours.ts';
import { type PolicyRule, readVerbs } from './rbac.ts';

export const ticketAccount = { namespace: systemNamespace, name: 'portolan-admin-caller' } as const;
/** Its tickets open what parts have seen of connections, and nothing else. */
export const flowTicketAccount = { namespace: systemNamespace, name: 'portolan-flow-reader' } as const;
const accounts = { admin: ticketAccount, flows: flowTicketAccount } as const;
export type TicketKind = keyof typeof accounts;
export const ticketKinds = Object.keys(accounts) as readonly TicketKind[];

/** Paths of admin endpoints that tickets for flows open. */
const flowPaths: readonly string[] = ['/flows', '/traffic'];

export function ticketKindOf(path: string): TicketKind {
  return flowPaths.includes(path.replace(/\?.*$/s, '')) ? 'flows' : 'admin';
}

export function ticketAccountOf(kind: TicketKind): { readonly namespace: string; readonly name: string } {
  return accounts[kind];
}

export function ticketUserOf(kind: TicketKind): string {
  return `system:serviceaccount:${accounts[kind].namespace}:${accounts[kind].name}`;
}

/** Who reads flows and traffic has these rights in portolan-system. */
export const flowReaderRules: readonly PolicyRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...readVerbs] },
  { apiGroups: [''], resources: ['services/proxy', 'pods/proxy'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: ['serviceaccounts/token'],
    resourceNames: [flowTicketAccount.name],
    verbs: ['create'],
  },
];
export const flowReaderRole = 'portolan:read-flows';
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
