// The line of the audit log for one request, at Kubernetes' Metadata level: user, verb, object and result;
// never what was in it. Fields are cut, so that no line is longer than a few kilobytes. Pure; writing is
// edge/audit-file.ts.

import type { RequestTrail, User } from '../model/access.ts';
import { parseRoute } from '../model/route.ts';

export interface AuditSink {
  record(event: AuditEvent): void;
  /** Why no write may be taken now; undefined if writes are taken. */
  refusal?(): string | undefined;
}

export interface AuditEvent {
  readonly kind: 'Event';
  readonly apiVersion: 'audit.k8s.io/v1';
  readonly level: 'Metadata';
  readonly auditID: string;
  /** A watch is recorded when it begins and when it ends, everything else when it ends. */
  readonly stage: 'ResponseStarted' | 'ResponseComplete';
  readonly requestURI: string;
  readonly verb: string;
  readonly user: AuditUser | undefined;
  readonly impersonatedUser?: AuditUser;
  readonly sourceIPs: readonly string[];
  readonly userAgent: string;
  readonly objectRef?: AuditObject;
  readonly responseStatus: { readonly code: number };
  readonly annotations?: Readonly<Record<string, string>>;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

interface AuditUser {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
}

interface AuditObject {
  readonly resource: string;
  readonly apiGroup?: string;
  readonly apiVersion: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

export interface AuditedRequest {
  readonly auditId: string;
  readonly stage: AuditEvent['stage'];
  readonly method: string;
  readonly path: string;
  readonly userAgent: string;
  readonly sourceAddress: string;
  readonly status: number;
  readonly trail: RequestTrail;
  readonly receivedWallMs: number;
  readonly nowWallMs: number;
}

/** In characters, by field. */
const lengthMax = { uri: 512, userAgent: 128, name: 256, verb: 32 };
const groupsMax = 16;

export function auditEvent(request: AuditedRequest): AuditEvent {
  const route = parseRoute(request.method, request.path);
  const { user, impersonator } = request.trail;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: request.auditId,
    stage: request.stage,
    requestURI: cut(request.path, lengthMax.uri),
    verb: cut(route?.attributes.verb ?? request.method.toLowerCase(), lengthMax.verb),
    user: auditUser(impersonator ?? user),
    ...(impersonator === undefined ? {} : { impersonatedUser: auditUser(user) }),
    sourceIPs: [request.sourceAddress],
    userAgent: cut(request.userAgent, lengthMax.userAgent),
    ...(route?.kind === 'resource' ? { objectRef: objectOf(route.attributes) } : {}),
    responseStatus: { code: request.status },
    requestReceivedTimestamp: new Date(request.receivedWallMs).toISOString(),
    stageTimestamp: new Date(request.nowWallMs).toISOString(),
  };
}

function auditUser(user: User | undefined): AuditUser | undefined {
  if (user === undefined) return undefined;
  const groups = user.groups.slice(0, groupsMax).map((group) => cut(group, lengthMax.name));
  if (user.groups.length > groupsMax) groups.push(`and ${user.groups.length - groupsMax} more`);
  return { username: cut(user.name, lengthMax.name), uid: user.uid && cut(user.uid, lengthMax.name), groups };
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… of ${text.length} characters`;
}

function objectOf(attributes: {
  readonly resource: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}): AuditObject {
  const of = (field: keyof typeof attributes) => cut(attributes[field], lengthMax.name);
  const { group, namespace, name, subresource } = attributes;
  return {
    resource: of('resource'),
    ...(group === '' ? {} : { apiGroup: of('group') }),
    apiVersion: of('version'),
    ...(namespace === '' ? {} : { namespace: of('namespace') }),
    ...(name === '' ? {} : { name: of('name') }),
    ...(subresource === '' ? {} : { subresource: of('subresource') }),
  };
}
