// Subresources of a kind other than status: a ServiceAccount's token.

import type { AnyObject } from '../../kube/objects/object.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { asObject, decodeBody, mediaTypeOf, readBytes } from '../encoding/body.ts';
import { type Answer, type Call, contextOf, type Engine } from '../model/call.ts';
import { normalizeMetadata } from '../model/metadata.ts';
import { badRequest, methodNotAllowed, noSuchResource, notFound } from '../model/status-errors.ts';
import { objectKey, parseStored } from '../model/stored.ts';

export async function createInSubresource(engine: Engine, call: Call, verb: string): Promise<Answer> {
  const { served, name } = call;
  const { subresources = {} } = served.kind.behaviour;
  const subresource = Object.hasOwn(subresources, call.subresource) ? subresources[call.subresource] : undefined;
  if (subresource === undefined) throw noSuchResource();
  if (verb !== 'create') throw methodNotAllowed();
  const bodyOptions = { isProtobufAccepted: true, valuesMax: engine.limits.valuesMax };
  const body = asObject(decodeBody(mediaTypeOf(call), readBytes(engine, call), bodyOptions).value);
  checkBody(body, { apiVersion: apiVersionOf(subresource), kind: subresource.kind });
  body.metadata = normalizeMetadata(body.metadata);
  const entry = await engine.store.get(objectKey(served.keyPrefix, call.namespace, name));
  if (entry === undefined) throw notFound(served, name);
  const value = await subresource.create(body, parseStored(served, entry), contextOf(engine, call));
  return { kind: 'json', code: 201, value };
}

function checkBody(body: AnyObject, expected: { apiVersion: string; kind: string }): void {
  body.apiVersion ??= expected.apiVersion;
  body.kind ??= expected.kind;
  if (body.apiVersion === expected.apiVersion && body.kind === expected.kind) return;
  throw badRequest(
    `${body.kind} in version ${JSON.stringify(body.apiVersion)} cannot be handled as a ${expected.kind} in version ${JSON.stringify(expected.apiVersion)}`,
  );
}
