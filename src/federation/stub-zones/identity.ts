// The certificate by which the authority of a federation is known to the resolvers of members: issued by an authority of its
// own, which is made at the first start and kept in a Secret at the broker. Members read its certificate in the status of the
// Federation.

import type { World } from '../../base/world.ts';
import { type Credentials, certificateFacts } from '../../base/x509/certificates.ts';
import type { Client } from '../../kube/client/client.ts';
import { dayMs, issueLeaf, openKeptAuthority } from '../../kube/client/kept-authority.ts';
import { federationAuthoritySecret } from '../rules/broker-names.ts';
import { posterName } from '../rules/poster.ts';

export interface FederationIdentityOptions {
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly broker: Client;
  readonly clusterset: string;
  readonly federation: string;
}

export interface FederationIdentity {
  /** Base64 of PEM. */
  readonly caBundle: string;
  /** Valid for a while yet: one that comes to its end is replaced. */
  current(): Credentials;
}

const lifetimeMs = 30 * dayMs;
const renewBeforeMs = 10 * dayMs;

export async function openFederationIdentity(options: FederationIdentityOptions): Promise<FederationIdentity> {
  const { world, broker, clusterset, federation } = options;
  const name = federationAuthoritySecret(federation);
  const at = { world, client: broker, namespace: clusterset, name, commonName: `Portolan federation ${federation}` };
  const authority = await openKeptAuthority(at);
  const issue = () =>
    issueLeaf(at, authority, { commonName: posterName(federation), use: { kind: 'client' }, lifetimeMs });
  let leaf = issue();
  return {
    caBundle: Buffer.from(authority.certificate).toString('base64'),
    current: () => {
      if (certificateFacts(leaf.certificate).notAfterMs - world.clock.wallMs() < renewBeforeMs) leaf = issue();
      return leaf;
    },
  };
}
