// What an Envoy tells its discovery server of each connection or request, when it has ended: by the cluster that its bootstrap
// names. Tags say what the addresses do not. No header and no path is asked for, but at gateways the authority of a CONNECT. Pure.

import type { JsonObject } from '../../base/json.ts';
import { typed } from '../bodies.ts';
import { serverCluster } from '../identity/bootstrap.ts';

/** Where in a path it is written; the reader takes its fields accordingly. */
type LogName = 'near-side' | 'gateway' | 'sidecar' | 'external';

/** Tags: `service` is `namespace/name`, `from` the cluster of the caller, `asked` the authority of a CONNECT. */
export interface AccessLogTags {
  readonly service?: string;
  readonly from?: string;
}

/** Waiting in an Envoy for its server; what does not fit is dropped and counted there. */
const bufferBytes = 65_536;

export function tcpLog(name: LogName, tags: AccessLogTags = {}): JsonObject {
  return logTo('TcpGrpcAccessLogConfig', common(name, literals(tags)));
}

export function httpLog(name: LogName, tags: AccessLogTags = {}): JsonObject {
  const asked = name === 'gateway' ? [{ tag: 'asked', request_header: { name: ':authority' } }] : [];
  const log = logTo('HttpGrpcAccessLogConfig', common(name, [...literals(tags), ...asked]));
  // Nodes ask gateways all the time whether they live.
  return { ...log, filter: { not_health_check_filter: {} } };
}

function logTo(message: string, common_config: JsonObject): JsonObject {
  return { name: 'flows', typed_config: typed(`access_loggers.grpc.v3.${message}`, { common_config }) };
}

function common(name: LogName, custom_tags: JsonObject[]): JsonObject {
  return {
    log_name: name,
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: serverCluster } },
    buffer_flush_interval: '1s',
    buffer_size_bytes: bufferBytes,
    ...(custom_tags.length === 0 ? {} : { custom_tags }),
  };
}

function literals(tags: AccessLogTags): JsonObject[] {
  return Object.entries(tags).map(([tag, value]) => ({ tag, literal: { value: String(value) } }));
}
