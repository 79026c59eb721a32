// Brings the metadata of an incoming object into one form. Unknown fields were removed before; wrong types are rejected
// as a malformed body.

import type { ObjectMeta, OwnerReference } from '../../kube/objects/object.ts';
import { isDateTime } from '../schema/formats.ts';
import { badRequest } from './status-errors.ts';

type Raw = Readonly<Record<string, unknown>>;

/** Known fields in one order, absent when empty, but for an empty list of managers; selfLink is not kept. */
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
  if (Array.isArray(from['managedFields'])) meta.managedFields = from['managedFields'];
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

/** As Kubernetes writes times: whole seconds, UTC. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
