// Filter chains. A chain is named after where it leads and never depends on other rules: Envoy tells chains apart by their
// whole text, and one that changes is drained. Chains of requests do not even name clusters, which their routes do. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import type { Target } from '../../external/rules/target.ts';
import { type AccessLogTags, httpLog, tcpLog } from '../access-logs/config.ts';
import { blackholeName, extension, fromAds, passthroughName, ruleHeader, sentProtoHeader } from './envoy-names.ts';
import { clusterChoice, filterNameOf, type HttpClass, portRouteName, vipRouteName } from './routes.ts';

export type ChainUse =
  /** To be closed at once. */
  | { readonly kind: 'blackhole' }
  /** As without Portolan. */
  | { readonly kind: 'passthrough' }
  | { readonly kind: 'bytes'; readonly target: Target }
  /** Requests at a virtual IP. */
  | { readonly kind: 'vip'; readonly target: Target; readonly httpClass: HttpClass }
  /** Requests on a port whose routes look at Host first; without a target they go on by themselves. */
  | { readonly kind: 'requests'; readonly port: number; readonly httpClass: HttpClass; readonly target?: Target };

export function chainName(use: ChainUse): string {
  if (use.kind === 'blackhole') return blackholeName;
  if (use.kind === 'passthrough') return passthroughName;
  if (use.kind === 'bytes') return use.target.name;
  if (use.kind === 'vip') return `${use.target.key}:vip:${use.httpClass}`;
  return use.target === undefined
    ? `${passthroughName}:${use.port}:${use.httpClass}`
    : `${use.target.key}:${use.httpClass}`;
}

export function chainOf(use: ChainUse, plugins: Plugins): JsonObject {
  const name = chainName(use);
  return {
    name,
    filters: [use.kind === 'vip' || use.kind === 'requests' ? http(name, use, plugins) : bytes(name, use)],
  };
}

function bytes(name: string, use: ChainUse): JsonObject {
  const way = use.kind === 'bytes' ? clusterChoice(use.target) : { cluster: name };
  return {
    name: 'tcp',
    typed_config: {
      '@type': extension('filters.network.tcp_proxy.v3.TcpProxy'),
      stat_prefix: name,
      ...way,
      ...(use.kind === 'bytes' ? { access_log: [tcpLog('external', tagsOf(use.target))] } : {}),
    },
  };
}

function tagsOf({ object }: Target): AccessLogTags {
  return { service: `${object.namespace}/${object.name}` };
}

function http(name: string, use: Extract<ChainUse, { httpClass: HttpClass }>, plugins: Plugins): JsonObject {
  const route = use.kind === 'vip' ? vipRouteName(use.target) : portRouteName(use.port, use.httpClass);
  return {
    name: 'http',
    typed_config: {
      '@type': extension('filters.network.http_connection_manager.v3.HttpConnectionManager'),
      stat_prefix: name,
      ...(use.target === undefined ? {} : { access_log: [httpLog('external', tagsOf(use.target))] }),
      rds: { route_config_name: route, config_source: fromAds },
      early_header_mutation_extensions: [ruleMark(use.target?.key ?? passthroughName)],
      http_filters: [forgetRule, ...pluginFilters(plugins), router],
      // As little as possible is changed of what passes.
      http_protocol_options: { accept_http_10: true },
      server_header_transformation: 'PASS_THROUGH',
      generate_request_id: false,
      skip_xff_append: true,
      stream_idle_timeout: '0s',
      upgrade_configs: [{ upgrade_type: 'websocket' }],
    },
  };
}

/** Overwrites what a client may have sent. */
function ruleMark(value: string): JsonObject {
  const append = overwrite(ruleHeader, value);
  return {
    name: 'rule',
    typed_config: {
      '@type': extension('http.early_header_mutation.header_mutation.v3.HeaderMutation'),
      mutations: [
        { append },
        { remove: sentProtoHeader },
        { append: overwrite(sentProtoHeader, '%REQ(x-forwarded-proto)%') },
      ],
    },
  };
}

/** An empty value adds nothing. */
function overwrite(key: string, value: string): JsonObject {
  return { header: { key, value }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' };
}

// The route has been chosen when filters run. Marks must be gone before one of them signs the request, and Envoy has written
// x-forwarded-proto where the client sent none.
const forgetRule: JsonObject = {
  name: 'forget-rule',
  typed_config: {
    '@type': extension('filters.http.header_mutation.v3.HeaderMutation'),
    mutations: {
      request_mutations: [
        { remove: ruleHeader },
        { remove: 'x-forwarded-proto' },
        { append: overwrite('x-forwarded-proto', `%REQ(${sentProtoHeader})%`) },
        { remove: sentProtoHeader },
      ],
    },
  },
};

function pluginFilters(plugins: Plugins): JsonObject[] {
  const withFilter = [...plugins.values()].filter(({ httpFilter }) => httpFilter !== undefined);
  const sorted = withFilter.sort((one, other) => (one.type < other.type ? -1 : 1));
  return sorted.map(({ type, httpFilter }) => ({ name: filterNameOf(type), disabled: true, typed_config: httpFilter }));
}

const router: JsonObject = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': extension('filters.http.router.v3.Router'), suppress_envoy_headers: true },
};
