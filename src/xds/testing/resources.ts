// Small resources for tests: valid for Envoy's parser, and told apart by one visible detail.

import type { XdsResource } from '../resource.ts';

export function testCluster(name: string, timeout = '1s'): XdsResource {
  const body = {
    name,
    type: 'EDS',
    connect_timeout: timeout,
    eds_cluster_config: { eds_config: { ads: {}, resource_api_version: 'V3' } },
  };
  return { type: 'cluster', name, body, causes: [cause(name)] };
}

export function testEndpoints(name: string, ...addresses: readonly string[]): XdsResource {
  const lb_endpoints = addresses.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }));
  return {
    type: 'endpoints',
    name,
    body: { cluster_name: name, endpoints: [{ lb_endpoints }] },
    causes: [cause(name)],
  };
}

export function testListener(name: string, cluster: string): XdsResource {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
    stat_prefix: name,
    cluster,
  };
  const body = { name, filter_chains: [{ filters: [{ name: 'tcp', typed_config }] }] };
  return { type: 'listener', name, body, causes: [cause(name)] };
}

export function testVirtualHost(name: string, domain = name): XdsResource {
  const body = { name, domains: [domain], routes: [] };
  return { type: 'virtual-host', name: `gateway/${name}`, body, causes: [cause(name)] };
}

function cause(name: string) {
  return { at: 'home', kind: 'ServiceImport', namespace: 'shop', name } as const;
}

/** The values at a path such as `endpoints.*.priority`; `*` stands for each item of a list. */
export function at(value: unknown, path: string): unknown {
  const [key = '', ...rest] = path.split('.');
  if (key === '') return value;
  if (key === '*') return (value as unknown[]).map((item) => at(item, rest.join('.')));
  return at((value as Record<string, unknown>)[key], rest.join('.'));
}
