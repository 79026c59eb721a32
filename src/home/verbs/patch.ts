// PATCH: what a patch makes of the object that is there, then as an update. A lost race applies the patch again.

import { forbidden } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import {
  admitFields,
  asObject,
  checkWriteOptions,
  decodeJson,
  mediaTypeOf,
  readBytes,
  unsupportedMediaType,
} from '../encoding/body.ts';
import { messageOfKind } from '../messages/messages.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { badRequest } from '../model/status-errors.ts';
import { stepsOf } from '../model/steps.ts';
import { applyJsonPatch, MalformedPatchError, PatchError } from '../patches/json-patch.ts';
import { applyMergePatch } from '../patches/merge-patch.ts';
import { applyStrategicPatch } from '../patches/strategic-patch.ts';
import { apply, applyPatchType } from './apply.ts';
import { modify } from './modify.ts';
import { checkPlace } from './prepare.ts';
import { faceOf } from './scale.ts';

type Patch = (object: AnyObject) => unknown;

const jsonPatchType = 'application/json-patch+json';
const mergePatchType = 'application/merge-patch+json';
const strategicPatchType = 'application/strategic-merge-patch+json';

export async function patch(engine: Engine, call: Call): Promise<Answer> {
  if (mediaTypeOf(call) === applyPatchType) return apply(engine, call);
  checkWriteOptions(call, 'PatchOptions');
  refuseForce(call);
  const step = stepsOf(engine, call.request.body?.length ?? 0);
  await step();
  const face = faceOf(call);
  const { patched: patchOf, duplicates } = readPatch(engine, face.call);
  await step();
  const modified = modify(engine, call, {
    part: call.subresource === 'status' ? 'status' : 'main',
    next: async (current, nextStep) => {
      await nextStep();
      const patched = asObject(guarded(() => patchOf(face.read(current))));
      await nextStep();
      const object = admitFields(face.call, patched, duplicates);
      checkPlace(call, object);
      return face.write(current, object, nextStep);
    },
  });
  return modified.then(face.answer);
}

function refuseForce({ query }: Call): void {
  if (!query.has('force')) return;
  const error = forbidden('force', 'may not be specified for non-apply patch');
  throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions', name: '' }, [error]);
}

function readPatch(engine: Engine, call: Call): { patched: Patch; duplicates: readonly string[] } {
  const mediaType = mediaTypeOf(call);
  // Only built-in kinds know how their lists are merged, as in Kubernetes.
  const isStrategicKnown = call.served.version.protobufMessage !== undefined;
  const accepted = [jsonPatchType, mergePatchType, ...(isStrategicKnown ? [strategicPatchType] : []), applyPatchType];
  if (!accepted.includes(mediaType)) throw unsupportedMediaType(accepted);
  const body = readBytes(engine, call);
  const { valuesMax } = engine.limits;
  const { value, duplicates } = decodeJson(body, valuesMax);
  // Each application gets values of its own: what a patch puts into an object is changed there.
  let unused: unknown = value;
  const fresh = () => {
    const once = unused ?? decodeJson(body, valuesMax).value;
    unused = undefined;
    return once;
  };
  if (mediaType === jsonPatchType) {
    const limits = {
      operationsMax: 10_000,
      copiedBytesMax: engine.limits.bodyBytesMax,
      shiftedItemsMax: 10_000_000,
    };
    return { patched: (object) => applyJsonPatch(object, fresh(), limits), duplicates: [] };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('error decoding patch: a merge patch must be an object');
  }
  if (mediaType === mergePatchType) {
    return { patched: (object) => applyMergePatch(object, fresh()), duplicates };
  }
  const message = messageOfKind(call.served.apiVersion, call.served.kind.kind)!;
  return { patched: (object) => applyStrategicPatch(object, fresh(), message), duplicates };
}

function guarded<T>(apply: () => T): T {
  try {
    return apply();
  } catch (error) {
    if (error instanceof MalformedPatchError) throw badRequest(`error decoding patch: ${error.message}`, error);
    if (!(error instanceof PatchError)) throw error;
    const message = `the patch cannot be applied: ${error.message}`;
    throw new StatusError('Invalid', message, { details: {}, cause: error });
  }
}
