// A model of how Envoy chooses: listener, filter chain matcher, chain, virtual host, route. Written from what Envoy was
// seen to do, and from nothing of the generator. It also refuses what Envoy refuses, as far as rules can cause it.

import { type Ip, isInRange, parseIp, parseRange } from '../../../base/net/ip.ts';
import type { XdsResource } from '../../resource.ts';

export interface ModelConnection {
  readonly address: Ip;
  readonly port: number;
  /** As the inspectors tell it. */
  readonly transport: 'tls' | 'raw_buffer';
  readonly sni?: string;
  readonly application?: 'http/1.0' | 'http/1.1' | 'h2c';
  readonly host?: string;
}

export type ModelOutcome =
  | { readonly kind: 'closed' }
  | { readonly kind: 'clusters'; readonly names: readonly string[] };

// biome-ignore lint/suspicious/noExplicitAny: Envoy's JSON as it is
type Json = any;

export class EnvoyModel {
  readonly #byName = new Map<string, Json>();

  constructor(resources: readonly XdsResource[]) {
    for (const { type, name, body } of resources) this.#byName.set(`${type} ${name}`, body);
    for (const resource of resources) if (resource.type === 'listener') checkListener(resource.body);
    for (const resource of resources) if (resource.type === 'route') checkRoute(resource.body);
  }

  /** The outcome of a connection that arrives at the listener with this port. */
  connect(listenerPort: number, connection: ModelConnection): ModelOutcome {
    const listener = this.#all('listener').find(({ address }) => address.socket_address.port_value === listenerPort);
    if (listener === undefined) return { kind: 'closed' };
    const hasInspector = listener.listener_filters.length > 1;
    // Without inspectors nothing is known of what the connection speaks.
    const seen: ModelConnection = hasInspector
      ? connection
      : { address: connection.address, port: connection.port, transport: 'raw_buffer' };
    const chainName = evaluate(listener.filter_chain_matcher, seen);
    const chain = listener.filter_chains.find(({ name }: Json) => name === chainName);
    if (chain === undefined) return { kind: 'closed' };
    const [filter] = chain.filters;
    const config = filter.typed_config;
    return config['@type'].endsWith('TcpProxy') ? this.#clusters(config) : this.#request(config, connection);
  }

  #all(type: string): Json[] {
    return [...this.#byName].filter(([key]) => key.startsWith(`${type} `)).map(([, body]) => body);
  }

  #request(config: Json, { host = '' }: ModelConnection): ModelOutcome {
    const routes = this.#byName.get(`route ${config.rds.route_config_name}`);
    if (routes === undefined) return { kind: 'closed' };
    const headers: Record<string, string> = {};
    for (const { typed_config: mutation } of config.early_header_mutation_extensions)
      for (const { append } of mutation.mutations) if (append) headers[append.header.key] = append.header.value;
    const virtualHost = virtualHostOf(routes, host.toLowerCase());
    const route = virtualHost?.routes.find(({ match }: Json) =>
      (match.headers ?? []).every(({ name, string_match }: Json) => headers[name] === string_match.exact),
    );
    return route === undefined ? { kind: 'closed' } : this.#clusters(route.route);
  }

  #clusters({ cluster, weighted_clusters: weighted }: Json): ModelOutcome {
    const names: string[] = cluster === undefined ? weighted.clusters.map(({ name }: Json) => name) : [cluster];
    for (const name of names) if (!this.#byName.has(`cluster ${name}`)) throw new Error(`no such cluster: ${name}`);
    return { kind: 'clusters', names };
  }
}

/** Name of the chain. A nested matcher that fits nothing makes the search go on behind it. */
function evaluate(matcher: Json, connection: ModelConnection): string | undefined {
  for (const found of matchesIn(matcher.matcher_tree, connection)) {
    const chain = act(found, connection);
    if (chain !== undefined) return chain;
  }
  return matcher.on_no_match === undefined ? undefined : act(matcher.on_no_match, connection);
}

