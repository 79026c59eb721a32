// Names of endpoints that have no entry of their own: `<dashed address>.<cluster>.<service>` is found by reading the address
// sets of the service, and `<cluster>.<service>` exists while an endpoint of that cluster does.

import { recordType } from '../../base/dns/codes.ts';
import { dashedAddress, dashedGroups, hashBytes } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import {
  endpointsMark,
  endpointsType,
  findSet,
  recordHeaderBytes,
  setHeaderBytes,
} from '../../catalog/names/answers.ts';
import type { CatalogReader } from './reader.ts';

/** There is no such name. */
export const noHost = -1;
/** A cluster with endpoints: the name exists and has no records. */
export const emptyHost = 0;

/** `<service>.<namespace>.svc` */
const serviceLabels = 3;
const setTypes = [recordType.A, recordType.AAAA, endpointsType] as const;

/**
 * Where the packed record of the endpoint lies in the catalog's bytes, or one of the two above. `apexBytes` is the length of
 * the zone's name.
 */
export function findHost(reader: CatalogReader, name: Uint8Array, length: number, apexBytes: number): number {
  const serviceAt = startOfService(name, length - apexBytes);
  if (serviceAt <= 0) return noHost;
  const service = name.subarray(serviceAt, length);
  const entry = reader.names.find(service, service.length, hashBytes(service, 0, service.length));
  if (entry < 0) return noHost;
  const start = reader.names.valueStart(entry);
  const size = reader.names.valueLength(entry);
  const address = addressIn(name);
  let found = noHost;
  for (const type of setTypes) {
    const setAt = findSet(reader.names.bytes, start, size, type);
    if (setAt < 0 || (type !== endpointsType && (reader.names.bytes[setAt + 2]! & endpointsMark) === 0)) continue;
    const host = hostInSet(reader, setAt, name.subarray(0, serviceAt), address);
    if (host > emptyHost) return host;
    found = Math.max(found, host);
  }
  return found;
}

/** Where the last three labels before the zone begin; -1 if there are not so many. */
function startOfService(name: Uint8Array, end: number): number {
  let labels = 0;
  for (let at = 0; at < end; at += name[at]! + 1) labels += 1;
  let at = 0;
  for (let skip = labels - serviceLabels; skip > 0; skip--) at += name[at]! + 1;
  return labels > serviceLabels ? at : -1;
}

/** The address that a first label stands for, in one of the two forms that endpoints' names have. */
function addressIn(name: Uint8Array): Uint8Array | undefined {
  const label = Buffer.from(name.subarray(1, 1 + name[0]!)).toString('latin1');
  const address = parseAddress(label.replaceAll('-', '.')) ?? parseAddress(label.replaceAll('-', ':'));
  if (!address) return undefined;
  return label === dashedAddress(address) || label === dashedGroups(address) ? address : undefined;
}

/** Records of one cluster lie together. */
function hostInSet(reader: CatalogReader, setAt: number, prefix: Uint8Array, address: Uint8Array | undefined): number {
  const { bytes } = reader.names;
  const count = (bytes[setAt + 3]! << 8) | bytes[setAt + 4]!;
  const behindLabel = prefix.subarray(1 + prefix[0]!);
  let found = noHost;
  let last = -1;
  let isOfAddress = false;
  for (let i = 0, record = setAt + setHeaderBytes; i < count; i++) {
    const cluster = (bytes[record]! << 8) | bytes[record + 1]!;
    if (cluster !== last) {
      const labels = reader.places.labelsOf(cluster);
      if (labels && isSame(labels, prefix)) found = emptyHost;
      isOfAddress = labels !== undefined && isSame(labels, behindLabel);
      last = cluster;
    }
    const size = (bytes[record + 3]! << 8) | bytes[record + 4]!;
    if (isOfAddress && address?.length === size && holds(bytes, record + recordHeaderBytes, address)) return record;
    record += recordHeaderBytes + size;
  }
  return found;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && holds(b, 0, a);
}

function holds(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  for (let i = 0; i < part.length; i++) if (bytes[at + i] !== part[i]) return false;
  return true;
}

/** Writes the first label of an endpoint's name; returns its end. */
export function writeHostLabel(target: Uint8Array, bytes: Uint8Array, start: number, size: number): number {
  const label = dashedAddress(bytes.subarray(start, start + size));
  target[0] = label.length;
  for (let i = 0; i < label.length; i++) target[1 + i] = label.charCodeAt(i);
  return 1 + label.length;
}
