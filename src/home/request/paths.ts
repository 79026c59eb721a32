// Everything that is not a resource: discovery, OpenAPI, version, health, metrics.

import type { HttpResponse } from '../../base/http.ts';
import type { Metrics } from '../../base/metrics.ts';
import { embeddedGitVersion } from '../../kube/objects/ours.ts';
import { aggregatedDiscovery, coreVersions, groupAnswer, groupList, resourceList } from '../discovery/discovery.ts';
import type { OpenApi } from '../discovery/openapi.ts';
import { type Form, negotiate } from '../encoding/negotiate.ts';
import { jsonResponse, textResponse } from '../encoding/respond.ts';
import type { ApiRequest, AuthorityFacts, TokenIssuer } from '../model/access.ts';
import type { Engine } from '../model/call.ts';
import type { PathRoute } from '../model/route.ts';
import { StatusError } from '../model/status.ts';
import { methodNotAllowed, noSuchResource } from '../model/status-errors.ts';
import type { Snapshots } from '../snapshot/snapshots.ts';
import type { Store } from '../store/store.ts';

export type PathHandler = (request: ApiRequest, route: PathRoute) => Promise<HttpResponse>;

export interface PathParts {
  readonly engine: Engine;
  readonly metrics: Metrics | undefined;
  readonly openApi: OpenApi;
  waitsFor(): string | undefined;
  readonly authority: AuthorityFacts | undefined;
  readonly tokenIssuer: TokenIssuer | undefined;
  readonly audit: AuditFacts | undefined;
  readonly snapshots: Pick<Snapshots, 'list' | 'stream' | 'warning'> | undefined;
}

/** The state of the audit log. */
export interface AuditFacts {
  /** What keeps lines from being written; undefined if nothing does. */
  problem(): string | undefined;
}

export function createPathHandler(parts: PathParts): PathHandler {
  return async (request, route) => {
    const isSnapshot = request.method === 'POST' && route.segments[0] === 'snapshots' && route.segments.length === 1;
    if (request.method !== 'GET' && request.method !== 'HEAD' && !isSnapshot) throw methodNotAllowed();
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
      return answerHealth(segments[0], healthStateOf(parts), route.query);
    case '.well-known':
      return answerWellKnown(parts, segments);
    case 'openid':
      return answerTokenKeys(parts, segments);
    case 'snapshots':
      return segments.length === 1 ? answerSnapshots(parts, request) : undefined;
    case 'metrics':
      return parts.metrics === undefined ? undefined : metricsResponse(parts.metrics);
    case undefined:
      return jsonResponse({
        paths: [
          '/api',
          '/apis',
          '/healthz',
          '/livez',
          '/metrics',
          '/openapi/v2',
          '/openapi/v3',
          '/readyz',
          '/snapshots',
          '/version',
        ],
      });
    default:
      return undefined;
  }
}

function healthStateOf({ engine, waitsFor, authority, audit, snapshots }: PathParts): HealthState {
  const warnings = () => [authority?.warning(), snapshots?.warning()].filter((text) => text !== undefined);
  return { store: engine.store, waitsFor, audit, warnings };
}

/**
 * POST takes one, GET lists those on disk. A snapshot has the key of the certificate authority, so it takes a verb that no
 * right to read paths includes.
 */
async function answerSnapshots({ snapshots }: PathParts, { method }: ApiRequest): Promise<HttpResponse | undefined> {
  if (snapshots === undefined) return undefined;
  if (method !== 'POST') return jsonResponse(await snapshots.list());
  const body = await snapshots.stream();
  if (body !== undefined) return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body };
  const details = { retryAfterSeconds: 5 };
  throw new StatusError('TooManyRequests', 'a snapshot is being sent to somebody else; try again later', { details });
}

/** Certificates are no secret, and who holds an old one must be able to learn of the new one. */
function answerWellKnown({ authority, tokenIssuer }: PathParts, segments: readonly string[]): HttpResponse | undefined {
  if (segments[1] === 'openid-configuration' && segments.length === 2 && tokenIssuer !== undefined)
    return jsonResponse(openidConfiguration(tokenIssuer));
  if (segments[1] !== 'portolan-ca' || segments.length > 2 || authority === undefined) return undefined;
  return jsonResponse({ certificates: authority.certificates() });
}

