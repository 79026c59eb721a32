// One request, from its arrival to its answer: routed, authenticated, authorized, handed to its verb, and put into
// the form that was asked for. Never rejects: every error becomes a Status.

import type { HttpResponse } from '../../base/http.ts';
import { errorText } from '../../base/log.ts';
import { type Form, negotiate } from '../encoding/negotiate.ts';
import { errorResponse, respond } from '../encoding/respond.ts';
import type { Access, ApiRequest, User } from '../model/access.ts';
import type { Answer, Call, Engine } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import { parseRoute, type ResourceRoute, type Route } from '../model/route.ts';
import { asStatusError, badRequest, forbidden, methodNotAllowed, noSuchResource } from '../model/status-errors.ts';
import { create } from '../verbs/create.ts';
import { remove } from '../verbs/delete.ts';
import { removeCollection } from '../verbs/delete-collection.ts';
import { get } from '../verbs/get.ts';
import { list } from '../verbs/list.ts';
import type { PartProxy } from '../verbs/part-proxy.ts';
import { patch } from '../verbs/patch.ts';
import { getScale, scaleSubresource } from '../verbs/scale.ts';
import { createInSubresource } from '../verbs/subresource.ts';
import { finalize, update } from '../verbs/update.ts';
import { watch } from '../watch/watch.ts';
import type { PathHandler } from './paths.ts';
import type { RequestMetrics } from './request-metrics.ts';

export interface HandlerParts {
  readonly engine: Engine;
  readonly access: Access;
  readonly metrics: RequestMetrics;
  readonly answerPath: PathHandler;
  readonly partProxy: PartProxy;
}

export type Handle = (request: ApiRequest) => Promise<HttpResponse>;

export function createHandle(parts: HandlerParts): Handle {
  const { engine, metrics } = parts;
  const { clock } = engine.world;
  return async (request) => {
    const startMs = clock.monotonicMs();
    const route = parseRoute(request.method, request.path);
    const response = await answerOrStatus(parts, request, route);
    metrics.observe(route, response.status, clock.monotonicMs() - startMs);
    return response;
  };
}

async function answerOrStatus(
  parts: HandlerParts,
  request: ApiRequest,
  route: Route | undefined,
): Promise<HttpResponse> {
  try {
    return await answer(parts, request, route);
  } catch (error) {
    const status = asStatusError(error);
    // A part that does not answer is no failure of the home, and callers could fill the log with it.
    const isOfPart = route?.kind === 'resource' && isPartProxy(route);
    if (status.code >= 500 && status.reason !== 'Timeout' && !isOfPart) {
      const fields = { method: request.method, path: request.path, error: errorText(error) };
      parts.engine.log.error('a request failed', fields);
    }
    return errorResponse(status);
  }
}

async function answer(parts: HandlerParts, request: ApiRequest, route: Route | undefined): Promise<HttpResponse> {
  const user = await parts.access.authenticate(request);
  if (route === undefined) throw noSuchResource();
  const decision = parts.access.authorize(user, route.attributes);
  if (!decision.isAllowed) throw forbidden(user, route.attributes, decision.reason);
  if (route.kind === 'path') {
    checkTimeout(route.query.get('timeout'));
    return parts.answerPath(request, route);
  }
  if (isPartProxy(route)) return parts.partProxy.pass(request, route);
  if (request.receiveBody !== undefined) await request.receiveBody();
  return answerResource(parts, request, route, user);
}

function isPartProxy({ group, plural, subresource }: ResourceRoute): boolean {
  return group === '' && plural === 'services' && subresource === 'proxy';
}

async function answerResource(
  { engine, access }: HandlerParts,
  request: ApiRequest,
  route: ResourceRoute,
  user: User,
): Promise<HttpResponse> {
  const served = engine.registry.find(route.group, route.version, route.plural);
  if (served === undefined || isMisplaced(served, route)) throw noSuchResource();
  if (route.verb !== 'watch') checkTimeout(route.query.get('timeout'));
  const form = negotiate(request.headers['accept'], served.verbs.has('get') ? resourceForms : reviewForms);
  const call: Call = {
    served,
    namespace: route.namespace,
    name: route.name,
    subresource: route.subresource,
    query: route.query,
    request,
    user,
    nowMs: engine.world.clock.wallMs(),
    isStillAllowed: () => isAllowed(access, request, route),
    may: (attributes) => access.authorize(user, attributes).isAllowed,
    credential: route.verb === 'watch' ? (access.credentialOf?.(request) ?? {}) : {},
    isDryRun: route.query.size > 0 && route.query.getAll('dryRun').includes('All'),
    warnings: [],
  };
  return respond(engine, call, form, await dispatch(engine, call, route, form));
}

/** Everything is checked anew: the credentials, the account, impersonation, and the right. */
async function isAllowed(access: Access, request: ApiRequest, route: ResourceRoute): Promise<boolean> {
  try {
    const user = await access.authenticate(request);
    return access.authorize(user, route.attributes).isAllowed;
  } catch {
    return false;
  }
}

/** Answered and not stored: there are no rows to show. */
const reviewForms: ReadonlySet<Form['kind']> = new Set(['json']);
const resourceForms: ReadonlySet<Form['kind']> = new Set(['json', 'table', 'metadata']);

const duration = /^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;

/** How long the client waits. The time that a request may take is bounded here by itself. */
function checkTimeout(text: string | null): void {
  if (text === null || text === '' || (text.length < 100 && duration.test(text))) return;
  const shown = JSON.stringify(text.slice(0, 100));
  throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${shown}`);
}

/** A namespace where the kind has none, or an object without one where it must have one. */
function isMisplaced(served: Served, route: ResourceRoute): boolean {
  if (!served.kind.isNamespaced) return route.namespace !== '';
  return route.namespace === '' && route.name !== '';
}

function dispatch(engine: Engine, call: Call, route: ResourceRoute, form: Form): Promise<Answer> {
  const { verb } = route;
  if (route.subresource === 'status' && call.served.version.hasStatus) return onStatus(engine, call, verb);
  if (route.subresource === scaleSubresource && call.served.version.scale) return onScale(engine, call, verb);
  if (route.subresource === 'finalize' && call.served.kind.behaviour.finalize !== undefined) {
    if (verb !== 'update') throw methodNotAllowed();
    return finalize(engine, call);
  }
  if (route.subresource !== '') return createInSubresource(engine, call, verb);
  if (!call.served.verbs.has(verb)) throw methodNotAllowed();
  switch (verb) {
    case 'get':
      return get(engine, call);
    case 'list':
      return list(engine, call);
    case 'watch':
      return watch(engine, call, form);
    case 'create':
      if (call.name !== '') throw methodNotAllowed();
      return create(engine, call);
    case 'update':
      if (call.name === '') throw methodNotAllowed();
      return update(engine, call);
    case 'patch':
      if (call.name === '') throw methodNotAllowed();
      return patch(engine, call);
    case 'delete':
      return remove(engine, call);
    case 'deletecollection':
      return removeCollection(engine, call);
    case 'unknown':
      throw methodNotAllowed();
  }
}

function onStatus(engine: Engine, call: Call, verb: string): Promise<Answer> {
  return verb === 'get' ? get(engine, call) : onPart(engine, call, verb);
}

function onScale(engine: Engine, call: Call, verb: string): Promise<Answer> {
  return verb === 'get' ? getScale(engine, call) : onPart(engine, call, verb);
}

function onPart(engine: Engine, call: Call, verb: string): Promise<Answer> {
  if (verb === 'update') return update(engine, call);
  if (verb === 'patch') return patch(engine, call);
  throw methodNotAllowed();
}
