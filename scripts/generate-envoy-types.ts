// Writes src/gen/envoy-types.ts: names, numbers and types of the fields of the Envoy messages that we send and read,
// from the .proto files that @grpc/grpc-js-xds ships. Facts only, no text. A message that is not listed below does not
// exist for our encoder, nor does a field of its type.
// Run: node scripts/generate-envoy-types.ts

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import protobuf from 'protobufjs';

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve('@grpc/grpc-js-xds/package.json'));
const roots = ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(folder, 'deps', name));
/** Has Google's own types. */
roots.push('node_modules/protobufjs');

/** Each file, and the messages of its package that are wanted. */
const wanted: readonly (readonly [file: string, messages: string])[] = [
  [
    'envoy/service/discovery/v3/discovery.proto',
    'DiscoveryRequest DiscoveryResponse DeltaDiscoveryRequest DeltaDiscoveryResponse Resource',
  ],
  ['google/rpc/status.proto', 'Status'],
  [
    'envoy/config/core/v3/base.proto',
    'Node Locality Metadata DataSource TransportSocket HeaderValue HeaderValueOption BuildVersion RuntimeFractionalPercent RuntimeDouble',
  ],
  ['envoy/type/v3/semantic_version.proto', 'SemanticVersion'],
  ['envoy/type/v3/percent.proto', 'Percent FractionalPercent'],
  ['envoy/type/v3/range.proto', 'Int32Range Int64Range'],
  [
    'envoy/config/core/v3/address.proto',
    'Address SocketAddress Pipe CidrRange BindConfig TcpKeepalive EnvoyInternalAddress ExtraSourceAddress',
  ],
  [
    'envoy/config/core/v3/config_source.proto',
    'ConfigSource AggregatedConfigSource SelfConfigSource ApiConfigSource PathConfigSource',
  ],
  ['envoy/config/core/v3/grpc_service.proto', 'GrpcService GrpcService.EnvoyGrpc'],
  ['envoy/config/core/v3/extension.proto', 'TypedExtensionConfig'],
  ['envoy/config/core/v3/backoff.proto', 'BackoffStrategy'],
  [
    'envoy/config/core/v3/protocol.proto',
    'Http1ProtocolOptions Http2ProtocolOptions HttpProtocolOptions UpstreamHttpProtocolOptions TcpProtocolOptions KeepaliveSettings',
  ],
  ['envoy/config/core/v3/health_check.proto', 'HealthStatusSet HealthCheck HealthCheck.HttpHealthCheck'],
  [
    'envoy/config/cluster/v3/cluster.proto',
    'Cluster Cluster.EdsClusterConfig Cluster.LbSubsetConfig Cluster.LbSubsetConfig.LbSubsetSelector Cluster.TransportSocketMatch Cluster.CommonLbConfig Cluster.CommonLbConfig.LocalityWeightedLbConfig Cluster.OriginalDstLbConfig UpstreamConnectionOptions LoadBalancingPolicy LoadBalancingPolicy.Policy',
  ],
  ['envoy/config/cluster/v3/circuit_breaker.proto', 'CircuitBreakers CircuitBreakers.Thresholds'],
  ['envoy/config/cluster/v3/outlier_detection.proto', 'OutlierDetection'],
  ['envoy/config/endpoint/v3/endpoint.proto', 'ClusterLoadAssignment ClusterLoadAssignment.Policy'],
  [
    'envoy/config/endpoint/v3/endpoint_components.proto',
    'Endpoint Endpoint.HealthCheckConfig LbEndpoint LocalityLbEndpoints',
  ],
  ['envoy/config/listener/v3/listener.proto', 'Listener Listener.InternalListenerConfig AdditionalAddress'],
  ['envoy/config/listener/v3/api_listener.proto', 'ApiListener'],
  ['envoy/config/listener/v3/udp_listener_config.proto', 'UdpListenerConfig'],
  ['envoy/config/core/v3/udp_socket_config.proto', 'UdpSocketConfig'],
  [
    'envoy/config/listener/v3/listener_components.proto',
    'Filter FilterChain FilterChainMatch ListenerFilter ListenerFilterChainMatchPredicate ListenerFilterChainMatchPredicate.MatchSet',
  ],
  ['envoy/config/route/v3/route.proto', 'RouteConfiguration Vhds'],
  [
    'envoy/config/route/v3/route_components.proto',
    'VirtualHost Route RouteMatch RouteMatch.ConnectMatcher RouteAction RouteAction.UpgradeConfig RouteAction.UpgradeConfig.ConnectConfig WeightedCluster WeightedCluster.ClusterWeight HeaderMatcher DirectResponseAction RedirectAction RetryPolicy RetryPolicy.RetryBackOff RetryPolicy.RetryHostPredicate FilterConfig',
  ],
  ['envoy/type/matcher/v3/string.proto', 'StringMatcher ListStringMatcher'],
  ['envoy/type/matcher/v3/regex.proto', 'RegexMatcher RegexMatcher.GoogleRE2'],
  ['envoy/config/common/mutation_rules/v3/mutation_rules.proto', 'HeaderMutation'],
  [
    'envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto',
    'HttpConnectionManager HttpConnectionManager.UpgradeConfig HttpFilter Rds',
  ],
  ['envoy/extensions/filters/http/router/v3/router.proto', 'Router'],
  ['envoy/extensions/filters/http/aws_lambda/v3/aws_lambda.proto', 'Config PerRouteConfig Credentials'],
  [
    'envoy/extensions/filters/http/header_mutation/v3/header_mutation.proto',
    'Mutations HeaderMutation HeaderMutationPerRoute',
  ],
  [
    'envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto',
    'TcpProxy TcpProxy.WeightedCluster TcpProxy.WeightedCluster.ClusterWeight TcpProxy.OnDemand TcpProxy.TunnelingConfig',
  ],
  ['envoy/extensions/filters/network/set_filter_state/v3/set_filter_state.proto', 'Config'],
  ['envoy/extensions/filters/http/set_filter_state/v3/set_filter_state.proto', 'Config'],
  ['envoy/extensions/filters/common/set_filter_state/v3/value.proto', 'FilterStateValue'],
  ['envoy/config/rbac/v3/rbac.proto', 'RBAC Policy Permission Principal Principal.Authenticated'],
  ['envoy/extensions/filters/http/rbac/v3/rbac.proto', 'RBAC RBACPerRoute'],
  ['envoy/extensions/filters/http/health_check/v3/health_check.proto', 'HealthCheck'],
  ['envoy/config/core/v3/substitution_format_string.proto', 'SubstitutionFormatString'],
  ['envoy/extensions/filters/network/connection_limit/v3/connection_limit.proto', 'ConnectionLimit'],
  [
    'envoy/extensions/filters/udp/udp_proxy/v3/udp_proxy.proto',
    'UdpProxyConfig UdpProxyConfig.SessionFilter UdpProxyConfig.UdpTunnelingConfig UdpProxyConfig.UdpTunnelingConfig.BufferOptions UdpProxyConfig.UdpTunnelingConfig.RetryOptions',
  ],
  ['envoy/extensions/filters/udp/udp_proxy/v3/route.proto', 'Route'],
  ['envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.proto', 'PreviousHostsPredicate'],
  ['envoy/extensions/filters/udp/udp_proxy/session/http_capsule/v3/http_capsule.proto', 'FilterConfig'],
  ['envoy/extensions/filters/listener/original_dst/v3/original_dst.proto', 'OriginalDst'],
  ['envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto', 'TlsInspector'],
  ['envoy/extensions/filters/listener/http_inspector/v3/http_inspector.proto', 'HttpInspector'],
  ['envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation.proto', 'HeaderMutation'],
  [
    'envoy/extensions/matching/common_inputs/network/v3/network_inputs.proto',
    'DestinationIPInput DestinationPortInput ServerNameInput TransportProtocolInput ApplicationProtocolInput SourceIPInput FilterStateInput',
  ],
  [
    'envoy/extensions/transport_sockets/tls/v3/tls.proto',
    'UpstreamTlsContext DownstreamTlsContext CommonTlsContext CommonTlsContext.CombinedCertificateValidationContext',
  ],
  [
    'envoy/extensions/transport_sockets/tls/v3/common.proto',
    'TlsParameters TlsCertificate CertificateValidationContext SubjectAltNameMatcher',
  ],
  ['envoy/extensions/transport_sockets/tls/v3/secret.proto', 'Secret SdsSecretConfig'],
  [
    'envoy/extensions/transport_sockets/tls/v3/tls_spiffe_validator_config.proto',
    'SPIFFECertValidatorConfig SPIFFECertValidatorConfig.TrustDomain',
  ],
  [
    'envoy/extensions/upstreams/http/v3/http_protocol_options.proto',
    'HttpProtocolOptions HttpProtocolOptions.ExplicitHttpConfig HttpProtocolOptions.UseDownstreamHttpConfig',
  ],
  ['envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.proto', 'RoundRobin'],
  [
    'xds/type/matcher/v3/matcher.proto',
    'Matcher Matcher.OnMatch Matcher.MatcherTree Matcher.MatcherTree.MatchMap Matcher.MatcherList Matcher.MatcherList.FieldMatcher Matcher.MatcherList.Predicate Matcher.MatcherList.Predicate.SinglePredicate Matcher.MatcherList.Predicate.PredicateList',
  ],
  ['xds/type/matcher/v3/string.proto', 'StringMatcher'],
  ['xds/type/matcher/v3/ip.proto', 'IPMatcher IPMatcher.IPRangeMatcher'],
  ['xds/type/matcher/v3/domain.proto', 'ServerNameMatcher ServerNameMatcher.DomainMatcher'],
  ['xds/core/v3/cidr.proto', 'CidrRange'],
  ['xds/core/v3/extension.proto', 'TypedExtensionConfig'],
  ['envoy/config/accesslog/v3/accesslog.proto', 'AccessLog AccessLogFilter NotHealthCheckFilter'],
  [
    'envoy/extensions/access_loggers/grpc/v3/als.proto',
    'TcpGrpcAccessLogConfig HttpGrpcAccessLogConfig CommonGrpcAccessLogConfig',
  ],
  ['envoy/type/tracing/v3/custom_tag.proto', 'CustomTag CustomTag.Literal CustomTag.Header'],
  // What was asked for by path and headers is no part of it: those are never read.
  [
    'envoy/data/accesslog/v3/accesslog.proto',
    'TCPAccessLogEntry HTTPAccessLogEntry ConnectionProperties AccessLogCommon ResponseFlags HTTPResponseProperties',
  ],
  ['envoy/service/accesslog/v3/als.proto', 'StreamAccessLogsMessage.Identifier'],
  ['google/protobuf/timestamp.proto', 'Timestamp'],
];

