// `portolan broker token`: makes room for a cluster at the broker and gives the token it joins with. Run by the admin of
// the clusterset, who alone may say who is a member.
//
// The token is of the member's own account and bound to a Secret: joining deletes the Secret, which uses the token up.

import type { Command } from 'commander';
import { formatServers, type HttpAccess } from '../../base/http.ts';
import {
  areServicesPublished,
  knownRanges,
  readClusterSet,
  readMembers,
  readRecord,
} from '../../clusterset/explain/broker-state.ts';
import type { ClusterSet } from '../../clusterset/kinds/cluster-set.ts';
import {
  type MemberRequest,
  memberNamespaceObject,
  memberObjects,
  memberOwner,
  memberQuotaObject,
} from '../../clusterset/membership/broker-objects.ts';
import { formatJoinToken } from '../../clusterset/membership/join-token.ts';
import {
  clusterIdAnnotation,
  clusterIdProblem,
  joinSecretName,
  memberNamespace,
  membersNamespace,
} from '../../clusterset/rules/broker-layout.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import { findOverlaps, type NamedRange } from '../../clusterset/rules/range-overlap.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import { requestToken } from '../../kube/client/account-token.ts';
import { install } from '../../kube/client/apply.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { manifest } from '../../kube/objects/manifest.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import type { OwnerReference } from '../../kube/objects/object.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { refusedError, usageError } from '../exit-codes.ts';
import { checkedServer, warnIfLoopback } from '../reachable.ts';
import { addWaitOptions, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, defaultClusterSet, findHomeOf, type HomeFlags } from '../with-home.ts';
import { parseRanges } from './broker-init.ts';
import { networkSpec, refuseOlder } from './networks.ts';
import { untilQuotaCounted } from './quota-counted.ts';

interface TokenFlags extends HomeFlags, WaitFlags {
  readonly clusterset: string;
  readonly region?: string;
  readonly zone?: string;
  readonly network?: string;
  readonly gatewayRange?: string[];
  readonly allowedRange?: string[];
  readonly mayExport?: string[];
  readonly server?: string;
  readonly minutes: string;
  readonly renew?: boolean;
}

export function addBrokerTokenCommand(broker: Command, deps: ClusterSetDeps): void {
  const command = broker
    .command('token')
    .description('create the namespace of a cluster and print its join token')
    .argument('<cluster-id>', 'NAME or NAME.CONTEXT, unique in the clusterset')
    .option('--clusterset <name>', 'the set to join', defaultClusterSet)
    .option('--region <name>', 'region of the cluster')
    .option('--zone <name>', 'zone of the cluster')
    .option('--network <name>', 'network of the cluster (default: the one of all clusters that name none)')
    .option('--gateway-range <cidr...>', 'addresses that its gateways may have, as other networks reach them')
    .option('--allowed-range <cidr...>', 'the only addresses its endpoints and services may have (default: any)')
    .option('--may-export <pattern...>', 'the only services it may export: NAMESPACE or NAMESPACE/NAME, * for any text')
    .option(
      '--server <url,url>',
      "the broker's addresses as the cluster reaches them (default: those of the kubeconfig)",
    )
    .option('--minutes <number>', 'validity of the token', '60')
    .option('--renew', 'issue new credentials to a cluster that has joined and lost them')
    .addHelpText(
      'after',
      `
The token can be used once. Examples:
  portolan broker token east --clusterset prod
  portolan broker token east.europe --region eu-west --allowed-range 10.1.0.0/16 --minutes 15`,
    );
  addWaitOptions(addHomeOptions(command), 'the cluster has joined', 3600).action(
    async (id: string, flags: TokenFlags) => {
      const access = await findHomeOf(deps, flags);
      const client = createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' });
      try {
        const request = parseFlags(id, flags);
        const token = await brokerToken({ client, access, ...request });
        warnIfLoopback(deps, request.server ?? formatServers(access));
        deps.print(token);
        await untilCounted(deps, client, request);
        await waitIfAsked(deps, flags, {
          what: `broker token ${id}`,
          look: async () => {
            const record = await readRecord(client, memberNamespace(request.clusterset, id));
            if (record !== undefined) return { done: `cluster ${id} has joined` };
            return { waiting: `cluster ${id} has not used its token yet` };
          },
        });
      } finally {
        client.close();
      }
    },
  );
}

/** A cluster that joins meanwhile waits too. */
async function untilCounted(deps: ClusterSetDeps, client: Client, request: MemberRequest): Promise<void> {
  const { clusterset, id } = request;
  const { spec } = await readClusterSet(client, clusterset);
  const quota = memberQuotaObject({ ...request, quota: spec?.memberQuota });
  const namespace = memberNamespace(clusterset, id);
  if (!(await untilQuotaCounted(deps, { client, clusterId: id, namespace, quota })))
    deps.warn?.(
      `the broker still refuses what cluster ${id} exports: does a kube-controller-manager count its quotas?`,
    );
}

