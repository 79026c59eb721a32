// An object on its way into the store: its bytes, or a refusal if it has become too large. Bodies are bounded, but patches
// could add to an object again and again.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { Engine } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { tooManyValues } from '../model/status-errors.ts';
import { encodeStored, textOf } from '../model/stored.ts';
import { hasMoreValuesThan, valuesIn } from '../schema/walk.ts';
import type { Entry } from '../store/store.ts';

/** The server's own marks, such as a deletion's, find room in what was written at the limit. */
const ownBytes = 64 * 1024;

interface Bounded {
  readonly object: AnyObject;
  /** What is stored now: what is too large already may still be changed, as long as it does not grow. */
  readonly before: Entry | undefined;
}

export function encodeBounded(engine: Engine, served: Served, { object, before }: Bounded): Uint8Array {
  const { bodyBytesMax, valuesMax } = engine.limits;
  const value = encodeStored(served, object);
  if (value.length <= (before?.latin1.length ?? 0)) return value;
  if (value.length > bodyBytesMax + ownBytes) {
    const message = `Request entity too large: the object would have ${value.length} bytes, the limit is ${bodyBytesMax}`;
    throw new StatusError('RequestEntityTooLarge', message);
  }
  // A value takes at least two bytes.
  const mayHaveMore = value.length > 2 * valuesMax && hasMoreValuesThan(object, valuesMax + ownValues);
  if (mayHaveMore && !hasAsManyValues(before, object)) throw tooManyValues(valuesMax);
  return value;
}

const ownValues = 1000;

function hasAsManyValues(before: Entry | undefined, object: AnyObject): boolean {
  return before !== undefined && hasMoreValuesThan(JSON.parse(textOf(before.value)), valuesIn(object) - 1);
}