const connectMode = 'envoy.extensions.filters.network.tcp_proxy.v3.UpstreamConnectMode';

/** Fields that Envoy 1.40 has and the shipped files are too old to know. */
const later: Readonly<Record<string, string>> = {
  'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext': 'auto_host_sni 6 bool;auto_sni_san_validation 7 bool',
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy': `backoff_options 18 envoy.config.core.v3.BackoffStrategy;upstream_connect_mode 21 enum ${connectMode};max_early_data_bytes 22 google.protobuf.UInt32Value`,
  'envoy.extensions.filters.network.set_filter_state.v3.Config':
    'on_downstream_tls_handshake 2 list envoy.extensions.filters.common.set_filter_state.v3.FilterStateValue',
};

/** Messages and enums that they lack altogether. */
const laterMessages: readonly (readonly [string, string])[] = [
  [
    'envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport',
    'transport_socket 3 envoy.config.core.v3.TransportSocket',
  ],
  ['envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer', ''],
];
const laterEnums: readonly (readonly [string, string])[] = [
  [connectMode, 'IMMEDIATE 0;ON_DOWNSTREAM_DATA 1;ON_DOWNSTREAM_TLS_HANDSHAKE 2'],
];

/** Google's own types; our encoder knows their form in JSON. */
const wellKnown = [
  'Any',
  'Duration',
  'Struct',
  'Empty',
  'BoolValue',
  'StringValue',
  'UInt32Value',
  'UInt64Value',
  'DoubleValue',
];

