// The admin endpoint of a discovery server: metrics and health as every role has them, and the proxies that are connected.

import type { Metrics } from '../../base/metrics.ts';
import { type AdminEndpoint, startAdminEndpoint } from '../../base/real/admin-endpoint.ts';
import type { FlowPage } from '../../proxy/flows/flow.ts';
import { askedFlows } from '../proxy/asked-flows.ts';
import type { XdsRole } from './part.ts';

export interface XdsAdminOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics: Metrics;
  readonly role: XdsRole;
  readonly cluster: string;
}

export function startXdsAdmin({ listen, metrics, role, cluster }: XdsAdminOptions): Promise<AdminEndpoint> {
  return startAdminEndpoint({
    ...{ listen, metrics },
    notReady: () => role.notReady(),
    remark: () => (role.staleWhy() === '' ? '' : `still serving what was read last: ${role.staleWhy()}`),
    status: () => ({ cluster, staleWhy: role.staleWhy(), proxies: role.service.proxies.reports() }),
    routes: {
      '/flows': { methods: ['GET'], isOfFlows: true, handle: async ({ query }) => flowsOf(role, cluster, query) },
    },
    registrations: [role.lease],
  });
}

function flowsOf({ service, lease }: XdsRole, from: string, query: URLSearchParams): FlowPage {
  return service.flows.page({ node: lease.holder.replace(/_[^_]*$/, ''), from }, askedFlows(query));
}
