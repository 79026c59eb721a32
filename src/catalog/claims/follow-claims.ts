// Follows the AddressClaims of a home. A home without them, or with roles of an older release that do not let us read them,
// is served without: then an address that two imports name is served for none.

import { addressClaimType } from '../../addresses/address-claim.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ForwardedTo, ForwardingSink } from '../../kube/controller/forwarding-sink.ts';
import { Reflector, type ReflectorStatus } from '../../kube/controller/reflector.ts';

export interface FollowClaimsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly to: ForwardedTo;
  readonly onListed: () => void;
  /** Called once they were listed, or it is clear that they cannot be. */
  readonly onSettled: () => void;
  readonly onState?: (reflector: Reflector) => void;
}

/** Not started yet. */
export function followClaims(options: FollowClaimsOptions): Reflector {
  const { client, world, to, onListed, onSettled } = options;
  const log = options.log.with({ watch: addressClaimType.plural });
  let isSettled = false;
  const settle = () => {
    if (isSettled) return;
    isSettled = true;
    onSettled();
  };
  const reflector: Reflector = new Reflector({
    ...{ client, world, log },
    type: addressClaimType,
    sink: new ForwardingSink(to, () => {
      onListed();
      settle();
    }),
    onState: () => {
      options.onState?.(reflector);
      if (!areUnreadable(reflector.status())) return;
      log.warn('AddressClaims cannot be read here; an address that two imports name is served for none');
      settle();
    },
  });
  return reflector;
}

/** Whether the home answered that there are none to read, for now. */
export function areUnreadable({ state }: Pick<ReflectorStatus, 'state'>): boolean {
  return state.kind === 'failing' && (state.code === 403 || state.code === 404);
}
