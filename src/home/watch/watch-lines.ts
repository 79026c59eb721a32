// One line of a watch stream, in the form the watcher has asked for. Lines of plain objects are stored bytes between an
// opening and a closing; a line is made once for all watchers that want the same.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { Form } from '../encoding/negotiate.ts';
import { encodeJson } from '../encoding/respond.ts';
import { emptyRow, type IncludeObject, metadataOf, type TableOptions, tableOf } from '../encoding/table.ts';
import type { EventMemo } from '../model/call.ts';
import type { Served } from '../model/registry.ts';
import type { StatusError } from '../model/status.ts';
import { encodeEvent, parseStored, renewedValue, type Stored } from '../model/stored.ts';
import type { StoreEvent } from '../store/store.ts';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface LineForm {
  readonly served: Served;
  readonly form: Form;
  readonly includeObject: IncludeObject;
  nowMs(): number;
  /** Whether a line of this watch has named the columns of its table. */
  hasColumns: boolean;
}

export function eventLine(memo: EventMemo, how: LineForm, type: EventType, event: StoreEvent): Uint8Array {
  const { form, served, includeObject } = how;
  const name =
    form.kind === 'json'
      ? type + served.encodingName
      : `${type} ${served.encodingName} ${form.kind} ${includeObject} ${how.hasColumns}`;
  const line = memo.bytes(event, name, () => {
    // A deleted object is shown in its last state, at the revision of its deletion.
    const value = type === 'DELETED' ? renewedValue(served, event.previous!) : event.entry!.value;
    return storedLine(how, type, { value, revision: event.revision });
  });
  // Another watch may have made it.
  how.hasColumns = true;
  return line;
}

export function storedLine(how: LineForm, type: EventType, stored: Stored): Buffer {
  const { form, served } = how;
  if (form.kind !== 'table' && form.kind !== 'metadata') return encodeEvent(type, served, stored);
  const object = parseStored(served, stored);
  if (form.kind === 'metadata') return encodeLine(type, metadataOf(object, form.version));
  const { resourceVersion } = object.metadata;
  return encodeLine(type, tableLine(how, [object], { resourceVersion }, form.version));
}

/** Says that everything up to a revision has been sent, and with `isInitialEnd` that this was all there is. */
export function bookmarkLine(how: LineForm, revision: number, isInitialEnd: boolean): Buffer {
  const annotations = isInitialEnd ? { 'k8s.io/initial-events-end': 'true' } : undefined;
  const metadata = { resourceVersion: String(revision), creationTimestamp: null, ...(annotations && { annotations }) };
  const { form, served } = how;
  if (form.kind === 'table') {
    const table = tableLine(how, [], metadata, form.version);
    const object = { kind: served.kind.kind, apiVersion: served.apiVersion, metadata } as unknown as AnyObject;
    return encodeLine('BOOKMARK', { ...table, rows: [emptyRow(served, object, tableOptions(how, form.version))] });
  }
  if (form.kind === 'metadata') {
    const apiVersion = `meta.k8s.io/${form.version}`;
    return encodeLine('BOOKMARK', { kind: 'PartialObjectMetadata', apiVersion, metadata });
  }
  return encodeLine('BOOKMARK', { kind: served.kind.kind, apiVersion: served.apiVersion, metadata });
}

/** Columns are named once in a watch, as in Kubernetes. */
function tableLine(how: LineForm, objects: readonly AnyObject[], metadata: object, version: string): object {
  const table = tableOf(how.served, objects, metadata, tableOptions(how, version));
  const line = how.hasColumns ? { ...table, columnDefinitions: null } : table;
  how.hasColumns = true;
  return line;
}

function tableOptions({ includeObject, nowMs }: LineForm, version: string): TableOptions {
  return { version, includeObject, nowMs: nowMs() };
}

export function errorLine(error: StatusError): Buffer {
  return encodeLine('ERROR', error.toStatus());
}

function encodeLine(type: string, object: unknown): Buffer {
  return Buffer.concat([encodeJson({ type, object }), Buffer.from('\n')]);
}
