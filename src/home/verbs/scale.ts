// The part of an object that a request on it speaks of: the object itself, or its Scale. A write of a Scale is a write of the
// one field of its parent that says how many replicas are wanted, and that field is what its manager owns.

import type { AnyObject } from '../../kube/objects/object.ts';
import { setOf } from '../fields/field-set.ts';
import type { Conflict } from '../fields/ownership.ts';
import { numberAt, replicasOf, scaleKind, scaleOf, setAt } from '../kinds/scale.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import type { ScaleFields } from '../model/kind.ts';
import { type Served, serveStorage } from '../model/registry.ts';
import { StatusError } from '../model/status.ts';
import { detailsOf } from '../model/status-errors.ts';
import type { Step } from '../model/steps.ts';
import { parseStored } from '../model/stored.ts';
import { get } from './get.ts';
import { applyDefaults, validateObject } from './prepare.ts';

export interface Face {
  /** The request, as one on the kind that the client sends and gets. */
  readonly call: Call;
  read(stored: AnyObject): AnyObject;
  /** What is to be stored when the client wants its part to be `next`. Throws StatusError. */
  write(stored: AnyObject, next: AnyObject, step: Step): Promise<AnyObject>;
  /** A configuration of the part, as one of the object. */
  configurationOf(applied: AnyObject): AnyObject;
  /** The object, after an apply took fields out of it, as it is stored. */
  complete(stored: AnyObject, merged: AnyObject): void;
  shown(conflict: Conflict): Conflict;
  answer(answer: Answer): Answer;
}

export const scaleSubresource = 'scale';
const scaleServed: Served = serveStorage(scaleKind);

export function faceOf(call: Call): Face {
  const { scale } = call.served.version;
  return call.subresource === scaleSubresource && scale !== undefined ? scaleFace(call, scale) : wholeFace(call);
}

function wholeFace(call: Call): Face {
  return {
    call,
    read: (stored) => stored,
    write: async (_stored, next) => next,
    configurationOf: (applied) => applied,
    complete: () => {},
    shown: (conflict) => conflict,
    answer: (answer) => answer,
  };
}

function scaleFace(call: Call, fields: ScaleFields): Face {
  const { apiVersion, kind } = call.served;
  return {
    call: { ...call, served: scaleServed, subresource: '' },
    read: (stored) => scaleOf(fields, stored),
    write: async (stored, next, step) => {
      applyDefaults(scaleServed, next);
      await validateObject(scaleServed, { object: next, before: undefined, step });
      setAt(stored, fields.replicas, replicasOf(next)!);
      return withPreconditions(stored, next);
    },
    configurationOf: ({ metadata, ...applied }) => {
      const { name, namespace, uid, resourceVersion } = metadata;
      const place = Object.entries({ name, namespace, uid, resourceVersion }).filter(([, value]) => value);
      const object = { apiVersion, kind: kind.kind, metadata: Object.fromEntries(place) } as unknown as AnyObject;
      const replicas = replicasOf(applied as AnyObject);
      if (replicas !== undefined) setAt(object, fields.replicas, replicas);
      return object;
    },
    // A manager that lets the number go leaves it as it is: without one the object would be scaled to its default.
    complete: (stored, merged) => {
      const replicas = numberAt(stored, fields.replicas);
      if (numberAt(merged, fields.replicas) === undefined && replicas !== undefined)
        setAt(merged, fields.replicas, replicas);
    },
    shown: ({ manager }) => ({
      manager: { ...manager, apiVersion: scaleServed.apiVersion },
      fields: setOf([['f:spec', 'f:replicas']]),
    }),
    answer: (answer) => scaleAnswer(call.served, fields, answer),
  };
}

/** Unlike another part of the object, its revision and uid are checked if they are given. */
function withPreconditions(stored: AnyObject, { metadata }: AnyObject): AnyObject {
  const { resourceVersion: _current, ...others } = stored.metadata;
  const { resourceVersion, uid } = metadata;
  stored.metadata = { ...others, ...(resourceVersion && { resourceVersion }), ...(uid && { uid }) };
  return stored;
}

function scaleAnswer(served: Served, fields: ScaleFields, answer: Answer): Answer {
  if (answer.kind !== 'object') return answer;
  return { kind: 'json', code: answer.code, value: scaleOf(fields, parseStored(served, answer.stored)) };
}

export async function getScale(engine: Engine, call: Call): Promise<Answer> {
  const { served, name } = call;
  const answer = await get(engine, call);
  const fields = served.version.scale!;
  if (answer.kind !== 'object') return answer;
  if (numberAt(parseStored(served, answer.stored), fields.replicas) === undefined) {
    const message = `the spec replicas field ${JSON.stringify(`.${fields.replicas.join('.')}`)} does not exist`;
    throw new StatusError('Invalid', message, { details: detailsOf(served, name) });
  }
  return scaleAnswer(served, fields, answer);
}
