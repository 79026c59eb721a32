// The built-in plugin for AWS Lambda: requests become invocations, signed by Envoy with the credentials in its own
// environment. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { ExtensionPlugin, PluginRequest, PluginResult } from './plugin.ts';

const extensions = 'type.googleapis.com/envoy.extensions';
const arnPattern =
  /^arn:aws[a-z-]{0,20}:lambda:([a-z]{2}(-[a-z]{1,12}){1,3}-\d{1,2}):\d{12}:function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_$-]{1,128})?$/;
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const port = '[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]';
const endpointPattern = new RegExp(`^(?=.{1,253}:)${label}(?:\\.${label})*:(?:${port})$`);
const defaultCaFile = '/etc/ssl/certs/ca-certificates.crt';

export const lambdaPlugin: ExtensionPlugin = {
  type: 'Lambda',
  protocols: ['http', 'http2'],
  config: {
    arn: { type: 'string', isRequired: true, pattern: arnPattern, description: 'the function to invoke' },
    payloadPassthrough: {
      type: 'boolean',
      description: 'the body of the request is the payload as it is, instead of a JSON description of the request',
    },
    endpoint: {
      type: 'string',
      pattern: endpointPattern,
      description: 'host:port in place of the public endpoint of the region, such as a private one',
    },
    caFile: {
      type: 'string',
      pattern: /^\/[^\0]{1,4000}$/,
      description: `file of CAs that the endpoint is verified by, as Envoy sees it; ${defaultCaFile} when absent`,
    },
  },
  httpFilter: { '@type': `${extensions}.filters.http.aws_lambda.v3.Config`, arn: placeholderArn() },
  emit,
};

/** The filter wants an ARN even where it is disabled. */
function placeholderArn(): string {
  return 'arn:aws:lambda:us-east-1:000000000000:function:none';
}

function emit({ config: given, name }: PluginRequest): PluginResult {
  const config = given as JsonObject;
  const arn = String(config['arn']);
  const region = arnPattern.exec(arn)?.[1] ?? '';
  const [host = '', port = '443'] = String(config['endpoint'] ?? `lambda.${region}.amazonaws.com:443`).split(':');
  return {
    cluster: clusterOf({ name, host, port: Number(port), caFile: String(config['caFile'] ?? defaultCaFile) }),
    routeAction: { host_rewrite_literal: host },
    perRoute: {
      '@type': `${extensions}.filters.http.aws_lambda.v3.PerRouteConfig`,
      // The signature covers Host, so it is rewritten before signing; the route's own rewrite comes after.
      invoke_config: { arn, payload_passthrough: config['payloadPassthrough'] === true, host_rewrite: host },
    },
  };
}

interface Endpoint {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly caFile: string;
}

function clusterOf({ name, host, port, caFile }: Endpoint): JsonObject {
  const address = { socket_address: { address: host, port_value: port } };
  return {
    type: 'STRICT_DNS',
    connect_timeout: '5s',
    dns_lookup_family: 'V4_PREFERRED',
    wait_for_warm_on_init: false,
    // By this the filter knows clusters that lead to Lambda.
    metadata: { filter_metadata: { 'com.amazonaws.lambda': { egress_gateway: true } } },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    transport_socket: {
      name: 'envoy.transport_sockets.tls',
      typed_config: {
        '@type': `${extensions}.transport_sockets.tls.v3.UpstreamTlsContext`,
        sni: host,
        common_tls_context: {
          tls_params: { tls_minimum_protocol_version: 'TLSv1_2', tls_maximum_protocol_version: 'TLSv1_3' },
          validation_context: {
            trusted_ca: { filename: caFile },
            match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: host } }],
          },
        },
      },
    },
  };
}