function main(): void {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => {
    const found = roots.map((one) => join(one, target)).find((path) => existsSync(path));
    return found ?? target;
  };
  // As the files write them: field names keep their underscores.
  root.loadSync(
    wanted.map(([file]) => file),
    { keepCase: true },
  );
  root.resolveAll();
  const types = new Map<string, protobuf.Type>();
  for (const [file, names] of wanted) {
    const prefix = file.slice(0, file.lastIndexOf('/')).replaceAll('/', '.');
    for (const name of names.split(' ')) types.set(`${prefix}.${name}`, find(root, `${prefix}.${name}`, file));
  }
  const enums = new Map<string, protobuf.Enum>();
  const messages = [...types]
    .map(([name, type]) => [name, withLater(name, printMessage(type, types, enums))] as const)
    .concat(laterMessages)
    .sort(byName);
  const values = [...enums]
    .map(([name, { values: known }]) => [name, printEnum(known)] as const)
    .concat(laterEnums)
    .sort(byName);
  writeFileSync('src/gen/envoy-types.ts', print(messages, values));
  console.log(`${messages.length} messages, ${values.length} enums`);
}

function find(root: protobuf.Root, name: string, file: string): protobuf.Type {
  const found = root.lookup(name);
  if (!(found instanceof protobuf.Type)) throw new Error(`${file} has no message ${name}`);
  return found;
}

