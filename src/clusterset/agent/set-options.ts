// What data planes read of the set, written at home: options of DNS, the places and networks of members, who may call, and the
// set's ranges.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ClusterSetDnsController, runClusterSetDns } from '../controllers/clusterset-dns.ts';
import { AccessCopy } from '../copies/access-copy.ts';
import { hasAddressIn } from '../rules/address-plan.ts';
import { localityOf } from '../rules/locality.ts';
import { listenerPortsIn } from '../rules/networks/networks.ts';
import type { AgentCopies } from './agent-copies.ts';

export interface FederationZones {
  current(): readonly string[];
  /** By federation: base64 of PEM, by which its authority is known to resolvers. */
  authorities(): Readonly<Record<string, string>>;
  onChanged(handler: () => void): void;
}

export interface SetOptionsOptions {
  readonly world: World;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  readonly clusterId: string;
  readonly copies: AgentCopies;
  readonly federationZones: FederationZones | undefined;
}

export class SetOptions {
  readonly access: AccessCopy;
  readonly #copies: AgentCopies;
  readonly #written: ClusterSetDnsController;

  constructor({ world, log, home, systemNamespace, clusterId, copies, federationZones }: SetOptionsOptions) {
    this.#copies = copies;
    const { members, policy, networks, accessPolicies, atHome } = copies;
    this.#written = runClusterSetDns({
      ...{ world, log, home, systemNamespace },
      wanted: (present) => ({
        dns: policy.current.dns,
        locality: localityOf(policy.current.locality, [...members.clusters.values()]),
        networks: networks.read(listenerPortsIn(present)),
        access: this.access.read(present),
        callers: this.access.readCallers(present),
        addressPlan: {
          federationZones: federationZones?.current() ?? [],
          authorities: federationZones?.authorities() ?? {},
          ranges: policy.current.addressRanges,
        },
      }),
      // Not known yet: it may be.
      isRangeInUse: (range) => !atHome.imports.hasSynced || hasAddressIn(atHome.imports.values(), range),
    });
    this.access = new AccessCopy({
      ...{ world, log, home, systemNamespace, members, policy, clusterId, callers: accessPolicies },
      onChange: () => this.changed(),
    });
    federationZones?.onChanged(() => this.changed());
  }

  /** They may have changed; nothing is written before the set is known. */
  changed(): void {
    if (this.#copies.policy.hasSynced && this.#copies.members.clusters.hasSynced) this.write();
  }

  write(): void {
    this.#written.nudge();
  }

  stop(): Promise<void> {
    return this.#written.stop();
  }
}
