// The metadata of an object: set where the server has the say, and checked.

import { isDns1035Label, isDnsLabel, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';
import { type FieldError, forbidden, invalid, required, tooLong, tooMany } from '../../kube/objects/field-error.ts';
import { isLabelValue, isPathSegment, isQualifiedName } from '../../kube/objects/names.ts';
import type { ObjectMeta, OwnerReference } from '../../kube/objects/object.ts';
import type { KindBehaviour, NameRule } from '../model/kind.ts';
import { formatTime } from '../model/metadata.ts';

/** Metadata that only the server sets on a new object. */
export function setOnCreate(
  meta: ObjectMeta,
  given: { readonly uid: string; readonly nowMs: number; readonly hasGeneration: boolean },
): void {
  meta.uid = given.uid;
  meta.creationTimestamp = formatTime(given.nowMs);
  if (given.hasGeneration) meta.generation = 1;
  else delete meta.generation;
  delete meta.deletionTimestamp;
  delete meta.deletionGracePeriodSeconds;
}

/** Fields that an update may omit or cannot change are taken from the present object. */
export function setOnUpdate(meta: ObjectMeta, before: ObjectMeta): void {
  meta.uid ??= before.uid;
  meta.creationTimestamp ??= before.creationTimestamp;
  if (before.generation === undefined) delete meta.generation;
  else meta.generation = before.generation;
  if (before.generateName !== undefined) meta.generateName ??= before.generateName;
  if (before.deletionTimestamp === undefined) {
    delete meta.deletionTimestamp;
    delete meta.deletionGracePeriodSeconds;
  } else {
    meta.deletionTimestamp = before.deletionTimestamp;
    meta.deletionGracePeriodSeconds = before.deletionGracePeriodSeconds;
  }
}

const generatedBaseLengthMax = 58;
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';

export function generateName(base: string, randomBytes: Uint8Array): string {
  const suffix = Array.from(randomBytes.subarray(0, 5), (byte) => suffixAlphabet[byte % suffixAlphabet.length]);
  return base.slice(0, generatedBaseLengthMax) + suffix.join('');
}

const nameRules: Readonly<Record<NameRule, TextRule>> = {
  dnsSubdomain: isDnsSubdomain,
  dnsLabel: isDnsLabel,
  dns1035Label: isDns1035Label,
  pathSegment: isPathSegment,
};

export function validateMetadata(meta: ObjectMeta, behaviour: KindBehaviour): FieldError[] {
  const errors: FieldError[] = [];
  if (meta.name === '') errors.push(required('metadata.name', 'name or generateName is required'));
  else
    for (const why of nameRules[behaviour.nameRule](meta.name)) errors.push(invalid('metadata.name', meta.name, why));
  if (meta.labels !== undefined) validateLabels(meta.labels, errors);
  if (meta.annotations !== undefined) validateAnnotations(meta.annotations, errors);
  if (meta.finalizers !== undefined) validateFinalizers(meta.finalizers, errors);
  if (meta.ownerReferences !== undefined) validateOwners(meta.ownerReferences, errors);
  return errors;
}

/** Far above real needs. Each finalizer and each owner is work for garbage collection at every change. */
const namedMax = 100;

/** `before` is absent on create. A list that an earlier version let grow longer may stay as it is, or become shorter. */
export function validateMetadataCounts(meta: ObjectMeta, before: ObjectMeta | undefined): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['finalizers', 'ownerReferences'] as const) {
    const count = meta[field]?.length ?? 0;
    if (count > Math.max(namedMax, before?.[field]?.length ?? 0))
      errors.push(tooMany(`metadata.${field}`, count, namedMax));
  }
  return errors;
}

/** Keys and values together. */
const annotationsBytesMax = 256 * 1024;
const labelsBytesMax = 64 * 1024;

function validateLabels(labels: Record<string, string>, errors: FieldError[]): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(labels)) {
    for (const why of isQualifiedName(key)) errors.push(invalid('metadata.labels', key, why));
    for (const why of isLabelValue(value)) errors.push(invalid('metadata.labels', value, why));
    bytes += key.length + value.length;
    if (bytes > labelsBytesMax) return void errors.push(tooLong('metadata.labels', labelsBytesMax));
  }
}

function validateAnnotations(annotations: Record<string, string>, errors: FieldError[]): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    for (const why of isQualifiedName(key.toLowerCase())) errors.push(invalid('metadata.annotations', key, why));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    if (bytes > annotationsBytesMax) return void errors.push(tooLong('metadata.annotations', annotationsBytesMax));
  }
}

function validateFinalizers(finalizers: readonly string[], errors: FieldError[]): void {
  for (const [index, finalizer] of finalizers.entries()) {
    for (const why of isQualifiedName(finalizer)) errors.push(invalid(`metadata.finalizers[${index}]`, finalizer, why));
  }
}

function validateOwners(owners: readonly OwnerReference[], errors: FieldError[]): void {
  let controller: OwnerReference | undefined;
  for (const [index, owner] of owners.entries()) {
    const path = `metadata.ownerReferences[${index}]`;
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (typeof owner[field] !== 'string' || owner[field] === '') errors.push(required(`${path}.${field}`));
    }
    if (owner.controller !== true) continue;
    if (controller !== undefined) {
      const both = `${controller.kind}/${controller.name} and ${owner.kind}/${owner.name}`;
      errors.push(invalid('metadata.ownerReferences', owner.name, `only one can be the controller, not both ${both}`));
    }
    controller = owner;
  }
}

const immutableFields = ['name', 'namespace', 'uid', 'creationTimestamp'] as const;

export function validateMetadataUpdate(meta: ObjectMeta, before: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of immutableFields) {
    if (meta[field] !== before[field])
      errors.push(invalid(`metadata.${field}`, meta[field] ?? '', 'field is immutable'));
  }
  if (before.deletionTimestamp === undefined) return errors;
  const known = new Set(before.finalizers);
  const added = (meta.finalizers ?? []).filter((finalizer) => !known.has(finalizer));
  if (added.length > 0) {
    const names = added.map((name) => JSON.stringify(name)).join(', ');
    errors.push(forbidden('metadata.finalizers', `the object is being deleted, none can be added: ${names}`));
  }
  return errors;
}