function withLater(name: string, line: string): string {
  return later[name] === undefined ? line : `${line};${later[name]}`;
}

function byName(one: readonly [string, unknown], other: readonly [string, unknown]): number {
  return one[0] < other[0] ? -1 : 1;
}

function printMessage(
  type: protobuf.Type,
  types: ReadonlyMap<string, protobuf.Type>,
  enums: Map<string, protobuf.Enum>,
): string {
  const fields = [...type.fieldsArray].sort((one, other) => one.id - other.id);
  return fields
    .map((field) => ({ field, kind: kindOf(field, types, enums) }))
    .filter(({ kind }) => kind !== undefined)
    .map(({ field, kind }) => `${field.name} ${field.id} ${shapeOf(field, kind!)}`)
    .join(';');
}

function kindOf(
  field: protobuf.Field,
  types: ReadonlyMap<string, protobuf.Type>,
  enums: Map<string, protobuf.Enum>,
): string | undefined {
  const { resolvedType } = field;
  if (resolvedType === null) return field.type;
  const name = resolvedType.fullName.replace(/^\./, '');
  if (resolvedType instanceof protobuf.Enum) {
    enums.set(name, resolvedType);
    return `enum ${name}`;
  }
  const isWellKnown = wellKnown.some((known) => name === `google.protobuf.${known}`);
  return types.has(name) || isWellKnown ? name : undefined;
}

function shapeOf(field: protobuf.Field, kind: string): string {
  if (field.map) return `map ${kind}`;
  return field.repeated ? `list ${kind}` : kind;
}

function printEnum(values: Readonly<Record<string, number>>): string {
  return Object.entries(values)
    .sort(([, one], [, other]) => one - other)
    .map(([name, number]) => `${name} ${number}`)
    .join(';');
}

function print(
  messages: readonly (readonly [string, string])[],
  enums: readonly (readonly [string, string])[],
): string {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  const lines = (entries: readonly (readonly [string, string])[]) =>
    entries.map(([name, line]) => `  '${name}': '${line}',`);
  return [
    `// Generated by scripts/generate-envoy-types.ts from the .proto files in @grpc/grpc-js-xds ${version}; do not edit.`,
    '// The form of a line is described, and read, in src/base/protobuf/schema.ts.',
    '',
    'export const messages: Readonly<Record<string, string>> = {',
    ...lines(messages),
    '};',
    '',
    'export const enums: Readonly<Record<string, string>> = {',
    ...lines(enums),
    '};',
    '',
  ].join('\n');
}

main();
