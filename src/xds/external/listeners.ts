// The two outbound listeners: one looks at the first bytes of a connection, the other does not, because a client that waits
// for its server to speak first would wait for nothing. The kernel decides which one a connection goes to. Apart from
// matcher and chains nothing in them ever changes: any other change would end all connections. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import type { OutboundPorts } from '../../external/rules/redirects.ts';
import type { PortTables } from '../../external/rules/tables.ts';
import { listenAddress } from '../bodies.ts';
import type { XdsResource } from '../resource.ts';
import { type ChainUse, chainName, chainOf } from './chains.ts';
import { causeOf, extension } from './envoy-names.ts';
import { inspectedPort, type JsonObjectByPort, type MatcherOptions, matcherOf, plainPort } from './matcher.ts';

export interface ListenerOptions {
  /** `::` takes IPv4 too. */
  readonly address: string;
  readonly ports: OutboundPorts;
  /** Ports of other listeners of the same proxy: connections to them must not loop either. */
  readonly otherPorts?: readonly number[];
  readonly plugins: Plugins;
}

export interface Listeners {
  readonly resources: readonly XdsResource[];
  /** All chains that the matchers lead to. */
  readonly uses: ReadonlyMap<string, ChainUse>;
}

const inspectorTimeout = '1s';

export function listenersOf(tables: readonly PortTables[], options: ListenerOptions): Listeners {
  const all = new Map<string, ChainUse>();
  const listener = (
    name: string,
    port: number,
    inspectors: readonly string[],
    decide: (matching: MatcherOptions) => JsonObjectByPort[],
  ): XdsResource => {
    const uses = new Map<string, ChainUse>();
    const use = (one: ChainUse) => {
      const chain = chainName(one);
      uses.set(chain, one);
      all.set(chain, one);
      return chain;
    };
    const matching = { use, ownPorts: [options.ports.inspected, options.ports.plain, ...(options.otherPorts ?? [])] };
    const matcher = matcherOf(decide(matching), matching);
    const chains = [...uses.keys()].sort().map((chain) => chainOf(uses.get(chain)!, options.plugins));
    const body = {
      ...opening(name, options.address, port, inspectors),
      filter_chains: chains,
      filter_chain_matcher: matcher,
    };
    return { type: 'listener', name, body, causes: causesIn(uses.values()) };
  };
  const inspected = listener(
    'outbound:inspected',
    options.ports.inspected,
    ['tls_inspector', 'http_inspector'],
    (matching) => tables.map((one) => inspectedPort(one, matching)),
  );
  const plain = listener('outbound:plain', options.ports.plain, [], (matching) =>
    tables.flatMap((one) => {
      const chosen = { vips: one.vips.filter(({ isPlain }) => isPlain), hasRanges: one.isPlain };
      return chosen.vips.length > 0 || chosen.hasRanges ? [plainPort(one, chosen, matching)] : [];
    }),
  );
  return { resources: [inspected, plain], uses: all };
}

function opening(name: string, address: string, port: number, inspectors: readonly string[]): JsonObject {
  const types: Readonly<Record<string, string>> = {
    original_dst: 'original_dst.v3.OriginalDst',
    tls_inspector: 'tls_inspector.v3.TlsInspector',
    http_inspector: 'http_inspector.v3.HttpInspector',
  };
  const filters = ['original_dst', ...inspectors].map((filter) => ({
    name: filter,
    typed_config: { '@type': extension(`filters.listener.${types[filter]}`) },
  }));
  return {
    name,
    address: listenAddress(address, port),
    listener_filters: filters,
    ...(inspectors.length === 0
      ? {}
      : { listener_filters_timeout: inspectorTimeout, continue_on_listener_filters_timeout: true }),
  };
}

function causesIn(uses: Iterable<ChainUse>): XdsResource['causes'] {
  const causes = Array.from(uses, (use) => ('target' in use ? use.target && causeOf(use.target) : undefined));
  return [...new Map(causes.filter((one) => one !== undefined).map((one) => [JSON.stringify(one), one])).values()];
}
