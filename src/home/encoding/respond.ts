// From what a verb has answered to a response in the form that was asked for. Plain JSON is made of stored bytes; only
// tables and metadata are made of parsed objects.

import type { HttpResponse } from '../../base/http.ts';
import type { Turns } from '../../base/turns.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import type { Answer, Call, Engine, ListAnswer } from '../model/call.ts';
import type { StatusError } from '../model/status.ts';
import { chunkEnd, encodeAnswer, encodeList, parseStored } from '../model/stored.ts';
import type { Entry } from '../store/store.ts';
import type { Form } from './negotiate.ts';
import { metadataOf, parseIncludeObject, rowOf, type TableOptions, tableOf } from './table.ts';

const jsonHeaders = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' } as const;

export function respond(engine: Pick<Engine, 'turns'>, call: Call, form: Form, answer: Answer): HttpResponse {
  const headers = call.warnings.length === 0 ? jsonHeaders : { ...jsonHeaders, warning: warningHeader(call.warnings) };
  switch (answer.kind) {
    case 'object':
      return { status: answer.code, headers, body: objectBody(call, form, answer) };
    case 'list':
      return { status: 200, headers, body: listBody(engine.turns, call, form, answer.list) };
    case 'json':
      return { status: answer.code, headers, body: encodeJson(answer.value) };
    case 'stream':
      return { status: 200, headers, body: answer.body, isEndless: true };
  }
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

export function jsonResponse(value: unknown, code = 200): HttpResponse {
  return { status: code, headers: jsonHeaders, body: encodeJson(value) };
}

export function textResponse(text: string, code = 200, contentType = 'text/plain; charset=utf-8'): HttpResponse {
  return {
    status: code,
    headers: { 'content-type': contentType, 'cache-control': 'no-cache' },
    body: Buffer.from(text),
  };
}

export function errorResponse(error: StatusError): HttpResponse {
  const retryAfter = error.details?.retryAfterSeconds;
  const headers = retryAfter === undefined ? jsonHeaders : { ...jsonHeaders, 'retry-after': String(retryAfter) };
  return { status: error.code, headers, body: encodeJson(error.toStatus()) };
}

/** Clients bound the headers that they take. */
const warningsMax = 20;

/** RFC 7234 section 5.5: code 299, no agent, a quoted text. */
function warningHeader(warnings: readonly string[]): string {
  const left = warnings.length - warningsMax;
  const said = left > 0 ? [...warnings.slice(0, warningsMax), `and ${left} more warnings`] : warnings;
  const texts = said.map((text) => text.replace(/[^\x20-\x7e]/g, '?').replace(/[\\"]/g, '\\$&'));
  return texts.map((text) => `299 - "${text}"`).join(', ');
}

function tableOptions(call: Call, form: Form & { kind: 'table' }): TableOptions {
  return { version: form.version, includeObject: parseIncludeObject(call.query), nowMs: call.nowMs };
}

function objectBody(call: Call, form: Form, { stored }: Answer & { kind: 'object' }): Buffer {
  const { served } = call;
  if (form.kind === 'table') {
    const object = parseStored(served, stored);
    const { resourceVersion } = object.metadata;
    return encodeJson(tableOf(served, [object], { resourceVersion }, tableOptions(call, form)));
  }
  if (form.kind === 'metadata') return encodeJson(metadataOf(parseStored(served, stored), form.version));
  return encodeAnswer(served, stored);
}

function listBody(turns: Turns, call: Call, form: Form, list: ListAnswer): HttpResponse['body'] {
  const { served } = call;
  const metadata = listMetadata(list);
  if (form.kind === 'table') {
    const options = tableOptions(call, form);
    const itemOf = (entry: Entry) => rowOf(served, parseStored(served, entry), options);
    return encodeParsed(list.entries, tableOf(served, [], metadata, options), { itemOf, turns });
  }
  if (form.kind === 'metadata') {
    const empty = { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${form.version}`, metadata, items: [] };
    const itemOf = (entry: Entry) => metadataOf(parseStored(served, entry), form.version);
    return encodeParsed(list.entries, empty, { itemOf, turns });
  }
  const kind = served.kind.listKind;
  const opening = `{"kind":"${kind}","apiVersion":"${apiVersionOf({ group: served.kind.group, version: served.version.name })}","metadata":${JSON.stringify(metadata)},"items":[`;
  return encodeList(served, list.entries, opening);
}

function listMetadata({ revision, continueToken, remainingItemCount }: ListAnswer): object {
  return {
    resourceVersion: String(revision),
    continue: continueToken,
    remainingItemCount,
  };
}

/** Parsing this many objects or bytes does not delay others. */
const chunk = { length: 500, bytes: 64 * 1024 };

/** An answer whose last member is an empty list, with that list filled. A long one is made chunk by chunk, as it is read. */
function encodeParsed(
  entries: readonly Entry[],
  empty: unknown,
  { itemOf, turns }: { readonly itemOf: (entry: Entry) => unknown; readonly turns: Turns },
): Buffer | AsyncIterable<Uint8Array> {
  const opening = JSON.stringify(empty).slice(0, -2);
  const encode = (from: number, end: number) => {
    const items = entries.slice(from, end).map((entry) => JSON.stringify(itemOf(entry)));
    return Buffer.from(`${from === 0 ? opening : ','}${items.join(',')}${end === entries.length ? ']}' : ''}`);
  };
  const firstEnd = chunkEnd(entries, 0, chunk);
  if (firstEnd === entries.length) return encode(0, firstEnd);
  return (async function* () {
    for (let from = 0; from < entries.length; ) {
      const end = chunkEnd(entries, from, chunk);
      await turns.next();
      yield encode(from, end);
      from = end;
    }
  })();
}