/** OpenID Connect Discovery 1.0 section 3, as far as tokens of service accounts go. */
function openidConfiguration({ issuer }: TokenIssuer): object {
  return {
    issuer,
    jwks_uri: `${issuer}/${jwksPath.join('/')}`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

const jwksPath = ['openid', 'v1', 'jwks'];

function answerTokenKeys({ tokenIssuer }: PathParts, segments: readonly string[]): HttpResponse | undefined {
  if (tokenIssuer === undefined || segments.join('/') !== jwksPath.join('/')) return undefined;
  return jsonResponse({ keys: tokenIssuer.keys });
}

async function metricsResponse(metrics: Metrics): Promise<HttpResponse> {
  return textResponse(await metrics.text(), 200, metrics.contentType);
}

async function answerOpenApi(
  openApi: OpenApi,
  request: ApiRequest,
  { segments, query }: PathRoute,
): Promise<HttpResponse | undefined> {
  const isV2 = segments[1] === 'v2' && segments.length === 2;
  if (isV2 && wantsProtobufAlone(request)) return emptyOpenApiV2();
  if (!isV2 && segments[1] !== 'v3') return undefined;
  negotiate(request.headers['accept'], plainForms);
  if (!isV2 && segments.length === 2) return textResponse(await openApi.index(), 200, 'application/json');
  const document = isV2 ? await openApi.version2() : await openApi.document(segments.slice(2).join('/'));
  if (document === undefined) return undefined;
  const etag = `"${document.hash}"`;
  // The address in the index changes with the document, so what it leads to may be kept for ever.
  const cacheControl = query.get('hash') === document.hash ? 'public, immutable' : 'no-cache, private';
  const headers = { 'content-type': 'application/json', etag, 'cache-control': cacheControl, vary: 'Accept' };
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: new Uint8Array() };
  return { status: 200, headers, body: inChunks(document.chunks) };
}

async function* inChunks(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
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

interface Check {
  readonly name: string;
  /** Undefined if all is well; otherwise what is wrong. */
  run(): string | undefined;
}

export interface HealthState {
  readonly store: Store;
  /** The missing condition of readiness; undefined once everything is there. */
  waitsFor(): string | undefined;
  readonly audit?: AuditFacts | undefined;
  /** Problems that do not make it unhealthy yet; shown with `?verbose`. */
  warnings?(): readonly string[];
}

export function answerHealth(name: string, state: HealthState, query: URLSearchParams): HttpResponse {
  const checks = name === 'livez' ? livenessChecks() : readinessChecks(state);
  const results = checks.map((check) => ({ name: check.name, failure: check.run() }));
  const isWell = results.every((result) => result.failure === undefined);
  if (isWell && !query.has('verbose')) return textResponse('ok');
  const lines = results.map(({ name: check, failure }) =>
    failure === undefined ? `[+]${check} ok` : `[-]${check} failed: ${failure}`,
  );
  lines.push(...(state.warnings?.() ?? []).map((warning) => `[!]${warning}`));
  lines.push(isWell ? `${name} check passed` : `${name} check failed`);
  return textResponse(`${lines.join('\n')}\n`, isWell ? 200 : 503);
}

function livenessChecks(): Check[] {
  return [{ name: 'ping', run: () => undefined }];
}

function readinessChecks({ store, waitsFor, audit }: HealthState): Check[] {
  return [
    ...livenessChecks(),
    { name: 'store', run: () => store.writeFailure()?.message },
    { name: 'started', run: waitsFor },
    ...(audit === undefined ? [] : [{ name: 'audit', run: () => audit.problem() }]),
  ];
}

/** Major and minor are those of the Kubernetes API that is spoken here: kubectl compares them with its own. */
const versionAnswer = {
  major: '1',
  minor: '35',
  gitVersion: embeddedGitVersion,
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: '',
} as const;

// Asked for with an @ before the last part, which Go does not read in an answer.
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

function wantsProtobufAlone({ headers }: ApiRequest): boolean {
  const accept = headers['accept'] ?? '';
  return accept.includes('+protobuf') && !accept.includes('json') && !accept.includes('*/*');
}

/**
 * A document that describes nothing: version 3 has it all, and version 2 is in JSON. kubectl asks here in protobuf alone, about
 * kinds that it did not find there, and would take a refusal for a server that is out of order.
 * openapi.v2.Document: swagger is field 1, info is 2 (title 1, version 2), paths is 8.
 */
function emptyOpenApiV2(): HttpResponse {
  const info = Buffer.concat([lengthed(1, 'Portolan'), lengthed(2, 'unversioned')]);
  const body = Buffer.concat([lengthed(1, '2.0'), lengthed(2, info), lengthed(8, '')]);
  return { status: 200, headers: { 'content-type': protobufType, vary: 'Accept' }, body };
}

function lengthed(field: number, value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Uint8Array.of((field << 3) | 2, bytes.length), bytes]);
}
