// PUT: the whole object, or the whole of its status.

import { invalid } from '../../kube/objects/field-error.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { checkWriteOptions, readObject } from '../encoding/body.ts';
import type { Answer, Call, Engine } from '../request/call.ts';
import { invalidObject } from '../request/status.ts';
import { modify } from './modify.ts';
import { checkPlace } from './prepare.ts';

export function update(engine: Engine, call: Call): Promise<Answer> {
  checkWriteOptions(call);
  return modify(engine, call, {
    part: call.subresource === 'status' ? 'status' : 'main',
    next: async (_current, step) => {
      const object = await readObject(engine, call, step);
      checkPlace(call, object);
      requireResourceVersion(call, object);
      return object;
    },
  });
}

// Kubernetes lets an update of a built-in kind go without a resourceVersion and overwrite what is there; of a custom
// kind it does not.
function requireResourceVersion(call: Call, object: AnyObject): void {
  const { kind, version } = call.served;
  if (version.protobufMessage !== undefined || object.metadata.resourceVersion !== undefined) return;
  throw invalidObject({ group: kind.group, kind: kind.kind, name: object.metadata.name }, [
    invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
  ]);
}
