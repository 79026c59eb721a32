// The few messages of etcd's API that a journal needs, to and from bytes. Pure. Fields that are not read are skipped.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { WireReader } from '../../../base/protobuf/wire-reader.ts';

export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly modRevision: number;
}

export interface RangeAnswer {
  /** As text: it has more digits than a number keeps. */
  readonly clusterId: string;
  readonly revision: number;
  readonly entries: readonly KeyValue[];
  readonly hasMore: boolean;
}

export type Condition =
  | { readonly key: string; readonly createRevision: number }
  | { readonly key: string; readonly modRevision: number };

export type Operation =
  | { readonly put: string; readonly value: Uint8Array; readonly leaseId?: bigint }
  /** One key, or all from it up to, and without, `until`. */
  | { readonly remove: string; readonly until?: string };

export interface TxnRequest {
  readonly conditions: readonly Condition[];
  readonly operations: readonly Operation[];
}

export interface TxnAnswer {
  readonly clusterId: string;
  readonly revision: number;
  readonly hasSucceeded: boolean;
}

const text = new TextEncoder();

export function encodeRange(request: { key: string; until?: string; limit?: number }): Uint8Array {
  const writer = bytesField(new BinaryWriter(), 1, text.encode(request.key));
  if (request.until !== undefined) bytesField(writer, 2, text.encode(request.until));
  if (request.limit !== undefined) writer.tag(3, WireType.Varint).int64(request.limit);
  return writer.finish();
}

export function encodeTxn({ conditions, operations }: TxnRequest): Uint8Array {
  const writer = new BinaryWriter();
  for (const condition of conditions) nested(writer, 1, () => writeCondition(writer, condition));
  for (const operation of operations) nested(writer, 2, () => writeOperation(writer, operation));
  return writer.finish();
}

const targets = { create: 1, mod: 2 } as const;

function writeCondition(writer: BinaryWriter, condition: Condition): void {
  const isCreate = 'createRevision' in condition;
  writer.tag(2, WireType.Varint).int32(isCreate ? targets.create : targets.mod);
  bytesField(writer, 3, text.encode(condition.key));
  if (isCreate) writer.tag(5, WireType.Varint).int64(condition.createRevision);
  else writer.tag(6, WireType.Varint).int64(condition.modRevision);
}

function writeOperation(writer: BinaryWriter, operation: Operation): void {
  if ('put' in operation) {
    nested(writer, 2, () => {
      bytesField(writer, 1, text.encode(operation.put));
      bytesField(writer, 2, operation.value);
      if (operation.leaseId !== undefined) writer.tag(3, WireType.Varint).int64(operation.leaseId);
    });
    return;
  }
  nested(writer, 3, () => {
    bytesField(writer, 1, text.encode(operation.remove));
    if (operation.until !== undefined) bytesField(writer, 2, text.encode(operation.until));
  });
}

export function encodeCompaction(revision: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(revision).finish();
}

export function encodeLeaseGrant(seconds: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(seconds).finish();
}

/** Request of a keep-alive and of a revocation. */
export function encodeLeaseId(leaseId: bigint): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(leaseId).finish();
}

export function encodeAuthenticate(name: string, password: string): Uint8Array {
  const writer = bytesField(new BinaryWriter(), 1, text.encode(name));
  return bytesField(writer, 2, text.encode(password)).finish();
}

export function decodeRange(bytes: Uint8Array): RangeAnswer {
  const entries: KeyValue[] = [];
  let header = noHeader;
  let hasMore = false;
  eachField(new WireReader(bytes), (number, reader) => {
    if (number === 1) header = decodeHeader(reader.nested());
    else if (number === 2) entries.push(decodeKeyValue(reader.nested()));
    else if (number === 3) hasMore = reader.bool();
    else return false;
    return true;
  });
  return { ...header, entries, hasMore };
}

export function decodeTxn(bytes: Uint8Array): TxnAnswer {
  let header = noHeader;
  let hasSucceeded = false;
  eachField(new WireReader(bytes), (number, reader) => {
    if (number === 1) header = decodeHeader(reader.nested());
    else if (number === 2) hasSucceeded = reader.bool();
    else return false;
    return true;
  });
  return { ...header, hasSucceeded };
}

export interface Lease {
  readonly leaseId: bigint;
  /** 0: there is no such lease any more. */
  readonly seconds: number;
}

/** Answers to a grant and to a keep-alive have the same fields. */
export function decodeLease(bytes: Uint8Array): Lease {
  let leaseId = 0n;
  let seconds = 0;
  eachField(new WireReader(bytes), (number, reader) => {
    if (number === 2) leaseId = reader.bigint();
    else if (number === 3) seconds = reader.int64();
    else return false;
    return true;
  });
  return { leaseId, seconds };
}

export function decodeToken(bytes: Uint8Array): string {
  let token = '';
  eachField(new WireReader(bytes), (number, reader) => {
    if (number !== 2) return false;
    token = reader.string();
    return true;
  });
  return token;
}

const noHeader = { clusterId: '0', revision: 0 };

function decodeHeader(header: WireReader): typeof noHeader {
  let { clusterId, revision } = noHeader;
  eachField(header, (number, reader) => {
    if (number === 1) clusterId = String(reader.bigint());
    else if (number === 3) revision = reader.int64();
    else return false;
    return true;
  });
  return { clusterId, revision };
}

function decodeKeyValue(pair: WireReader): KeyValue {
  let key = '';
  let value: Uint8Array = new Uint8Array(0);
  let createRevision = 0;
  let modRevision = 0;
  eachField(pair, (number, reader) => {
    if (number === 1) key = reader.string();
    else if (number === 2) createRevision = reader.int64();
    else if (number === 3) modRevision = reader.int64();
    else if (number === 5) value = reader.slice();
    else return false;
    return true;
  });
  return { key, value, createRevision, modRevision };
}

/** `take` says whether it has read the field. */
function eachField(reader: WireReader, take: (number: number, reader: WireReader) => boolean): void {
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (!take(number, reader)) reader.skip(wireType);
  }
}

function nested(writer: BinaryWriter, number: number, write: () => void): void {
  writer.tag(number, WireType.LengthDelimited).fork();
  write();
  writer.join();
}

function bytesField(writer: BinaryWriter, number: number, value: Uint8Array): BinaryWriter {
  return writer.tag(number, WireType.LengthDelimited).bytes(value);
}
