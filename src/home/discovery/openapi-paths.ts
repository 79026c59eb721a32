// The paths of an OpenAPI document: what may be asked of each resource, and with which parameters. kubectl looks here
// for the parameters it would like to send, and for nothing else.

import { scaleKind } from '../kinds/scale.ts';
import type { Kind, KindVersion } from '../model/kind.ts';
import { allVerbs } from '../model/registry.ts';
import { componentName, kindComponentName, reference } from './openapi-schemas.ts';

type Operation = Readonly<Record<string, unknown>>;
export type Paths = Record<string, Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: { readonly type: string; readonly uniqueItems?: boolean };
}

function query(name: string, type: string, description: string): Parameter {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

function inPath(name: string, description: string): Parameter {
  return { name, in: 'path', required: true, description, schema: { type: 'string', uniqueItems: true } };
}

const namespaceParameter = inPath('namespace', 'The namespace of the object.');
const nameParameter = inPath('name', 'The name of the object.');

const readParameters = [query('pretty', 'string', 'Indent the answer.')];
const writeParameters = [
  query('dryRun', 'string', 'All: check everything, change nothing.'),
  query('fieldManager', 'string', 'Who makes this change.'),
  query('fieldValidation', 'string', 'Ignore, Warn or Strict: what to do about unknown and repeated fields.'),
];
const patchParameters = [...writeParameters, query('force', 'boolean', 'Take over fields that others manage.')];
const listParameters = [
  query('allowWatchBookmarks', 'boolean', 'Send bookmarks while watching.'),
  query('continue', 'string', 'Where the last page ended.'),
  query('fieldSelector', 'string', 'Only objects whose fields match.'),
  query('labelSelector', 'string', 'Only objects whose labels match.'),
  query('limit', 'integer', 'How many objects at most.'),
  query('resourceVersion', 'string', 'The revision to read or to watch from.'),
  query('resourceVersionMatch', 'string', 'Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'Begin a watch with the present objects.'),
  query('timeoutSeconds', 'integer', 'How long to watch.'),
  query('watch', 'boolean', 'Send changes as they happen.'),
];
const deleteParameters = [
  query('dryRun', 'string', 'All: check everything, change nothing.'),
  query('gracePeriodSeconds', 'integer', 'How long the object may take to go.'),
  query('propagationPolicy', 'string', 'Orphan, Background or Foreground: how its dependents are deleted.'),
];

const bodyTypes = ['application/json', 'application/yaml'];
const patchTypes = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];
// Only built-in kinds know how their lists are merged; kubectl apply looks here before it sends one of these.
const builtinPatchTypes = [...patchTypes, 'application/strategic-merge-patch+json'];

export function addPaths(paths: Paths, kind: Kind, version: KindVersion): void {
  const verbs = new Set(kind.behaviour.verbs ?? allVerbs);
  const root = kind.group === '' ? `/api/${version.name}` : `/apis/${kind.group}/${version.name}`;
  const place = kind.isNamespaced ? `${root}/namespaces/{namespace}/${kind.plural}` : `${root}/${kind.plural}`;
  const make = operationsOf(kind, version);
  const collection = make.some(verbs, { get: ['list'], post: ['create'], delete: ['deletecollection'] });
  paths[place] = kind.isNamespaced ? { ...collection, parameters: [namespaceParameter] } : collection;
  if (kind.isNamespaced && verbs.has('list')) paths[`${root}/${kind.plural}`] = make.some(verbs, { get: ['list'] });
  const parameters = [...(kind.isNamespaced ? [namespaceParameter] : []), nameParameter];
  const item = make.some(verbs, { get: ['get'], put: ['update'], patch: ['patch'], delete: ['delete'] });
  if (Object.keys(item).length > 0) paths[`${place}/{name}`] = { ...item, parameters };
  if (version.hasStatus && verbs.has('update')) {
    const status = make.some(verbs, { get: ['get'], put: ['update'], patch: ['patch'] });
    paths[`${place}/{name}/status`] = { ...status, parameters };
  }
  if (kind.behaviour.finalize !== undefined)
    paths[`${place}/{name}/finalize`] = { ...make.some(verbs, { put: ['update'] }), parameters };
  if (version.scale !== undefined) {
    const ofScale = operationsOf(scaleKind, scaleKind.versions[0]!);
    const scale = ofScale.some(verbs, { get: ['get'], put: ['update'], patch: ['patch'] });
    paths[`${place}/{name}/scale`] = { ...scale, parameters };
  }
  for (const [name, subresource] of Object.entries(kind.behaviour.subresources ?? {})) {
    const gvk = { group: subresource.group, version: subresource.version, kind: subresource.kind };
    const post = { parameters: writeParameters, responses: {}, ...actionOf('post', gvk) };
    paths[`${place}/{name}/${name}`] = { post, parameters };
  }
}

type Methods = Readonly<Record<string, readonly [verb: string]>>;

function operationsOf(kind: Kind, version: KindVersion) {
  const name = kindComponentName(kind, version);
  const gvk = { group: kind.group, version: version.name, kind: kind.kind };
  const answer = (schema: string) => ({ '200': response(schema), '401': { description: 'Unauthorized' } });
  const byVerb: Readonly<Record<string, () => Operation>> = {
    list: () => ({ parameters: listParameters, responses: answer(`${name}List`), ...actionOf('list', gvk) }),
    create: () => ({ ...write(name, writeParameters, bodyTypes), responses: answer(name), ...actionOf('post', gvk) }),
    get: () => ({ parameters: readParameters, responses: answer(name), ...actionOf('get', gvk) }),
    update: () => ({ ...write(name, writeParameters, bodyTypes), responses: answer(name), ...actionOf('put', gvk) }),
    patch: () => ({ ...patchBody(version), responses: answer(name), ...actionOf('patch', gvk) }),
    delete: () => ({ parameters: deleteParameters, responses: answer(statusName), ...actionOf('delete', gvk) }),
    deletecollection: () => ({
      parameters: [...deleteParameters, ...listParameters.filter((each) => each.name !== 'watch')],
      responses: answer(statusName),
      ...actionOf('deletecollection', gvk),
    }),
  };
  return {
    some: (verbs: ReadonlySet<string>, methods: Methods): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(methods)
          .filter(([, [verb]]) => verbs.has(verb))
          .map(([method, [verb]]) => [method, byVerb[verb]?.()]),
      ),
  };
}

const statusName = componentName('meta.v1.Status');

function response(schema: string): object {
  return { description: 'OK', content: { 'application/json': { schema: reference(schema) } } };
}

function write(schema: string, parameters: readonly Parameter[], types: readonly string[]): Operation {
  const content = Object.fromEntries(types.map((type) => [type, { schema: reference(schema) }]));
  return { parameters, requestBody: { required: true, content } };
}

function patchBody({ protobufMessage }: KindVersion): Operation {
  const types = protobufMessage === undefined ? patchTypes : builtinPatchTypes;
  const content = Object.fromEntries(types.map((type) => [type, { schema: { type: 'object' } }]));
  return { parameters: patchParameters, requestBody: { required: true, content } };
}

function actionOf(action: string, gvk: object): Operation {
  return { 'x-kubernetes-action': action, 'x-kubernetes-group-version-kind': gvk };
}
