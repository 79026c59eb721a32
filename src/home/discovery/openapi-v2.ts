// The answer to /openapi/v2: a document that describes nothing; version 3 has it all. kubectl comes here about kinds it
// did not find there. Finding nothing here either, it says so in plain words instead of missing the document.

import type { HttpResponse } from '../../base/http.ts';
import { jsonResponse } from '../encoding/respond.ts';
import type { ApiRequest } from '../request/access.ts';

// Asked for with an @ before the last part, which Go does not read in an answer.
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
const document = { swagger: '2.0', info: { title: 'Portolan', version: 'unversioned' }, paths: {} };

export function answerOpenApiV2(request: ApiRequest): HttpResponse {
  if (!request.headers['accept']?.includes('+protobuf')) return jsonResponse(document);
  return { status: 200, headers: { 'content-type': protobufType, vary: 'Accept' }, body: encoded() };
}

/** openapi.v2.Document: swagger is field 1, info is 2 (title 1, version 2), paths is 8. */
function encoded(): Uint8Array {
  const info = Buffer.concat([lengthed(1, document.info.title), lengthed(2, document.info.version)]);
  return Buffer.concat([lengthed(1, document.swagger), lengthed(2, info), lengthed(8, '')]);
}

function lengthed(field: number, value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Uint8Array.of((field << 3) | 2, bytes.length), bytes]);
}
