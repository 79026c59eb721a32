// The other networks of the set as this agent sees them, worked out once for each change of a Cluster or of the policy.

import type { MemberFollower } from '../members/follower.ts';
import type { SetNetworks } from '../rules/networks/networks.ts';
import { networksOf } from '../rules/networks/reach.ts';
import type { PolicyCopy } from './policy-copy.ts';

export interface NetworksCopyOptions {
  readonly members: MemberFollower;
  readonly policy: PolicyCopy;
  /** This cluster. */
  readonly clusterId: string;
}

export class NetworksCopy {
  readonly #options: NetworksCopyOptions;
  #current: SetNetworks | undefined;
  #ports: ReadonlyMap<string, number> = new Map();

  constructor(options: NetworksCopyOptions) {
    this.#options = options;
  }

  get current(): SetNetworks {
    const { members, policy, clusterId: self } = this.#options;
    this.#current ??= networksOf({
      members: [...members.clusters.values()],
      self,
      refusal: (address, accepted) => policy.gatewayRefusal(address, accepted),
      ports: this.#ports,
    });
    return this.#current;
  }

  /** With the ports that nodes use now: those stay. */
  read(ports: ReadonlyMap<string, number>): SetNetworks {
    this.#ports = ports;
    this.#current = undefined;
    return this.current;
  }

  /** A Cluster or the policy is another one. */
  changed(): void {
    this.#current = undefined;
  }
}