export interface TokenRequest extends MemberRequest {
  readonly client: Client;
  readonly access: Pick<HttpAccess, 'server' | 'otherServers' | 'certificateAuthority'>;
  readonly lifetimeMs: number;
  readonly isRenewal: boolean;
}

function parseFlags(id: string, flags: TokenFlags): Omit<TokenRequest, 'client' | 'access'> & { server?: string } {
  const problem = clusterIdProblem(id);
  if (problem !== undefined) throw usageError(`cluster id ${JSON.stringify(id)}: ${problem}`);
  // A Kubernetes gives no token for less than ten minutes.
  if (!/^\d{2,5}$/.test(flags.minutes) || Number(flags.minutes) < 10) {
    throw usageError(`--minutes ${JSON.stringify(flags.minutes)}: write a number of minutes, 10 or more`);
  }
  return {
    clusterset: flags.clusterset,
    id,
    spec: {
      region: flags.region,
      zone: flags.zone,
      ...networkSpec(flags),
      ...(flags.allowedRange === undefined
        ? {}
        : { allowedRanges: parseRanges('--allowed-range', flags.allowedRange) }),
      ...(flags.mayExport === undefined ? {} : { mayExport: checkedPatterns(flags.mayExport) }),
    },
    lifetimeMs: Number(flags.minutes) * 60_000,
    isRenewal: flags.renew === true,
    ...(flags.server === undefined ? {} : { server: checkedServer(flags.server) }),
  };
}

function checkedPatterns(patterns: readonly string[]): string[] {
  const wrong = patterns.find((pattern) => !/^[-a-z0-9*]+(\/[-a-z0-9*]+)?$/.test(pattern));
  if (wrong === undefined) return [...patterns];
  throw usageError(`--may-export ${JSON.stringify(wrong)}: write NAMESPACE or NAMESPACE/NAME, with * for any text`);
}

/** The join token. */
export async function brokerToken(request: TokenRequest & { server?: string }): Promise<string> {
  const { client, clusterset, id, access } = request;
  const set = await refuse(request);
  const namespace = await install(client, memberNamespaceObject(request));
  const owner = memberOwner(namespace.object);
  const wanted = memberObjects({ ...request, quota: set.spec?.memberQuota }, owner);
  for (const object of wanted) await install(client, object);
  const { token, expiresAt } = await newToken(request, owner);
  return formatJoinToken({
    clusterset,
    clusterId: id,
    namespace: memberNamespace(clusterset, id),
    server: request.server ?? formatServers(access),
    certificateAuthority: access.certificateAuthority ?? '',
    token,
    expiresAt,
  });
}

/** The clusterset, if a token may be given. */
async function refuse(request: TokenRequest): Promise<ClusterSet> {
  const { client, clusterset, id } = request;
  const set = await readClusterSet(client, clusterset);
  const name = memberNamespace(clusterset, id);
  const namespace = await getOrUndefined<Namespace>(client, namespaceType, { name });
  const holder = namespace?.metadata.annotations?.[clusterIdAnnotation];
  if (namespace !== undefined && holder !== id) {
    throw refusedError(
      `cluster ${id}: namespace ${name} at the broker belongs to ${holder ?? 'somebody else'}; choose another id`,
    );
  }
  if (namespace?.metadata.deletionTimestamp !== undefined) {
    throw refusedError(`cluster ${id}: a cluster of that id is just leaving; try again in a moment`);
  }
  const record = namespace && (await readRecord(client, name));
  if (record !== undefined && !request.isRenewal) {
    throw refusedError(
      `cluster id ${id} is in use since ${record.joinedAt}; choose another, remove that cluster with portolan broker remove ${id}, or give --renew if it is the same cluster and has lost its credentials`,
    );
  }
  const own = (request.spec.allowedRanges ?? []).map(
    (cidr): NamedRange => ({ cidr, whose: `allowed addresses of cluster ${id}`, kind: 'allowed' }),
  );
  const members = await readMembers(client, clusterset);
  const present = members.find((one) => one.id === id)?.cluster;
  const network = request.spec.network ?? networkOf(present);
  if (network !== networkOf(present)) await refuseOlder(client, { members, network });
  const others = knownRanges(set, members, { except: id, network });
  const problems = findOverlaps({ own, others, areServicesPublished: areServicesPublished(set) });
  if (problems.length > 0) throw refusedError(`cluster ${id}: ${problems.join('; ')}; give other ranges`);
  return set;
}

async function newToken(request: TokenRequest, owner: OwnerReference) {
  const { client, clusterset, id, lifetimeMs } = request;
  const namespace = membersNamespace(clusterset);
  const ref = { namespace, name: joinSecretName(id) };
  // A token given before and not used yet ends here.
  await deleteIfPresent(client, secretType, ref);
  const { object: secret } = await install(client, manifest(secretType, { ...ref, ownerReferences: [owner] }, {}));
  return requestToken(client, { namespace, name: id, lifetimeMs, boundTo: secret });
}
