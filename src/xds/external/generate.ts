// External services as Envoy resources: listeners, routes, clusters and secrets. Pure: the order of the input never
// matters. A resource that is invalid gives nothing; one that leads nowhere closes what it matches. Neither changes
// anything of the others.

import type { MeshExternalService } from '../../external/kinds/mesh-external-service.ts';
import { type PortTables, tablesOf } from '../../external/rules/tables.ts';
import { type Target, type TargetContext, type TargetedRule, targetsOf } from '../../external/rules/target.ts';
import { compareResources, type XdsResource } from '../resource.ts';
import type { ChainUse } from './chains.ts';
import { clustersOf, sharedClusters } from './clusters.ts';
import { causeOf } from './envoy-names.ts';
import { type ListenerOptions, listenersOf } from './listeners.ts';
import { portRoute, vipRoute } from './routes.ts';
import { tlsSecrets } from './tls-socket.ts';

export interface ExternalInput extends TargetContext, ListenerOptions {
  readonly services: readonly MeshExternalService[];
}

export function externalResources(input: ExternalInput): XdsResource[] {
  const rules = rulesInForce(input);
  // Without rules nothing is redirected, and no proxy needs a listener for it.
  if (rules.length === 0) return [];
  const tables = tablesOf(rules);
  const { resources: listeners, uses } = listenersOf(tables, input);
  const targets = [...new Set(rules.map(({ target }) => target))];
  const clusters = [
    ...targets.flatMap((target) =>
      clustersOf(target).map(
        ({ name, body }): XdsResource => ({ type: 'cluster', name, body, causes: [causeOf(target)] }),
      ),
    ),
    ...sharedClusters().map((body): XdsResource => ({ type: 'cluster', name: String(body['name']), body, causes: [] })),
  ];
  const all = [...listeners, ...clusters, ...routesOf(tables, uses), ...secretsOf(targets)];
  return all.sort(compareResources);
}

/** Rules of all services that count, wherever they lead. */
export function rulesInForce(input: TargetContext & Pick<ExternalInput, 'services'>): TargetedRule[] {
  const { services, ...context } = input;
  return services.flatMap((object) => targetsOf(object, context).rules);
}

function routesOf(tables: readonly PortTables[], uses: ReadonlyMap<string, ChainUse>): XdsResource[] {
  const routes = new Map<string, XdsResource>();
  const byPort = new Map(tables.map((one) => [one.port, one]));
  for (const use of uses.values()) {
    if (use.kind !== 'vip' && use.kind !== 'requests') continue;
    const route =
      use.kind === 'vip'
        ? vipRoute(use.target)
        : portRoute(use.port, use.httpClass, byPort.get(use.port)!.classes[use.httpClass]);
    routes.set(route.name, route);
  }
  return [...routes.values()];
}

/** One for each resource, whatever the number of its targets. */
function secretsOf(targets: readonly Target[]): XdsResource[] {
  return [...new Map(targets.flatMap(tlsSecrets).map((secret) => [secret.name, secret])).values()];
}
