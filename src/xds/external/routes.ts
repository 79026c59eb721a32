// Route configurations: by Host for the names of a port, then by the header that says under which address rule the
// connection fell. A change of rules changes routes without touching a connection. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { ClassTable, SpeechClass } from '../../external/rules/tables.ts';
import type { Target } from '../../external/rules/target.ts';
import type { XdsResource } from '../resource.ts';
import { clustersOf } from './clusters.ts';
import { blackholeName, causeOf, passthroughName, ruleHeader } from './envoy-names.ts';

/** HTTP classes have routes; the others have none. */
export type HttpClass = Extract<SpeechClass, 'http1' | 'http2'>;

export function portRouteName(port: number, httpClass: HttpClass): string {
  return `external:${port}:${httpClass}`;
}

export function vipRouteName(target: Target): string {
  return `external:vip:${target.key}`;
}

export function filterNameOf(pluginType: string): string {
  return `portolan.plugin.${pluginType}`;
}

export function portRoute(port: number, httpClass: HttpClass, table: ClassTable): XdsResource {
  const hosts = [
    ...table.names.map(({ name, target }) => virtualHost(name, [routeTo(target)])),
    ...table.wildcards.map(({ suffix, target }) => virtualHost(`*${suffix}`, [routeTo(target)])),
  ];
  const targets = [...new Set(table.ranges.map(({ target }) => target))];
  const byRule = targets.map((target) => ({ ...routeTo(target), match: { ...anyPath, ...headerIs(target.key) } }));
  const name = portRouteName(port, httpClass);
  const causes = new Set([...table.names, ...table.wildcards, ...table.ranges].map(({ target }) => causeOf(target)));
  return routeResource(name, [...hosts, virtualHost('*', [...byRule, passOn])], [...causes]);
}

/** Everything that comes in at a virtual IP goes to its target. */
export function vipRoute(target: Target): XdsResource {
  return routeResource(vipRouteName(target), [virtualHost('*', [routeTo(target)])], [causeOf(target)]);
}

function routeResource(name: string, virtualHosts: readonly JsonObject[], causes: XdsResource['causes']): XdsResource {
  const body = {
    name,
    ignore_port_in_host_matching: true,
    virtual_hosts: virtualHosts,
  };
  return { type: 'route', name, body, causes };
}

function virtualHost(domain: string, routes: readonly JsonObject[]): JsonObject {
  return { name: domain, domains: [domain], routes };
}

const anyPath: JsonObject = { prefix: '/' };
const noTimeout: JsonObject = { timeout: '0s' };
const passOn: JsonObject = { match: anyPath, route: { cluster: passthroughName, ...noTimeout } };

function headerIs(value: string): JsonObject {
  return { headers: [{ name: ruleHeader, string_match: { exact: value } }] };
}

function routeTo(target: Target): JsonObject {
  const { destination } = target;
  if (destination.kind === 'plugin') return pluginRoute(target, destination);
  const hasHostnames = destination.kind === 'endpoints';
  // Rewrites Host only for endpoints that have a name.
  const rewrite = hasHostnames ? { auto_host_rewrite: true } : {};
  return { match: anyPath, route: { ...clusterChoice(target), ...rewrite, ...noTimeout } };
}

function pluginRoute(target: Target, { type, made }: Extract<Target['destination'], { kind: 'plugin' }>): JsonObject {
  const { routeAction, perRoute } = made;
  return {
    match: anyPath,
    route: { cluster: target.name, ...noTimeout, ...routeAction },
    ...(perRoute === undefined ? {} : { typed_per_filter_config: { [filterNameOf(type)]: perRoute } }),
  };
}

/** The cluster of a target, or the weights of several: the same for routes and for bytes. */
export function clusterChoice(target: Target): JsonObject {
  if (target.destination.kind === 'closed') return { cluster: blackholeName };
  const clusters = clustersOf(target).map(({ name, weight }) => ({ name, weight }));
  return clusters.length === 1 ? { cluster: clusters[0]!.name } : { weighted_clusters: { clusters } };
}
