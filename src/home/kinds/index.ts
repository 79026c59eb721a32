// All built-in kinds. Those that need to know who may do what are made elsewhere and handed in.

import type { Kind } from '../model/kind.ts';
import type { ApiAccess } from '../security/create-access.ts';
import { configMapKind, secretKind } from './config.ts';
import { endpointSliceKind } from './endpoint-slice.ts';
import { eventKind, newEventKind } from './event.ts';
import { ingressClassKind, ingressKind } from './ingress.ts';
import { leaseKind } from './lease.ts';
import { namespaceKind } from './namespace.ts';
import { nodeKind } from './node.ts';
import { podKind } from './pod.ts';
import { podTemplateKind } from './pod-template.ts';
import { networkPolicyKind, podDisruptionBudgetKind } from './policies.ts';
import { createRbacKinds } from './rbac.ts';
import { replicaSetKind, replicationControllerKind } from './replicas.ts';
import { resourceQuotaKind } from './resource-quota.ts';
import { createReviewKinds } from './reviews.ts';
import { createServiceKind, type ServiceKindOptions } from './service.ts';
import { createServiceAccountKind } from './service-account.ts';
import { daemonSetKind, deploymentKind, statefulSetKind } from './workload.ts';

export interface BuiltinKindsOptions extends ServiceKindOptions {
  /** RBAC, reviews, ServiceAccount, CustomResourceDefinition. */
  readonly extra?: readonly Kind[];
}

export function builtinKinds(options: BuiltinKindsOptions): Kind[] {
  return [
    namespaceKind,
    createServiceKind(options),
    endpointSliceKind,
    podKind,
    podTemplateKind,
    replicationControllerKind,
    nodeKind,
    secretKind,
    configMapKind,
    eventKind,
    newEventKind,
    leaseKind,
    resourceQuotaKind,
    deploymentKind,
    replicaSetKind,
    statefulSetKind,
    daemonSetKind,
    ingressKind,
    ingressClassKind,
    networkPolicyKind,
    podDisruptionBudgetKind,
    ...(options.extra ?? []),
  ];
}

export function securityKinds(access: ApiAccess): Kind[] {
  return [createServiceAccountKind(access), ...createRbacKinds(access), ...createReviewKinds(access)];
}
