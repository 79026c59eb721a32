// What is inside a sealed record: a ServiceShard or an EndpointShard. No API server has checked it against a definition, so
// every field is checked here, with the limits of the definitions. Pure.

import { isIP } from 'node:net';
import { isObject, type JsonObject } from '../../../base/json.ts';
import {
  type EndpointSlice,
  importedServiceNameLabel,
  sliceManagedByLabel,
} from '../../../kube/objects/endpoint-slice.ts';
import { endpointShardType } from '../../kinds/endpoint-shard.ts';
import { type ServiceShard, serviceShardType } from '../../kinds/service-shard.ts';
import { parseRecordName } from '../names.ts';

/** Without what the broker adds. */
export type PlainRecord =
  | ({ readonly kind: 'ServiceShard'; readonly metadata: { readonly name: string } } & Pick<ServiceShard, 'spec'>)
  | ({
      readonly kind: 'EndpointShard';
      readonly metadata: { readonly name: string; readonly labels: Record<string, string> };
    } & Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'>);

/** Undefined if it is none, or has a field that no definition would let pass. */
export function decodeRecord(text: string): PlainRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const isFine = value['kind'] === serviceShardType.kind ? isShard(value) : isSlice(value);
  return isFine ? (value as unknown as PlainRecord) : undefined;
}

export function plainShard({ metadata, spec }: ServiceShard): PlainRecord {
  return { kind: 'ServiceShard', metadata: { name: metadata.name }, spec };
}

export function plainSlice({ metadata, addressType, endpoints, ports }: EndpointSlice): PlainRecord {
  const { name, labels = {} } = metadata;
  return { kind: 'EndpointShard', metadata: { name, labels }, addressType, endpoints, ports };
}

type Check = (value: unknown) => boolean;

const text =
  (lengthMax: number): Check =>
  (value) =>
    typeof value === 'string' && value.length <= lengthMax;
const oneOf =
  (...words: string[]): Check =>
  (value) =>
    typeof value === 'string' && words.includes(value);
const whole =
  (min: number, max: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
const list =
  (itemsMax: number, item: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length <= itemsMax && value.every(item);
const map =
  (itemsMax: number, item: Check): Check =>
  (value) =>
    isObject(value) && Object.keys(value).length <= itemsMax && Object.values(value).every(item);
const yesOrNo: Check = (value) => typeof value === 'boolean';
const address: Check = (value) => typeof value === 'string' && isIP(value) !== 0;

/** Fields that are there are checked; unknown ones are of a later release and are not read. */
const fields =
  (checks: Readonly<Record<string, Check>>, required: readonly string[] = []): Check =>
  (value) =>
    isObject(value) &&
    required.every((name) => value[name] !== undefined) &&
    Object.entries(checks).every(([name, check]) => value[name] === undefined || check(value[name]));

const protocol = oneOf('TCP', 'UDP', 'SCTP');
const portFields = { name: text(63), protocol, appProtocol: text(253) };
const noDuplicates: Check = (value) => {
  const ports = value as { protocol?: string; port: number }[];
  return new Set(ports.map((one) => `${one.protocol ?? 'TCP'}/${one.port}`)).size === ports.length;
};

const shardPorts = list(1000, fields({ ...portFields, port: whole(1, 65_535) }, ['port']));
const shardSpec = fields(
  {
    type: oneOf('ClusterSetIP', 'Headless'),
    exportedAt: text(64),
    ports: (value) => shardPorts(value) && noDuplicates(value),
    sessionAffinity: oneOf('None', 'ClientIP'),
    sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: whole(1, 86_400) }) }),
    internalTrafficPolicy: oneOf('Cluster', 'Local'),
    trafficDistribution: text(253),
    publishNotReadyAddresses: yesOrNo,
    exportedLabels: map(256, text(63)),
    exportedAnnotations: map(256, text(262_144)),
    ipFamilies: list(2, oneOf('IPv4', 'IPv6')),
    clusterIPs: list(2, address),
    localIPs: list(16, address),
    loadBalancer: list(64, fields({ ip: address, hostname: text(253) })),
    clusterSetIPs: list(2, address),
    readyEndpoints: whole(0, 2 ** 31 - 1),
    exportTo: list(1000, text(253)),
    draining: yesOrNo,
    share: whole(1, 99),
    endpointShards: whole(0, 2 ** 31 - 1),
    onStale: oneOf('Withdraw', 'NotReady', 'Keep'),
  },
  ['type', 'exportedAt'],
);

const hostname: Check = (value) => typeof value === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
const endpoint = fields(
  {
    addresses: (value) => list(100, address)(value) && (value as unknown[]).length > 0,
    conditions: fields({ ready: yesOrNo, serving: yesOrNo, terminating: yesOrNo }),
    hostname,
    zone: text(253),
  },
  ['addresses'],
);
const sliceFields = fields(
  {
    addressType: oneOf('IPv4', 'IPv6'),
    endpoints: list(1000, endpoint),
    ports: list(20_000, fields({ ...portFields, port: whole(0, 65_535) })),
  },
  ['addressType', 'endpoints'],
);

const serviceNamespaceLabel = 'portolan.dev/service-namespace';
const label: Check = (value) => typeof value === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
const sliceMetadata = fields(
  {
    name: text(253),
    labels: fields(
      { [importedServiceNameLabel]: label, [serviceNamespaceLabel]: label, [sliceManagedByLabel]: text(63) },
      [importedServiceNameLabel, serviceNamespaceLabel],
    ),
  },
  ['name', 'labels'],
);

function isShard({ metadata, spec }: JsonObject): boolean {
  const name = isObject(metadata) ? metadata['name'] : undefined;
  const service = typeof name === 'string' ? parseRecordName(name) : undefined;
  return service !== undefined && label(service.name) && label(service.namespace) && shardSpec(spec);
}

function isSlice(value: JsonObject): boolean {
  return value['kind'] === endpointShardType.kind && sliceMetadata(value['metadata']) && sliceFields(value);
}
