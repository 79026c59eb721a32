// A home's membership, and a client at the broker with the rights of that member.

import { parseServers } from '../../base/http.ts';
import { errorText } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { type Client, createClient, type RequestOptions } from '../../kube/client/client.ts';
import { StoppedAnswering, whileAnswering } from '../../kube/client/while-answering.ts';
import { ApiError, isForbidden, isUnauthorized } from '../../kube/objects/api-error.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { clusterSetType } from '../kinds/cluster-set.ts';
import { type MembershipRecord, membershipSecretName, readMembership } from '../membership/membership.ts';
import { withCertificateAdvice } from '../rules/leases/trusted-authorities.ts';

export const membershipRef = { namespace: systemNamespace, name: membershipSecretName };

export async function findMembership(home: Client, options?: RequestOptions): Promise<MembershipRecord | undefined> {
  const secret = await getOrUndefined<Secret>(home, secretType, membershipRef, options);
  return secret && readMembership(secret);
}

export async function requireMembership(home: Client): Promise<MembershipRecord> {
  try {
    const membership = await findMembership(home);
    if (membership !== undefined) return membership;
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const what = `Secret ${systemNamespace}/${membershipSecretName}`;
    throw new Error(`this needs to see the clusterset, and you may not read ${what}; ask for that right`, {
      cause: error,
    });
  }
  throw new NotMember('this cluster is not a member of a clusterset; run portolan join TOKEN');
}

class NotMember extends Error {
  override readonly name = 'NotMember';
}

export function brokerClient(
  world: World,
  broker: Pick<MembershipRecord, 'server' | 'certificateAuthority' | 'token'>,
): Client {
  const transport = world.network.http({
    ...parseServers(broker.server),
    ...(broker.certificateAuthority === '' ? {} : { certificateAuthority: broker.certificateAuthority }),
    bearerToken: async () => broker.token,
  });
  return createClient(transport, { world, userAgent: 'portolan-cli' });
}

export async function withBroker<T>(
  world: World,
  membership: MembershipRecord,
  run: (broker: Client) => Promise<T>,
): Promise<T> {
  const client = brokerClient(world, membership);
  try {
    return await whileAnswering({ world, client }, () => run(client));
  } finally {
    client.close();
  }
}

/** A broker that hangs is called away after this time: a person waits. */
const greetingMs = 5_000;

/** One small read. Throws if the broker does not answer, or does not know this cluster. */
export async function greetBroker(broker: Client, { clusterset }: Pick<MembershipRecord, 'clusterset'>): Promise<void> {
  const ref = { namespace: clusterset, name: clusterset };
  await getOrUndefined(broker, clusterSetType, ref, { timeoutMs: greetingMs });
}

export interface Consultation<T> {
  readonly world: World;
  readonly membership: MembershipRecord;
  readonly run: (broker: Client) => Promise<T>;
  /** In place of `run` when the broker does not answer; an error that says so when absent. */
  readonly away?: (why: string) => Promise<T>;
}

/** As `withBroker`, and says in words that the broker is away or that it does not know this cluster any more. */
export async function consultBroker<T>({ world, membership, run, away }: Consultation<T>): Promise<T> {
  const { clusterset, clusterId, server } = membership;
  return withBroker(world, membership, async (broker) => {
    try {
      await greetBroker(broker, membership);
    } catch (error) {
      if (isUnauthorized(error) || isForbidden(error)) {
        throw new Error(
          `the broker ${server} does not accept the credentials of ${clusterId}: this cluster was removed from clusterset ${clusterset}, or its credentials were revoked or have expired (${membership.tokenExpiresAt}); run portolan leave --offline, then join again`,
          { cause: error },
        );
      }
      if (error instanceof ApiError && error.code < 500) throw error;
      const why = withCertificateAdvice(errorText(error), clusterId);
      if (away !== undefined) return away(why);
      throw new Error(`the broker ${server} does not answer (${why}); try again later`, { cause: error });
    }
    return run(broker);
  }).catch((error: unknown) => {
    if (error instanceof StoppedAnswering && away !== undefined) return away(error.message);
    throw error;
  });
}
