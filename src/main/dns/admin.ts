// The admin endpoint of a DNS server: metrics and health as every role has them, why a question gets its answer, and the
// query log's switch.

import {
  type AdminEndpoint,
  type AdminRegistration,
  type AdminRoute,
  startAdminEndpoint,
} from '../../base/real/admin-endpoint.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import type { World } from '../../base/world.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import { observeChanges, registerDnsMetrics } from '../../dns/metrics/metrics.ts';
import { traceAnswers } from '../../dns/metrics/traces.ts';
import type { DnsServer } from '../../dns/server.ts';
import type { NamedCertificate } from './certificates.ts';

export interface DnsAdminOptions {
  readonly part: 'dns' | 'authority';
  readonly world: Pick<World, 'clock' | 'tracing'>;
  readonly listen: { readonly host: string; readonly port: number };
  readonly server: DnsServer;
  readonly zones: () => readonly Zone[];
  readonly catalog?: Catalog;
  readonly notReady: () => string;
  readonly status: () => unknown;
  readonly remark?: () => string;
  readonly registrations: readonly AdminRegistration[];
  readonly certificates?: readonly NamedCertificate[];
}

export function startDnsAdmin(options: DnsAdminOptions): Promise<AdminEndpoint> {
  const { world, server, zones, catalog } = options;
  const metrics = createPartMetrics(options.part);
  registerDnsMetrics({
    metrics,
    counters: () => server.counters(),
    zones,
    workerRestarts: () => server.workerRestarts(),
  });
  for (const { name, endsMs } of options.certificates ?? []) metrics.certificateEnd(name, endsMs);
  if (catalog) observeChanges({ metrics, catalog, clock: world.clock });
  if (catalog && options.part === 'dns') traceAnswers(world, catalog);
  const routes = { '/explain': explainRoute(server), '/querylog': queryLogRoute(server) };
  return startAdminEndpoint({ ...options, metrics, routes });
}

function explainRoute(server: DnsServer): AdminRoute {
  return {
    methods: ['GET'],
    handle: async ({ query }) => {
      const name = query.get('name') ?? '';
      if (name === '') throw new Error('want /explain?name=NAME, and optionally &type=TYPE and &from=CLUSTER');
      const [type, from] = [query.get('type'), query.get('from')];
      return server.explain({ name, ...(type ? { type } : {}), ...(from ? { from } : {}) });
    },
  };
}

function queryLogRoute(server: DnsServer): AdminRoute {
  let isOn = false;
  return {
    methods: ['GET', 'POST'],
    handle: async ({ method, query }) => {
      if (method === 'POST') {
        const state = query.get('state');
        if (state !== 'on' && state !== 'off') throw new Error('want POST /querylog?state=on or state=off');
        isOn = state === 'on';
        server.setQueryLog(isOn);
      }
      return { queryLog: isOn ? 'on' : 'off' };
    },
  };
}
