// The entries of a message of Envoy's access log service, one by one, from untrusted bytes. An entry that nobody wants is counted
// without being decoded. Pure.

import type { JsonObject } from '../../base/json.ts';
import { decodeMessage } from '../../base/protobuf/decode.ts';
import { WireReader, wireTypes } from '../../base/protobuf/wire-reader.ts';
import { envoySchema } from '../envoy-schema.ts';

export interface LogIdentifier {
  readonly nodeId: string;
  readonly logName: string;
}

export interface LogEntry {
  readonly kind: 'http' | 'tcp';
  /** Throws MalformedError. */
  decode(): JsonObject;
}

export interface LogMessage {
  /** In the first message of a stream. */
  readonly identifier?: LogIdentifier;
  readonly entries: readonly LogEntry[];
}

const service = 'envoy.service.accesslog.v3.StreamAccessLogsMessage';
const data = 'envoy.data.accesslog.v3';
const kinds: Readonly<Record<number, LogEntry['kind']>> = { 2: 'http', 3: 'tcp' };
const messageOf = { http: `${data}.HTTPAccessLogEntry`, tcp: `${data}.TCPAccessLogEntry` } as const;
const valuesMax = 400_000;

/** Throws MalformedError. */
export function readLogMessage(bytes: Uint8Array): LogMessage {
  const reader = new WireReader(bytes, { valuesMax });
  const entries: LogEntry[] = [];
  let identifier: LogIdentifier | undefined;
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    const kind = kinds[number];
    if (wireType !== wireTypes.bytes || (number !== 1 && kind === undefined)) reader.skip(wireType);
    else if (kind === undefined) identifier = identifierIn(reader.nested());
    else entries.push(...entriesIn(reader.nested(), kind));
  }
  return { entries, ...(identifier === undefined ? {} : { identifier }) };
}

function identifierIn(reader: WireReader): LogIdentifier {
  const { node, log_name } = decodeMessage(envoySchema, `${service}.Identifier`, reader);
  return { nodeId: String((node as JsonObject | undefined)?.['id'] ?? ''), logName: String(log_name ?? '') };
}

function entriesIn(reader: WireReader, kind: LogEntry['kind']): LogEntry[] {
  const entries: LogEntry[] = [];
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number !== 1 || wireType !== wireTypes.bytes) {
      reader.skip(wireType);
      continue;
    }
    const entry = reader.nested();
    entries.push({ kind, decode: () => decodeMessage(envoySchema, messageOf[kind], entry) as JsonObject });
  }
  return entries;
}
