// The admin endpoint of a peering process: metrics and health as every role has them, and the state of each peer.

import type { Metrics } from '../../base/metrics.ts';
import { type AdminEndpoint, startAdminEndpoint } from '../../base/real/admin-endpoint.ts';
import type { PeeringRole } from './part.ts';

export interface PeeringAdminOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics: Metrics;
  readonly role: PeeringRole;
}

export function startPeeringAdmin({ listen, metrics, role }: PeeringAdminOptions): Promise<AdminEndpoint> {
  const { peering } = role;
  const counted = <Report extends { readonly refusals: { readonly size: number } }>(reports: Iterable<Report>) =>
    Array.from(reports, ({ refusals, ...report }) => ({ ...report, refused: refusals.size }));
  return startAdminEndpoint({
    listen,
    metrics,
    notReady: () => role.notReady(),
    status: () => ({ owner: counted(peering.owner.reports()), consumer: counted(peering.consumer()?.reports() ?? []) }),
    registrations: [role.lease],
  });
}
