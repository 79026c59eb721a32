// Sees to it, at every start, that the roles and bindings of bootstrap-roles.ts are there. Additions by users stay,
// removed rights come back, and nothing is written if nothing is missing. An annotation
// `rbac.authorization.kubernetes.io/autoupdate: "false"` keeps an object as it is.

import type { HttpResponse } from '../../base/http.ts';
import { readBody } from '../../base/http.ts';
import { isSameJson } from '../../base/json.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { ApiRequest } from '../model/access.ts';
import { type BootstrapBinding, type BootstrapRole, bootstrapBindings, bootstrapRoles } from './bootstrap-roles.ts';
import type { Subject } from './rbac-index.ts';
import { type PolicyRule, uncovered } from './rules.ts';

const apiVersion = 'rbac.authorization.k8s.io/v1';
const autoUpdate = 'rbac.authorization.kubernetes.io/autoupdate';
const conflictsMax = 5;

export interface BootstrapOptions {
  readonly handle: (request: ApiRequest) => Promise<HttpResponse>;
  readonly roles?: readonly BootstrapRole[];
  readonly bindings?: readonly BootstrapBinding[];
}

/** Resolves to how many objects were written. */
export async function ensureBootstrap(options: BootstrapOptions): Promise<number> {
  const roles = await ensureAll(options.handle, 'clusterroles', options.roles ?? bootstrapRoles, completeRole);
  const bindings = await ensureAll(
    options.handle,
    'clusterrolebindings',
    options.bindings ?? bootstrapBindings,
    completeBinding,
  );
  return roles + bindings;
}

type Wanted = BootstrapRole | BootstrapBinding;
/** The object with what is missing added; undefined if nothing is. */
type Complete<W> = (there: AnyObject, wanted: W) => AnyObject | undefined;

async function ensureAll<W extends Wanted>(
  handle: BootstrapOptions['handle'],
  plural: string,
  wanted: readonly W[],
  complete: Complete<W>,
): Promise<number> {
  const list = await send(handle, 'GET', `/apis/${apiVersion}/${plural}`);
  const there = new Map((list['items'] as AnyObject[]).map((item) => [item.metadata.name, item]));
  const written = await Promise.all(
    wanted.map((object) => ensure({ handle, plural, object, there: there.get(object.metadata.name), complete })),
  );
  return written.filter(Boolean).length;
}

interface Ensured<W> {
  readonly handle: BootstrapOptions['handle'];
  readonly plural: string;
  readonly object: W;
  readonly there: AnyObject | undefined;
  readonly complete: Complete<W>;
}

async function ensure<W extends Wanted>({ handle, plural, object, there, complete }: Ensured<W>): Promise<boolean> {
  const path = `/apis/${apiVersion}/${plural}`;
  if (there === undefined) {
    await send(handle, 'POST', path, asObject(object));
    return true;
  }
  const ownPath = `${path}/${encodeURIComponent(object.metadata.name)}`;
  let current = there;
  for (let attempt = 1; ; attempt++) {
    const completed = isLeftAlone(current) ? undefined : complete(current, object);
    if (completed === undefined) return false;
    const response = await raw(handle, 'PUT', ownPath, completed);
    if (response.status !== 409 || attempt === conflictsMax) {
      await parse(response, `PUT ${ownPath}`);
      return true;
    }
    current = await send(handle, 'GET', ownPath);
  }
}

function isLeftAlone(object: AnyObject): boolean {
  return object.metadata.annotations?.[autoUpdate] === 'false';
}

function completeRole(there: AnyObject, wanted: BootstrapRole): AnyObject | undefined {
  const rules = (there['rules'] ?? []) as PolicyRule[];
  const missing = (wanted.rules ?? []).filter((rule) => uncovered(rules, [rule]).length > 0);
  const hasSelectors = isSameJson(there['aggregationRule'] ?? null, wanted.aggregationRule ?? null);
  if (missing.length === 0 && hasSelectors && hasLabels(there, wanted)) return undefined;
  const aggregation = wanted.aggregationRule === undefined ? {} : { aggregationRule: wanted.aggregationRule };
  return { ...withLabels(there, wanted), ...aggregation, rules: [...rules, ...missing] };
}

function completeBinding(there: AnyObject, wanted: BootstrapBinding): AnyObject | undefined {
  const subjects = (there['subjects'] ?? []) as Subject[];
  const missing = (wanted.subjects ?? []).filter((subject) => !subjects.some((known) => isSameJson(known, subject)));
  if (missing.length === 0 && hasLabels(there, wanted)) return undefined;
  return { ...withLabels(there, wanted), subjects: [...subjects, ...missing] };
}

function hasLabels(there: AnyObject, wanted: Wanted): boolean {
  const labels = there.metadata.labels ?? {};
  return Object.entries(labelsOf(wanted)).every(([key, value]) => labels[key] === value);
}

function withLabels(there: AnyObject, wanted: Wanted): AnyObject {
  const labels = { ...there.metadata.labels, ...labelsOf(wanted) };
  return { ...there, apiVersion, kind: wanted.kind, metadata: { ...there.metadata, labels } };
}

function labelsOf(wanted: Wanted): Record<string, string> {
  return 'labels' in wanted.metadata ? (wanted.metadata.labels ?? {}) : {};
}

function asObject(wanted: Wanted): AnyObject {
  return { apiVersion, ...wanted } as unknown as AnyObject;
}

async function send(
  handle: BootstrapOptions['handle'],
  method: string,
  path: string,
  body?: AnyObject,
): Promise<AnyObject> {
  return await parse(await raw(handle, method, path, body), `${method} ${path}`);
}

// As the server itself, which may do everything: a lesser user could not grant it to others.
function raw(
  handle: BootstrapOptions['handle'],
  method: string,
  path: string,
  body?: AnyObject,
): Promise<HttpResponse> {
  return handle({
    method,
    path,
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    clientCertificate: { commonName: 'system:apiserver', organizations: ['system:masters'] },
    ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
  });
}

async function parse(response: HttpResponse, what: string): Promise<AnyObject> {
  const text = Buffer.from(await readBody(response.body)).toString('utf8');
  if (response.status >= 300) throw new Error(`${what}: the api answered ${response.status} ${text}`);
  return JSON.parse(text) as AnyObject;
}
