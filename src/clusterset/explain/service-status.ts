// A service as the exports of the members make it, and whether the import in one cluster is up to date. Pure.

import { isSameJson } from '../../base/json.ts';
import type { IpFamily } from '../../base/net/ip.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { type ServiceImport, sealedFromAnnotation } from '../kinds/service-import.ts';
import type { ServiceImportPolicy } from '../kinds/service-import-policy.ts';
import { parseServiceKey } from '../rules/names.ts';
import { usableFamilies } from '../rules/networks/own-families.ts';
import { planSpec } from '../rules/plan-import.ts';
import { type ImportSubject, policyOfImport } from '../rules/routing/import-policies.ts';
import type { Prediction } from './predict.ts';

export interface ServiceStatus {
  readonly service: string;
  readonly type: string;
  readonly clusters: readonly string[];
  readonly excluded: readonly string[];
  readonly conflicts: readonly string[];
  /** Addresses of the import in this cluster; undefined where there is none to read. */
  readonly addresses?: readonly string[];
  /** Its name here, if a policy gives it another one. */
  readonly importedAs?: string;
  readonly import:
    | 'in step'
    | 'behind'
    | 'no namespace'
    | 'not for this cluster'
    | 'refused by policy'
    | 'as last known'
    | 'partly sealed'
    | 'seen at the broker';
}

/** A service as the exports of the members make it. */
export function mergedStatus(key: string, prediction: Prediction): Omit<ServiceStatus, 'import'> {
  const merge = prediction.merge(key);
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
  readonly prediction: Prediction;
  /** By the service of the clusterset that they are of. */
  readonly imports: ReadonlyMap<string, ServiceImport>;
  /** Policies of this cluster. */
  readonly policies?: readonly ServiceImportPolicy[];
  readonly names: ReadonlySet<string>;
  /** IP families of the Pods of this cluster; absent if they are not known here. */
  readonly families?: readonly IpFamily[];
  /** Whether it is made of what cannot be read now. */
  readonly isUnread: (object: ServiceImport | undefined) => boolean;
}

export function serviceStatus(request: ServiceRequest): ServiceStatus {
  const { key, id, prediction, imports, policies = [], names, families, isUnread } = request;
  const found = imports.get(key);
  return {
    ...mergedStatus(key, prediction),
    addresses: found?.spec.ips ?? [],
    ...(found === undefined || keyOf(found) === key ? {} : { importedAs: keyOf(found) }),
    import: importState(),
  };

  function importState(): ServiceStatus['import'] {
    const merged = prediction.merge(key, id);
    const wanted = merged && planSpec(merged, []);
    const present = imports.get(key);
    const { namespace, name } = parseServiceKey(key);
    if (present === undefined && isRefused(policies, { namespace: { name: namespace }, name, labels: {} }))
      return 'refused by policy';
    if (present === undefined && !names.has(namespace)) return 'no namespace';
    if (isUnread(present)) return 'as last known';
    if (isFromSealed(present)) return 'partly sealed';
    if (wanted === undefined) return present === undefined ? 'not for this cluster' : 'behind';
    if (present === undefined) return 'behind';
    const { ips: _ips, ...spec } = present.spec;
    // As the agent imports them. Where the families of the cluster are not known, those of the import are taken for them.
    const ipFamilies = usableFamilies(wanted.ipFamilies ?? [], families ?? spec.ipFamilies).used;
    const clusters = (present.status?.clusters ?? []).map(({ cluster }) => cluster);
    const isSame = isSameJson(spec, { ...wanted, ipFamilies }) && isSameJson(clusters, merged?.clusters);
    return isSame ? 'in step' : 'behind';
  }
}

/** Others at the broker do not see what it is made of, nor does who reads the broker for this. */
export function isFromSealed(object: ServiceImport | undefined): boolean {
  return object?.metadata.annotations?.[sealedFromAnnotation] !== undefined;
}

/** By names alone: labels of a service that is not imported are not read here. */
function isRefused(policies: readonly ServiceImportPolicy[], subject: ImportSubject): boolean {
  return policyOfImport(policies, subject)?.spec?.accept === false;
}
