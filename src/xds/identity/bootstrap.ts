// The configuration that a proxy starts with: who it is and where its discovery server is. Everything else comes over
// the stream. JSON, because Envoy's YAML reads a bare `n` as false. Pure.

import { isIP } from 'node:net';
import { dirname } from 'node:path';
import { type JsonObject, valueIn } from '../../base/json.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { xdsServerName } from './authority.ts';
import { identityReference, tlsChannel } from './proxy-files.ts';
import { formatNodeId, type ProxyIdentity } from './proxy-identity.ts';

/** Where the discovery server listens, as seen from the proxy. */
export type ServerAddress =
  | { readonly kind: 'socket'; readonly path: string }
  | {
      readonly kind: 'tls';
      readonly host: string;
      readonly port: number;
      /** PEM: the roots of the server. */
      readonly authority: string;
      /** The proxy's own certificate and key, or the path of a file that somebody renews, with those of gRPC clients beside it. */
      readonly identity: Credentials | { readonly file: string };
    };

export interface BootstrapOptions {
  readonly identity: ProxyIdentity;
  readonly server: ServerAddress;
  readonly zone: string;
  readonly region: string;
  readonly variant: 'delta' | 'sotw';
  readonly admin: { readonly host: string; readonly port: number };
  /** The sidecar takes connections to clusterset addresses itself. */
  readonly isClustersetProxied: boolean;
}

export const serverCluster = 'portolan-xds';
/** Envoy takes listeners inside only with this. */
const internalListeners = {
  name: 'envoy.bootstrap.internal_listener',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener' },
};

/**
 * At a gateway a stream is a client's connection, which may be short, and others share the HTTP/2 connection. Both codecs of Envoy
 * close that connection, with all streams on it, for many short streams: nghttp2 for more than 33 resets a second after the first
 * thousand, which cannot be set, and Envoy itself when more than half of 500 streams lived less than a second, which can.
 */
const shortStreams = {
  layers: [
    {
      name: 'portolan',
      static_layer: {
        'envoy.reloadable_features.http2_use_oghttp2': true,
        'overload.premature_reset_total_stream_count': 4_294_967_295,
      },
    },
  ],
};

export function envoyBootstrap(options: BootstrapOptions): JsonObject {
  const { admin, variant } = options;
  const overAds = { ads: {}, resource_api_version: 'V3' };
  return {
    node: nodeOf(options),
    bootstrap_extensions: [internalListeners],
    ...(options.identity.role === 'gateway' && { layered_runtime: shortStreams }),
    admin: { address: { socket_address: { address: admin.host, port_value: admin.port } } },
    dynamic_resources: {
      ads_config: {
        api_type: variant === 'delta' ? 'DELTA_GRPC' : 'GRPC',
        transport_api_version: 'V3',
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: serverCluster } }],
      },
      cds_config: overAds,
      lds_config: overAds,
    },
    static_resources: { clusters: [serverClusterOf(options.server)] },
  };
}

/** The GRPC_XDS_BOOTSTRAP file of a gRPC client without a proxy. */
export function grpcBootstrap(options: BootstrapOptions): JsonObject {
  const { server } = options;
  const server_uri = server.kind === 'socket' ? `unix:${server.path}` : addressOf(server.host, server.port);
  const xdsServer = { server_uri, channel_creds: [channelTo(server)], server_features: ['xds_v3'] };
  return { xds_servers: [xdsServer], node: nodeOf(options) };
}

function channelTo(server: ServerAddress): JsonObject {
  if (server.kind === 'socket') return { type: 'insecure' };
  if (!('file' in server.identity)) throw new Error('a gRPC client reads its certificate from files');
  return tlsChannel(dirname(server.identity.file));
}

function addressOf(host: string, port: number | string): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function nodeOf({ identity, zone, region, isClustersetProxied }: BootstrapOptions): JsonObject {
  return {
    id: formatNodeId(identity),
    cluster: identity.cluster,
    locality: { region, zone },
    metadata: isClustersetProxied ? { clusterset: 'proxied' } : {},
  };
}

function serverClusterOf(server: ServerAddress): JsonObject {
  const isNamed = server.kind === 'tls' && isIP(server.host) === 0;
  const address =
    server.kind === 'socket'
      ? { pipe: { path: server.path } }
      : { socket_address: { address: server.host, port_value: server.port } };
  return {
    name: serverCluster,
    type: isNamed ? 'STRICT_DNS' : 'STATIC',
    connect_timeout: '5s',
    load_assignment: { cluster_name: serverCluster, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: {
          http2_protocol_options: { connection_keepalive: { interval: '30s', timeout: '10s' } },
        },
      },
    },
    ...(server.kind === 'tls' ? { transport_socket: tlsTo(server) } : {}),
  };
}

function tlsTo({ authority, identity }: Extract<ServerAddress, { kind: 'tls' }>): JsonObject {
  const own =
    'file' in identity
      ? { tls_certificate_sds_secret_configs: [identityReference(identity.file)] }
      : {
          tls_certificates: [
            {
              certificate_chain: { inline_string: identity.certificate },
              private_key: { inline_string: identity.key },
            },
          ],
        };
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      sni: xdsServerName,
      common_tls_context: {
        alpn_protocols: ['h2'],
        tls_params: { tls_minimum_protocol_version: 'TLSv1_2', tls_maximum_protocol_version: 'TLSv1_3' },
        ...own,
        validation_context: {
          trusted_ca: { inline_string: authority },
          match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: xdsServerName } }],
        },
      },
    },
  };
}

/** Where the discovery server of a written bootstrap is, and its roots; undefined if it has none with TLS. */
export function serverIn(text: string): { readonly address: string; readonly authority: string } | undefined {
  const cluster = ['static_resources', 'clusters', 0];
  const endpoint = ['load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address', 'socket_address'];
  const context = ['transport_socket', 'typed_config', 'common_tls_context', 'validation_context'];
  const address = valueIn(text, [...cluster, ...endpoint, 'address']);
  const port = valueIn(text, [...cluster, ...endpoint, 'port_value']);
  const authority = valueIn(text, [...cluster, ...context, 'trusted_ca', 'inline_string']);
  if (typeof address !== 'string' || typeof authority !== 'string') return undefined;
  return { address: addressOf(address, String(port)), authority };
}

/** The same of a gRPC client's bootstrap; its roots lie in a file of their own. */
export function grpcServerIn(text: string): { readonly address: string; readonly rootsFile: string } | undefined {
  const address = valueIn(text, ['xds_servers', 0, 'server_uri']);
  const rootsFile = valueIn(text, ['xds_servers', 0, 'channel_creds', 0, 'config', 'ca_certificate_file']);
  return typeof address === 'string' && typeof rootsFile === 'string' ? { address, rootsFile } : undefined;
}

/** Envoy's own admin endpoint in a written bootstrap. */
export function adminIn(text: string): { readonly host: string; readonly port: number } | undefined {
  const address = ['admin', 'address', 'socket_address'];
  const [host, port] = [valueIn(text, [...address, 'address']), valueIn(text, [...address, 'port_value'])];
  return typeof host === 'string' && typeof port === 'number' ? { host, port } : undefined;
}
