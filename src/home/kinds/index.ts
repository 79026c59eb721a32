// All built-in kinds. Those that need to know who may do what are made elsewhere and handed in.

import { configMapKind, secretKind } from './config.ts';
import { endpointSliceKind } from './endpoint-slice.ts';
import { eventKind, newEventKind } from './event.ts';
import type { Kind } from './kind.ts';
import { leaseKind } from './lease.ts';
import { namespaceKind } from './namespace.ts';
import { nodeKind } from './node.ts';
import { podKind } from './pod.ts';
import { createServiceKind, type ServiceKindOptions } from './service.ts';
import { deploymentKind, statefulSetKind } from './workload.ts';

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
    nodeKind,
    secretKind,
    configMapKind,
    eventKind,
    newEventKind,
    leaseKind,
    deploymentKind,
    statefulSetKind,
    ...(options.extra ?? []),
  ];
}
