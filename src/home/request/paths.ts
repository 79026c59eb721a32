// Everything that is not a resource: discovery, OpenAPI, version, health, metrics.

import type { HttpResponse } from '../../base/http.ts';
import type { Metrics } from '../../base/metrics.ts';
import { aggregatedDiscovery, coreVersions, groupAnswer, groupList, resourceList } from '../discovery/discovery.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { answerOpenApiV2 } from '../discovery/openapi-v2.ts';
import { type Form, negotiate } from '../encoding/negotiate.ts';
import { jsonResponse, textResponse } from '../encoding/respond.ts';
import type { ApiRequest } from './access.ts';
import type { Engine } from './call.ts';
import { answerHealth } from './health.ts';
import type { PathRoute } from './route.ts';
import { methodNotAllowed, noSuchResource } from './status-errors.ts';
import { versionAnswer } from './version.ts';

export type PathHandler = (request: ApiRequest, route: PathRoute) => Promise<HttpResponse>;

export interface PathParts {
  readonly engine: Engine;
  readonly metrics: Metrics | undefined;
  readonly openApi: OpenApi;
  waitsFor(): string | undefined;
}

export function createPathHandler(parts: PathParts): PathHandler {
  return async (request, route) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
    const response = await answerPath(parts, request, route);
    if (response === undefined) throw noSuchResource();
    return response;
  };
}

async function answerPath(parts: PathParts, request: ApiRequest, route: PathRoute): Promise<HttpResponse | undefined> {
  const { segments } = route;
  switch (segments[0]) {
    case 'api':
    case 'apis':
      return answerDiscovery(parts.engine, request, segments);
    case 'openapi':
      return answerOpenApi(parts.openApi, request, route);
    case 'version':
      return segments.length === 1 ? jsonResponse(versionAnswer) : undefined;
    case 'livez':
    case 'readyz':
    case 'healthz':
      return answerHealth(segments[0], { store: parts.engine.store, waitsFor: parts.waitsFor }, route.query);
    case 'metrics':
      return parts.metrics === undefined ? undefined : metricsResponse(parts.metrics);
    case undefined:
      return jsonResponse({
        paths: ['/api', '/apis', '/healthz', '/livez', '/metrics', '/openapi/v3', '/readyz', '/version'],
      });
    default:
      return undefined;
  }
}

async function metricsResponse(metrics: Metrics): Promise<HttpResponse> {
  return textResponse(await metrics.text(), 200, metrics.contentType);
}

function answerOpenApi(
  openApi: OpenApi,
  request: ApiRequest,
  { segments, query }: PathRoute,
): HttpResponse | undefined {
  if (segments[1] === 'v2' && segments.length === 2) return answerOpenApiV2(request);
  if (segments[1] !== 'v3') return undefined;
  negotiate(request.headers['accept'], plainForms);
  if (segments.length === 2) return textResponse(openApi.index(), 200, 'application/json');
  const document = openApi.document(segments.slice(2).join('/'));
  if (document === undefined) return undefined;
  const etag = `"${document.hash}"`;
  // The address in the index changes with the document, so what it leads to may be kept for ever.
  const cacheControl = query.get('hash') === document.hash ? 'public, immutable' : 'no-cache, private';
  const headers = { 'content-type': 'application/json', etag, 'cache-control': cacheControl, vary: 'Accept' };
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: new Uint8Array() };
  return { status: 200, headers, body: Buffer.from(document.text) };
}

const rootForms: ReadonlySet<Form['kind']> = new Set(['json', 'discovery']);
const plainForms: ReadonlySet<Form['kind']> = new Set(['json']);

function answerDiscovery(engine: Engine, request: ApiRequest, segments: readonly string[]): HttpResponse | undefined {
  const { registry } = engine;
  const [root, first, second] = segments as ['api' | 'apis', string?, string?];
  const form = negotiate(request.headers['accept'], first === undefined ? rootForms : plainForms);
  if (form.kind === 'discovery')
    return discoveryResponse(aggregatedDiscovery(registry, root, form.version), form.version);
  if (first === undefined) return jsonResponse(root === 'api' ? coreVersions() : groupList(registry));
  const isCore = root === 'api';
  if (!isCore && second === undefined) return jsonResponseOf(groupAnswer(registry, first));
  return jsonResponseOf(isCore ? resourceList(registry, '', first) : resourceList(registry, first, second!));
}

function jsonResponseOf(value: unknown): HttpResponse | undefined {
  return value === undefined ? undefined : jsonResponse(value);
}

function discoveryResponse(value: unknown, version: string): HttpResponse {
  const response = jsonResponse(value);
  const contentType = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
  return { ...response, headers: { ...response.headers, 'content-type': contentType, vary: 'Accept' } };
}
