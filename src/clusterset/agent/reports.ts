// What this cluster reports at the broker, in the status of its own Cluster: resolvers, gateways, properties, whether access is
// enforced, and versions.

import { createEnforcementReporter } from '../controllers/reports/enforcement-report.ts';
import { createGatewayReporter } from '../controllers/reports/gateway-report.ts';
import { createPropertyReporter } from '../controllers/reports/property-report.ts';
import type { Reporter, ReportOptions } from '../controllers/reports/reporter.ts';
import { createResolverReporter } from '../controllers/reports/resolver-report.ts';
import { createVersionReporter } from '../controllers/reports/version-report.ts';
import type { AccessCopy } from '../copies/access-copy.ts';
import type { DataPlanes } from '../copies/data-planes.ts';
import { refusal } from '../rules/endpoint-address.ts';
import type { AgentCopies } from './agent-copies.ts';

export interface AgentReportsOptions extends ReportOptions {
  readonly copies: AgentCopies;
  readonly access: Pick<AccessCopy, 'mode'>;
  readonly dataPlanes: Pick<DataPlanes, 'reports'>;
}

export class AgentReports {
  /** Asked to look again: their sources do not say when they change. */
  readonly enforcement: Pick<Reporter, 'look'>;
  readonly version: Pick<Reporter, 'look'>;
  readonly #all: readonly Reporter[];

  constructor({ copies, access, dataPlanes, ...options }: AgentReportsOptions) {
    const { clusters } = copies.members;
    const enforcement = createEnforcementReporter({
      ...{ ...options, clusters },
      mode: () => access.mode,
      leases: () => dataPlanes.reports,
    });
    const version = createVersionReporter({ ...options, clusters });
    this.#all = [
      createResolverReporter(options),
      createGatewayReporter({
        ...{ ...options, services: copies.atHome.services, clusters },
        refusal: (address, allowedRanges) => refusal(address, { ...copies.policy.rules, allowedRanges }),
      }),
      createPropertyReporter({ ...options, properties: copies.properties, clusters }),
      enforcement,
      version,
    ];
    this.enforcement = enforcement;
    this.version = version;
  }

  start(): void {
    for (const reporter of this.#all) reporter.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.map((reporter) => reporter.stop()));
  }
}