function act(onMatch: Json, connection: ModelConnection): string | undefined {
  if (onMatch.action !== undefined) return onMatch.action.typed_config.value;
  return evaluate(onMatch.matcher, connection);
}

/** The matches, the best first. */
function matchesIn(tree: Json, connection: ModelConnection): Json[] {
  const kind: string = tree.input.typed_config['@type'].split('.').at(-1);
  if (tree.exact_match_map !== undefined) {
    const found = tree.exact_match_map.map[inputOf(kind, connection) ?? '\0'];
    return found === undefined ? [] : [found];
  }
  const custom = tree.custom_match.typed_config;
  if (custom['@type'].endsWith('IPMatcher')) return ipMatches(custom.range_matchers, connection.address);
  return nameMatches(custom.domain_matchers, connection.sni?.toLowerCase());
}

function inputOf(kind: string, { port, transport, application }: ModelConnection): string | undefined {
  if (kind === 'DestinationPortInput') return String(port);
  if (kind === 'TransportProtocolInput') return transport;
  return application === undefined ? undefined : `'${application}'`;
}

function ipMatches(matchers: Json[], address: Ip): Json[] {
  const entries = matchers.flatMap(({ ranges, on_match: onMatch }) =>
    ranges.map(({ address_prefix: prefix, prefix_len: length }: Json) => ({
      ...{ range: parseRange(`${prefix}/${length}`)!, length, onMatch },
    })),
  );
  const fitting = entries.filter(({ range }) => isInRange(address, range));
  return fitting.sort((one, other) => other.length - one.length).map(({ onMatch }) => onMatch);
}

function nameMatches(matchers: Json[], name: string | undefined): Json[] {
  if (name === undefined) return [];
  const entries = matchers.flatMap(({ domains, on_match: onMatch }) =>
    domains.map((domain: string) => ({ domain, onMatch })),
  );
  const exact = entries.filter(({ domain }) => domain === name);
  const wild = entries.filter(({ domain }) => domain.startsWith('*.') && name.endsWith(domain.slice(1)));
  const longest = wild.sort((one, other) => other.domain.length - one.domain.length);
  return [...exact, ...longest].map(({ onMatch }) => onMatch);
}

function virtualHostOf(routes: Json, host: string): Json | undefined {
  const name = routes.ignore_port_in_host_matching ? host.replace(/:\d+$/, '') : host;
  const hosts: Json[] = routes.virtual_hosts;
  const exact = hosts.find(({ domains }) => domains.includes(name));
  if (exact !== undefined) return exact;
  const wild = hosts.filter(({ domains }) => domains[0].startsWith('*.') && isBelow(name, domains[0].slice(1)));
  const [longest] = wild.sort((one, other) => other.domains[0].length - one.domains[0].length);
  return longest ?? hosts.find(({ domains }) => domains.includes('*'));
}

function isBelow(name: string, suffix: string): boolean {
  return name.length > suffix.length && name.endsWith(suffix);
}

function checkListener(body: Json): void {
  const names: string[] = body.filter_chains.map(({ name }: Json) => name);
  if (new Set(names).size !== names.length) throw new Error('two filter chains of one name');
  const visit = (value: Json): void => {
    if (value === null || typeof value !== 'object') return;
    if (value.exact_match_map !== undefined && Object.keys(value.exact_match_map.map).length === 0)
      throw new Error('empty exact_match_map');
    const domains = value.domain_matchers?.flatMap((one: Json) => one.domains) ?? [];
    if (new Set(domains).size !== domains.length) throw new Error('a server name twice');
    if (value.action !== undefined && !names.includes(value.action.typed_config.value))
      throw new Error(`the matcher names a missing chain: ${value.action.typed_config.value}`);
    if (value.address_prefix !== undefined && parseIp(value.address_prefix) === undefined)
      throw new Error('no address');
    for (const inner of Object.values(value)) visit(inner);
  };
  visit(body.filter_chain_matcher);
}

function checkRoute(body: Json): void {
  const domains = body.virtual_hosts.flatMap((host: Json) => host.domains);
  if (new Set(domains).size !== domains.length) throw new Error('a domain in two virtual hosts');
}
