// One object, from memory to bytes without a look inside.

import type { Answer, Call, Engine } from '../model/call.ts';
import { notFound } from '../model/status-errors.ts';
import { objectKey } from '../model/stored.ts';
import { parseRevision } from './list-options.ts';
import { waitForRevision } from './revisions.ts';

export async function get(engine: Engine, call: Call): Promise<Answer> {
  const revision = parseRevision(call.query.get('resourceVersion'));
  if (revision !== undefined) await waitForRevision(engine, revision);
  const stored = await engine.store.get(objectKey(call.served.keyPrefix, call.namespace, call.name));
  if (stored === undefined) throw notFound(call.served, call.name);
  return { kind: 'object', code: 200, stored };
}
