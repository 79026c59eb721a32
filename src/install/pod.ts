// Fields that Pods of every part share. Pure.

/** Three quarters of the limit for the heap; the rest is for buffers, threads and code. */
export const heapVariable = { name: 'NODE_OPTIONS', value: '--max-old-space-size-percentage=75' };

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
