// `kubectl apply` without --server-side keeps its last configuration in an annotation. When the same person goes over to
// server-side apply, fields that are still as that configuration set them are theirs, whoever wrote them for them.

import type { AnyObject } from '../../kube/objects/object.ts';
import { scanJson } from '../encoding/duplicate-keys.ts';
import { nestingDepthMax } from '../schema/walk.ts';
import { difference, emptySet, type FieldSet } from './field-set.ts';
import type { MapType } from './merge-type.ts';
import { compareValues, fieldsOf } from './values.ts';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** Deeper or larger than any object that is accepted: no configuration. */
const depthMax = nestingDepthMax;
const valuesMax = 40_000;
export const kubectlManager = 'kubectl';

/** Fields of the last configuration that the object still has as they were. */
export function unchangedSinceLastApplied(type: MapType, live: AnyObject): FieldSet {
  const last = lastApplied(live);
  if (last === undefined) return emptySet;
  const { added, modified, removed } = compareValues(type, last, live);
  return [modified, added, removed].reduce(difference, fieldsOf(type, last));
}

function lastApplied({ metadata }: AnyObject): AnyObject | undefined {
  const text = metadata.annotations?.[annotation];
  if (text === undefined || scanJson(text, { depthMax, valuesMax }).excess !== undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as AnyObject) : undefined;
  } catch {
    return undefined;
  }
}

/** As for annotations of any object: keys and values together. */
const annotationsBytesMax = 256 * 1024;

function hasRoomFor(text: string, annotations: Readonly<Record<string, string>>): boolean {
  let bytes = Buffer.byteLength(text) + annotation.length;
  for (const [key, value] of Object.entries(annotations))
    if (key !== annotation) bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes <= annotationsBytesMax;
}

/**
 * Keeps the annotation of an object that has one true, so that plain `kubectl apply` knows what to remove afterwards. One
 * for which there is no room is gone.
 */
export function renewLastApplied(object: AnyObject, configuration: AnyObject): void {
  const { annotations } = object.metadata;
  if (annotations?.[annotation] === undefined) return;
  const { [annotation]: _last, ...others } = configuration.metadata?.annotations ?? {};
  const metadata = { ...configuration.metadata, annotations: others };
  const text = `${JSON.stringify({ ...configuration, metadata })}\n`;
  if (hasRoomFor(text, annotations)) annotations[annotation] = text;
  else delete annotations[annotation];
}
