// A flow from an entry of an Envoy's access log. What it says of the request is its status alone. Pure.

import { isObject, type JsonObject } from '../../base/json.ts';
import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { Flow } from '../../proxy/flows/flow.ts';

export interface EntryContext {
  /** Of the Envoy. */
  readonly node: string;
  /** The cluster of the Envoy. */
  readonly cluster: string;
  readonly logName: string;
  readonly serviceAt: (address: string) => string | undefined;
  readonly nowMs: number;
}

type Place = Pick<Flow, 'service' | 'cluster' | 'way'> & { readonly from?: string };

/** Undefined for what is no connection to a service that is known. */
export function flowOf(entry: JsonObject, context: EntryContext): Omit<Flow, 'id'> | undefined {
  const common = within(entry, 'common_properties');
  const [client, local] = [address(common, 'downstream_remote_address'), address(common, 'downstream_local_address')];
  const place = placeOf(common, local.ip, context);
  if (place === undefined) return undefined;
  const upstream = address(common, 'upstream_remote_address');
  const lastedMs = milliseconds(common['duration']) ?? milliseconds(common['time_to_last_downstream_tx_byte']) ?? 0;
  const startedMs = startOf(common) ?? context.nowMs - lastedMs;
  const status = statusOf(entry);
  const answeredAfterMs = milliseconds(common['time_to_first_upstream_rx_byte']);
  return {
    ...place,
    ...{ seenBy: 'envoy', node: context.node, protocol: 'tcp' },
    ...{ client: client.ip, clientPort: client.port, address: local.ip, port: local.port },
    ...{ endpoint: upstream.ip, endpointPort: upstream.port, outcome: outcomeOf(common, status, context.logName) },
    ...{ startedMs, endedMs: startedMs + lastedMs },
    ...(status === undefined ? {} : { status }),
    ...(answeredAfterMs === undefined ? {} : { answeredAfterMs }),
    ...bytesOf(entry, common),
  };
}

function placeOf(
  common: JsonObject,
  localIp: string,
  { logName, cluster, serviceAt }: EntryContext,
): Place | undefined {
  const tags = within(common, 'custom_tags');
  if (logName === 'near-side') {
    const service = serviceAt(localIp);
    const to = text(common['upstream_cluster']).replace(/^gateway\//, '');
    return service === undefined ? undefined : { service, cluster: to, way: 'gateway' };
  }
  if (logName === 'gateway') {
    const service = askedService(text(tags['asked']), serviceAt);
    const from = text(tags['from']);
    return service === undefined ? undefined : { service, cluster, way: 'gateway', ...(from === '' ? {} : { from }) };
  }
  const service = text(tags['service']);
  return service === '' ? undefined : { service, cluster: '', way: 'direct' };
}

const named = /^(?:[a-z0-9-]+\.)?([a-z0-9-]+)\.([a-z0-9-]+)\.svc\./;

/** An authority is an address or a name, and a port. */
function askedService(asked: string, serviceAt: EntryContext['serviceAt']): string | undefined {
  const host = asked.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  const [, name, namespace] = named.exec(host) ?? [];
  return name === undefined ? serviceAt(host) : `${namespace}/${name}`;
}

const unanswered = [
  'no_healthy_upstream',
  'upstream_request_timeout',
  'upstream_connection_failure',
  'upstream_retry_limit_exceeded',
  'no_cluster_found',
  'dns_resolution_failure',
  'upstream_overflow',
];

/** What the gateway does not allow is denied; an HTTP status of a service is an answer, whatever it says. */
function outcomeOf(common: JsonObject, status: number | undefined, logName: string): Flow['outcome'] {
  const flags = within(common, 'response_flags');
  if (logName === 'gateway' && (status === 403 || status === 404)) return 'denied';
  if (unanswered.some((flag) => flags[flag] === true)) return 'no-answer';
  return flags['upstream_remote_reset'] === true ? 'refused' : 'answered';
}

function statusOf(entry: JsonObject): number | undefined {
  const status = Number(within(entry, 'response')['response_code']);
  return Number.isInteger(status) && status >= 100 && status < 1000 ? status : undefined;
}

function bytesOf(entry: JsonObject, common: JsonObject): Pick<Flow, 'sent' | 'received'> {
  const connection = within(entry, 'connection_properties');
  const sent = size(connection['received_bytes']) || size(common['downstream_wire_bytes_received']);
  const received = size(connection['sent_bytes']) || size(common['downstream_wire_bytes_sent']);
  return { sent: { bytes: sent }, received: { bytes: received } };
}

function within(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isObject(value) ? (value as JsonObject) : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 300) : '';
}

function size(value: unknown): number {
  const number = Number(value ?? 0);
  return Number.isFinite(number) && number > 0 ? number : 0;
}

function address(common: JsonObject, name: string): { readonly ip: string; readonly port: number } {
  const socket = within(within(common, name), 'socket_address');
  const ip = parseIp(text(socket['address']));
  return { ip: ip === undefined ? '' : formatIp(ip), port: size(socket['port_value']) };
}

function milliseconds(value: unknown): number | undefined {
  const seconds = Number(/^(\d+(?:\.\d+)?)s$/.exec(text(value))?.[1] ?? Number.NaN);
  return Number.isFinite(seconds) ? Math.round(seconds * 1_000_000) / 1000 : undefined;
}

function startOf(common: JsonObject): number | undefined {
  const { seconds, nanos } = within(common, 'start_time');
  const atMs = Number(seconds) * 1000 + Math.floor(size(nanos) / 1_000_000);
  return Number.isSafeInteger(atMs) && atMs > 0 ? atMs : undefined;
}
