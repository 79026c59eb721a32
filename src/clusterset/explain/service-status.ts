// A service as the exports of the members make it, and whether the import in one cluster is up to date. Pure.

import { isSameJson } from '../../base/json.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import { parseServiceKey } from '../rules/names.ts';
import type { Foreseen } from './foresee.ts';

export interface ServiceStatus {
  readonly service: string;
  readonly type: string;
  readonly clusters: readonly string[];
  readonly excluded: readonly string[];
  readonly conflicts: readonly string[];
  /** Of the import in this cluster; undefined where there is none to read. */
  readonly addresses?: readonly string[];
  readonly import:
    | 'in step'
    | 'behind'
    | 'no namespace'
    | 'not for this cluster'
    | 'as last known'
    | 'seen at the broker';
}

/** A service as the exports of the members make it. */
export function mergedStatus(key: string, foreseen: Foreseen): Omit<ServiceStatus, 'import'> {
  const merge = foreseen.merge(key);
  return {
    service: key,
    type: merge?.type ?? 'withdrawn',
    clusters: merge?.clusters ?? [],
    excluded: merge?.excluded ?? [],
    conflicts: [...new Set((merge?.conflicts ?? []).map(({ reason }) => reason))],
  };
}

interface ServiceRequest {
  readonly key: string;
  readonly id: string;
  readonly foreseen: Foreseen;
  readonly imports: ReadonlyMap<string, ServiceImport>;
  readonly names: ReadonlySet<string>;
  /** Whether it is made of what cannot be read now. */
  readonly isUnread: (object: ServiceImport | undefined) => boolean;
}

export function serviceStatus({ key, id, foreseen, imports, names, isUnread }: ServiceRequest): ServiceStatus {
  return { ...mergedStatus(key, foreseen), addresses: imports.get(key)?.spec.ips ?? [], import: importState() };

  function importState(): ServiceStatus['import'] {
    const wanted = foreseen.importSpec(id, key);
    const present = imports.get(key);
    if (!names.has(parseServiceKey(key).namespace)) return 'no namespace';
    if (isUnread(present)) return 'as last known';
    if (wanted === undefined) return present === undefined ? 'not for this cluster' : 'behind';
    if (present === undefined) return 'behind';
    const { ips: _ips, ...spec } = present.spec;
    const clusters = (present.status?.clusters ?? []).map(({ cluster }) => cluster);
    const isSame = isSameJson(spec, wanted) && isSameJson(clusters, foreseen.merge(key, id)?.clusters);
    return isSame ? 'in step' : 'behind';
  }
}
