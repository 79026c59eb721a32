// The line of the audit log for one request, at Kubernetes' Metadata level: user, verb, object and result;
// never what was in it. Pure; writing is edge/audit-file.ts.

import type { RequestTrail, User } from '../model/access.ts';
import { parseRoute } from '../model/route.ts';

export interface AuditSink {
  record(event: AuditEvent): void;
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

export function auditEvent(request: AuditedRequest): AuditEvent {
  const route = parseRoute(request.method, request.path);
  const { user, impersonator } = request.trail;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: request.auditId,
    stage: request.stage,
    requestURI: request.path,
    verb: route?.attributes.verb ?? request.method.toLowerCase(),
    user: auditUser(impersonator ?? user),
    ...(impersonator === undefined ? {} : { impersonatedUser: auditUser(user) }),
    sourceIPs: [request.sourceAddress],
    userAgent: request.userAgent,
    ...(route?.kind === 'resource' ? { objectRef: objectOf(route.attributes) } : {}),
    responseStatus: { code: request.status },
    requestReceivedTimestamp: new Date(request.receivedWallMs).toISOString(),
    stageTimestamp: new Date(request.nowWallMs).toISOString(),
  };
}

function auditUser(user: User | undefined): AuditUser | undefined {
  if (user === undefined) return undefined;
  return { username: user.name, uid: user.uid, groups: user.groups };
}

function objectOf(attributes: {
  readonly resource: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}): AuditObject {
  const { resource, group, version, namespace, name, subresource } = attributes;
  return {
    resource,
    ...(group === '' ? {} : { apiGroup: group }),
    apiVersion: version,
    ...(namespace === '' ? {} : { namespace }),
    ...(name === '' ? {} : { name }),
    ...(subresource === '' ? {} : { subresource }),
  };
}
