// A request that the server makes to itself: its own parts change objects in the same way as clients do.

import type { AnyObject } from '../../kube/objects/object.ts';
import { encodeJson } from '../encoding/respond.ts';
import { type Call, type Engine, type Place, systemUser } from '../model/call.ts';

const noQuery = new URLSearchParams();
const ownAgent = { 'user-agent': 'portolan-home' };

export function systemCall(engine: Engine, place: Place, body?: AnyObject): Call {
  return {
    ...place,
    subresource: '',
    query: noQuery,
    request: { method: '', path: '', headers: ownAgent, ...(body === undefined ? {} : { body: encodeJson(body) }) },
    user: systemUser,
    nowMs: engine.world.clock.wallMs(),
    isDryRun: false,
    isStillAllowed: async () => true,
    may: () => true,
    credential: {},
    warnings: [],
  };
}
