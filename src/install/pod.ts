// Fields that Pods of every part share. Pure.

import { imageOf } from './image.ts';
import { given, isMark } from './marks.ts';
import type { PartValues, Values } from './values.ts';

/** Three quarters of the limit for the heap; the rest is for buffers, threads and code. */
export const heapVariable = { name: 'NODE_OPTIONS', value: '--max-old-space-size-percentage=75' };

/** Resolvers give back the memory that only their first list needed: `bin/portolan` starts them with the same. */
export const resolverVariables: readonly object[] = [{ name: 'MALLOC_MMAP_THRESHOLD_', value: '69632' }];

export const startupTimes = { periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 60 };
/** Out of service after ten seconds, and in service soon after it is ready. */
export const readinessTimes = { periodSeconds: 2, timeoutSeconds: 3, failureThreshold: 5 };

export function imageFields({ image, imagePullPolicy }: Values): Record<string, unknown> {
  return { image: isMark(image) ? image : imageOf(image), ...given('imagePullPolicy', imagePullPolicy) };
}

export function resourcesOf({ cpu, memory, cpuLimit }: PartValues): object {
  return { requests: { cpu, memory }, limits: { memory, ...given('cpu', cpuLimit) } };
}

export function fieldVariable(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

export function containerSecurity(add: readonly string[] = []): object {
  return {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'], ...(add.length === 0 ? {} : { add }) },
  };
}

/** Over nodes and zones, as far as there are any. */
export function spreadOf(matchLabels: Record<string, string>): object[] {
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels },
  }));
}
