// PUT: the whole object, or the whole of its status. A Lease that is not there is created by it, as in Kubernetes.

import { invalid } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { checkWriteOptions, readObject } from '../encoding/body.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import { invalidObject } from '../model/status.ts';
import { forbidden, notFound } from '../model/status-errors.ts';
import { stepsOf } from '../model/steps.ts';
import { create } from './create.ts';
import { modify } from './modify.ts';
import { checkPlace } from './prepare.ts';
import { faceOf } from './scale.ts';

export function update(engine: Engine, call: Call): Promise<Answer> {
  checkWriteOptions(call, 'UpdateOptions');
  const face = faceOf(call);
  const modified = modify(engine, call, {
    part: call.subresource === 'status' ? 'status' : 'main',
    next: async (current, step) => {
      const object = await readObject(engine, face.call, step);
      checkPlace(call, object);
      requireResourceVersion(face.call, object);
      return face.write(current, object, step);
    },
    ...(isCreatedByUpdate(call) ? { onAbsent: () => createNamed(engine, call) } : {}),
  });
  return modified.then(face.answer);
}

/** PUT to `finalize`: the finalizers of the kind's own list, and nothing else. The last one to go takes the object with it. */
export function finalize(engine: Engine, call: Call): Promise<Answer> {
  checkWriteOptions(call, 'UpdateOptions');
  return modify(engine, call, {
    part: 'all',
    next: async (current, step) => {
      const wanted = await readObject(engine, call, step);
      checkPlace(call, wanted);
      const { uid, resourceVersion } = wanted.metadata;
      const { resourceVersion: _current, ...metadata } = current.metadata;
      current.metadata = { ...metadata, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
      return call.served.kind.behaviour.finalize!(current, wanted);
    },
  });
}

function isCreatedByUpdate({ served, subresource }: Call): boolean {
  return served.kind.behaviour.isCreatedByUpdate === true && subresource === '';
}

/** Unlike a POST, this has a name when it is authorized: a role can allow one name alone. */
async function createNamed(engine: Engine, call: Call): Promise<Answer> {
  const { served, namespace, name } = call;
  const { metadata } = await readObject(engine, call, stepsOf(engine, call.request.body?.length ?? 0));
  // It was there when its writer read it.
  if (metadata.uid !== undefined || metadata.resourceVersion !== undefined) throw notFound(served, name);
  const { group, plural: resource } = served.kind;
  const place = { group, version: served.version.name, resource, subresource: '', namespace, name };
  const attributes = { verb: 'create', ...place };
  if (!call.may(attributes)) throw forbidden(call.user, attributes, '');
  return create(engine, call);
}

// Kubernetes lets an update of most built-in kinds go without a resourceVersion and overwrite what is there; of a custom
// kind it does not, and of Lease neither.
function requireResourceVersion(call: Call, object: AnyObject): void {
  const { kind, version } = call.served;
  const isOptional = version.protobufMessage !== undefined && !isCreatedByUpdate(call);
  if (isOptional || object.metadata.resourceVersion !== undefined) return;
  throw invalidObject({ group: kind.group, kind: kind.kind, name: object.metadata.name }, [
    invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
  ]);
}
