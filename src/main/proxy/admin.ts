// The admin endpoint of a proxy: metrics and health as every role has them, a comparison of the kernel with the plan, the
// connectivity test on its node, its traffic, and the last flows.

import type { Metrics } from '../../base/metrics.ts';
import { type AdminEndpoint, type AdminRoute, startAdminEndpoint } from '../../base/real/admin-endpoint.ts';
import { countMax, endpointsOf, testConnectivity } from '../../proxy/connectivity/connectivity.ts';
import type { Identify } from '../../proxy/connectivity/prober.ts';
import type { FlowPage } from '../../proxy/flows/flow.ts';
import { askedFlows } from './asked-flows.ts';
import type { ProxyRole } from './part.ts';

export interface ProxyAdminOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics: Metrics;
  readonly proxy: ProxyRole;
  readonly identify: Identify;
  /** Zone of the clusterset's names. */
  readonly zone: () => Promise<string>;
}

export function startProxyAdmin(options: ProxyAdminOptions): Promise<AdminEndpoint> {
  const { proxy, listen, metrics } = options;
  const routes: Record<string, AdminRoute> = {
    '/verify': { methods: ['POST'], handle: async () => ({ differences: await proxy.verify() }) },
    '/traffic': { methods: ['GET'], isOfFlows: true, handle: async () => proxy.traffic() },
    '/flows': { methods: ['GET'], isOfFlows: true, handle: ({ query }) => flowsOf(proxy, query) },
    '/connectivity': { methods: ['GET'], handle: ({ query }) => test(options, query) },
  };
  return startAdminEndpoint({
    listen,
    metrics,
    routes,
    notReady: () => proxy.notReady(),
    status: () => proxy.status(),
    registrations: [proxy.lease],
  });
}

async function flowsOf({ flows }: ProxyRole, query: URLSearchParams): Promise<FlowPage> {
  if (flows === undefined) throw new Error('this proxy records no flows: it runs in userspace mode or with --no-flows');
  return flows(askedFlows(query));
}

async function test({ proxy, identify, zone }: ProxyAdminOptions, query: URLSearchParams) {
  const service = query.get('service') ?? '';
  const count = Number(query.get('count') ?? '100');
  if (!/^[^/]+\/[^/]+$/.test(service)) throw new Error('want /connectivity?service=NAMESPACE/NAME');
  if (!Number.isInteger(count) || count < 1 || count > countMax)
    throw new Error(`count ${query.get('count')}: want a number from 1 to ${countMax}`);
  const choice = proxy.state.choiceOf(service);
  return testConnectivity({
    service,
    isImported: proxy.state.has(service),
    choice,
    zone: await zone(),
    count,
    dns: query.get('dns') ?? undefined,
    isNameLookedUp: query.get('lookup') !== 'off',
    identify,
    proxies: 1,
    // A few connections need not meet the dead one.
    ...(query.get('endpoints') === 'on' && { endpoints: endpointsOf(choice) }),
  });
}
