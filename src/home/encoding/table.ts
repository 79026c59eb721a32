// Tables for people, in the form kubectl prints: one row per object, and as much of the object as is asked for.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { Column } from '../model/kind.ts';
import type { Served } from '../model/registry.ts';
import { badRequest } from '../model/status-errors.ts';

export type IncludeObject = 'Metadata' | 'None' | 'Object';

export interface TableOptions {
  /** v1 or v1beta1 of meta.k8s.io; they differ in name alone. */
  readonly version: string;
  readonly includeObject: IncludeObject;
  readonly nowMs: number;
}

export function parseIncludeObject(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? '';
  if (value === '') return 'Metadata';
  if (value === 'Metadata' || value === 'None' || value === 'Object') return value;
  throw badRequest(`unrecognized includeObject value: ${JSON.stringify(value)}; expected None, Metadata or Object`);
}

const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Unique within a namespace among objects of this kind.',
  priority: 0,
  value: (object) => object.metadata.name,
};

function columnsOf(served: Served): readonly Column[] {
  const { columns } = served.version;
  return columns.some((column) => column.format === 'name') ? columns : [nameColumn, ...columns];
}

export function tableOf(
  served: Served,
  objects: readonly AnyObject[],
  listMetadata: object,
  options: TableOptions,
): object {
  // The rows come last: a long list is made by putting them into a table that has none.
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: listMetadata,
    columnDefinitions: columnsOf(served).map(({ name, type, format = '', description = '', priority }) => ({
      name,
      type,
      format,
      description,
      priority,
    })),
    rows: objects.map((object) => rowOf(served, object, options)),
  };
}

export function rowOf(served: Served, object: AnyObject, options: TableOptions): unknown {
  const cells = columnsOf(served).map((column) => column.value(object, options.nowMs));
  return { cells, ...included(object, options) };
}

/** Row of an object that is only metadata, such as a bookmark: no cell has a value. */
export function emptyRow(served: Served, object: AnyObject, options: TableOptions): unknown {
  return { cells: columnsOf(served).map(() => null), ...included(object, options) };
}

function included(object: AnyObject, { includeObject, version }: TableOptions): { object?: unknown } {
  if (includeObject === 'None') return {};
  return { object: includeObject === 'Object' ? object : metadataOf(object, version) };
}

export function metadataOf(object: AnyObject, version: string): unknown {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata };
}
