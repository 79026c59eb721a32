// OpenAPI v2 of what is served, made of the documents of v3: one document with everything. What v2 has no words for
// (alternatives, null) is left out, as Kubernetes does.

import { isObject } from '../../base/json.ts';
import type { Pieces } from '../../base/turns.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

export interface Parts {
  readonly paths: Record<string, unknown>;
  readonly definitions: Record<string, unknown>;
}

const referenceBefore = '#/components/schemas/';
const reference = '#/definitions/';
const withoutWords: ReadonlySet<string> = new Set(['oneOf', 'anyOf', 'not', 'nullable']);
const produces = ['application/json', 'application/yaml'];

/** Adds one document of v3. */
export function* addDocument(parts: Parts, { paths, components }: Document): Pieces<void> {
  for (const [name, schema] of Object.entries(components.schemas)) {
    if (Object.hasOwn(parts.definitions, name)) continue;
    parts.definitions[name] = openSchema(schema) ?? convertSchema(schema);
    yield;
  }
  for (const [path, item] of Object.entries(paths)) parts.paths[path] = convertPath(item);
}

/** A kind that takes any field has no properties here: clients of v2 would refuse all others. */
function openSchema(schema: unknown): unknown {
  if (!isObject(schema) || schema['x-kubernetes-preserve-unknown-fields'] !== true) return undefined;
  const kinds = schema['x-kubernetes-group-version-kind'];
  return kinds && { type: 'object', 'x-kubernetes-group-version-kind': kinds };
}

function convertSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(convertSchema);
  if (!isObject(schema)) return schema;
  const { allOf, $ref, ...rest } = schema;
  // In v3 a reference with a default or a description is the only one of allOf.
  const only = Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]) ? allOf[0]['$ref'] : undefined;
  const target = $ref ?? only;
  const converted: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(rest)) {
    if (withoutWords.has(key)) continue;
    if (key === 'properties') converted[key] = convertMembers(value);
    else converted[key] = key === 'items' || key === 'additionalProperties' ? convertSchema(value) : value;
  }
  if (typeof target === 'string') converted['$ref'] = target.replace(referenceBefore, reference);
  return converted;
}

function convertMembers(members: unknown): unknown {
  if (!isObject(members)) return members;
  return Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, convertSchema(schema)]));
}

function convertPath(item: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      key === 'parameters' ? convertParameters(value) : convertOperation(value as Record<string, unknown>),
    ]),
  );
}

function convertOperation(operation: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { parameters, requestBody, responses, ...rest } = operation;
  const content = contentOf(requestBody);
  const [first] = Object.values(content);
  const body = first && { name: 'body', in: 'body', required: true, schema: convertSchema(first.schema) };
  return {
    ...rest,
    ...(body && { consumes: Object.keys(content) }),
    produces,
    parameters: [...(body === undefined ? [] : [body]), ...convertParameters(parameters)],
    responses: convertResponses(responses),
  };
}

function convertParameters(parameters: unknown): object[] {
  const list = Array.isArray(parameters) ? (parameters as { readonly schema: object }[]) : [];
  return list.map(({ schema, ...rest }) => ({ ...rest, ...schema }));
}

function convertResponses(responses: unknown): Record<string, unknown> {
  if (!isObject(responses)) return {};
  return Object.fromEntries(
    Object.entries(responses).map(([code, response]) => {
      const { description } = response as { readonly description: string };
      const [first] = Object.values(contentOf(response));
      return [code, { description, ...(first && { schema: convertSchema(first.schema) }) }];
    }),
  );
}

function contentOf(holder: unknown): Readonly<Record<string, { readonly schema: unknown }>> {
  const content = isObject(holder) ? holder['content'] : undefined;
  return (isObject(content) ? content : {}) as Record<string, { readonly schema: unknown }>;
}
