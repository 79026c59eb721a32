// Heartbeat: a member shows that it lives, at the broker in its own namespace. It is renewed like a Lease and is a kind of
// our own: members may read it in all namespaces, and no Lease of anybody else.

import type { Lease } from '../../kube/objects/lease.ts';
import type { ResourceType } from '../../kube/objects/object.ts';

export const heartbeatType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'heartbeats',
  kind: 'Heartbeat',
  isNamespaced: true,
  isRenewed: true,
};

export interface Heartbeat extends Lease {
  spec?: Lease['spec'] & {
    /** For agents of the release before, which wait until every member reads records over all namespaces. */
    reads?: 'AllNamespaces';
    /** Whether it watches the heartbeats of all others and reports who is silent. */
    judging?: boolean;
  };
}
