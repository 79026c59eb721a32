// The metadata of an object: brought into one form when it comes in, set where the server has the say, and checked.
// Unknown fields were removed before; wrong types are rejected here, as a malformed body.

import { isDns1035Label, isDnsLabel, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';
import { type FieldError, forbidden, invalid, required, tooLong, tooMany } from '../../kube/objects/field-error.ts';
import { isLabelValue, isPathSegment, isQualifiedName } from '../../kube/objects/names.ts';
import type { ObjectMeta, OwnerReference } from '../../kube/objects/object.ts';
import type { KindBehaviour, NameRule } from '../kinds/kind.ts';
import { badRequest } from '../request/status-errors.ts';
import { isDateTime } from '../schema/formats.ts';

type Raw = Readonly<Record<string, unknown>>;

/** Known fields in one order, absent when empty; managedFields and selfLink are not kept. */
export function normalizeMetadata(raw: unknown): ObjectMeta {
  if (raw !== undefined && (typeof raw !== 'object' || raw === null || Array.isArray(raw))) {
    throw badRequest('metadata: must be an object');
  }
  const from = (raw ?? {}) as Raw;
  const meta: ObjectMeta = { name: textField(from, 'name') ?? '' };
  set(meta, 'generateName', textField(from, 'generateName'));
  set(meta, 'namespace', textField(from, 'namespace'));
  set(meta, 'uid', textField(from, 'uid'));
  set(meta, 'resourceVersion', textField(from, 'resourceVersion'));
  set(meta, 'generation', numberField(from, 'generation'));
  set(meta, 'creationTimestamp', timeField(from, 'creationTimestamp'));
  set(meta, 'deletionTimestamp', timeField(from, 'deletionTimestamp'));
  set(meta, 'deletionGracePeriodSeconds', numberField(from, 'deletionGracePeriodSeconds'));
  set(meta, 'labels', textsField(from, 'labels'));
  set(meta, 'annotations', textsField(from, 'annotations'));
  set(meta, 'finalizers', listField<string>(from, 'finalizers', 'string'));
  set(meta, 'ownerReferences', listField<OwnerReference>(from, 'ownerReferences', 'object'));
  return meta;
}

function set<K extends keyof ObjectMeta>(meta: ObjectMeta, name: K, value: ObjectMeta[K] | undefined): void {
  if (value !== undefined) meta[name] = value;
}

function textField(from: Raw, name: string): string | undefined {
  const value = from[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw badRequest(`metadata.${name}: must be a string`);
  return value;
}

const wholeSeconds = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** The same instant as the server writes it: client libraries send back what they read with other digits. */
function timeField(from: Raw, name: string): string | undefined {
  const text = textField(from, name);
  if (text === undefined || wholeSeconds.test(text)) return text;
  const ms = isDateTime(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw badRequest(`metadata.${name}: must be a time such as 2026-01-02T15:04:05Z`);
  return formatTime(ms);
}

function numberField(from: Raw, name: string): number | undefined {
  const value = from[name];
  if (value === undefined || value === null) return undefined;
  if (!Number.isInteger(value)) throw badRequest(`metadata.${name}: must be an integer`);
  return value as number;
}

function textsField(from: Raw, name: string): Record<string, string> | undefined {
  const value = from[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw badRequest(`metadata.${name}: must be a map of strings`);
  const texts = value as Record<string, string | null>;
  let isEmpty = true;
  for (const key in texts) {
    isEmpty = false;
    if (texts[key] === null) texts[key] = '';
    else if (typeof texts[key] !== 'string') throw badRequest(`metadata.${name}.${key}: must be a string`);
  }
  return isEmpty ? undefined : (texts as Record<string, string>);
}

function listField<T>(from: Raw, name: string, type: 'string' | 'object'): T[] | undefined {
  const value = from[name];
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw badRequest(`metadata.${name}: must be a list`);
  const wrong = value.findIndex((item) => typeof item !== type || item === null || Array.isArray(item));
  if (wrong >= 0)
    throw badRequest(`metadata.${name}[${wrong}]: must be ${type === 'string' ? 'a string' : 'an object'}`);
  return value.length === 0 ? undefined : (value as T[]);
}

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

/** As Kubernetes writes times: whole seconds, UTC. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
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
