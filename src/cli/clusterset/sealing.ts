// `portolan sealing`: the keys of this cluster for sealed exports: what others compare, new keys for what is exported, and
// the new key of another member.

import type { Command } from 'commander';
import { consultBroker, requireMembership } from '../../clusterset/explain/consult.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { sealingSecretName } from '../../clusterset/membership/membership.ts';
import {
  pinsData,
  readSealingSecret,
  rotationData,
  type SealingState,
} from '../../clusterset/membership/sealing-secret.ts';
import { fingerprintOf, memberKey, readPublicKey } from '../../clusterset/rules/sealing/trusted-keys.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { notFoundError, refusedError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';

const place = { namespace: sealingNamespace, name: sealingSecretName };

export function addSealingCommands(program: Command, deps: ClusterSetDeps): void {
  const sealing = program.command('sealing').description(verbs.sealing);
  addHomeOptions(
    sealing.command('show').description('show the fingerprint of this cluster and whose keys are trusted here'),
  ).action((flags: HomeFlags) =>
    withHome(deps, flags, async ({ client }) => {
      for (const line of await show(deps, client)) deps.print(line);
    }),
  );
  addHomeOptions(sealing.command('rotate').description('seal the exports of this cluster with new keys')).action(
    (flags: HomeFlags) =>
      withHome(deps, flags, async ({ client }) => {
        await requireKeys(client);
        const data = rotationData(Math.ceil(deps.world.clock.wallMs() / 1000));
        await client.patch(secretType, place, { kind: 'merge', body: { data } });
        deps.print('the agent seals the exports of this cluster with new keys within a minute or two');
      }),
  );
  addHomeOptions(
    sealing
      .command('trust')
      .description('trust another key of a member, after comparing it there')
      .argument('<cluster-id>', 'a member that has another key than before')
      .argument('<fingerprint>', 'as portolan sealing show prints it in that cluster'),
  ).action((id: string, fingerprint: string, flags: HomeFlags) =>
    withHome(deps, flags, async ({ client }) => {
      await trust(deps, client, { id, fingerprint });
      deps.print(`the key ${fingerprint} of cluster ${id} is trusted here`);
    }),
  );
}

async function findSealingState(home: Client): Promise<SealingState | undefined> {
  const secret = await getOrUndefined<Secret>(home, secretType, place);
  return secret && readSealingSecret(secret);
}

async function requireKeys(home: Client): Promise<SealingState> {
  const state = await findSealingState(home);
  if (state !== undefined) return state;
  throw notFoundError(
    'this cluster has no keys for sealed exports: its agent makes them once the clusterset allows sealed exports (portolan broker init --sealed-exports Allowed)',
  );
}

async function show(deps: ClusterSetDeps, home: Client): Promise<string[]> {
  const { keys, pins } = await requireKeys(home);
  const lines = [`key of this cluster: ${fingerprintOf(keys.publicKey)}`];
  const { clusters, clusterId } = await readClusters(deps, home);
  for (const cluster of clusters) {
    const id = cluster.metadata.name;
    if (id === clusterId) {
      const isConfirmed = cluster.spec.sealingKey === fingerprintOf(keys.publicKey);
      lines.push(isConfirmed ? 'it is confirmed at the broker' : `it is not confirmed: portolan broker accept ${id}`);
      continue;
    }
    const key = memberKey(cluster, pins.get(id));
    lines.push(key.kind === 'trusted' ? `${id}: ${key.fingerprint}` : `${id}: not trusted: ${key.why}`);
  }
  return lines;
}

async function trust(
  deps: ClusterSetDeps,
  home: Client,
  { id, fingerprint }: { readonly id: string; readonly fingerprint: string },
): Promise<void> {
  await requireKeys(home);
  const { clusters } = await readClusters(deps, home);
  const cluster = clusters.find(({ metadata }) => metadata.name === id);
  if (cluster === undefined) throw notFoundError(`cluster ${id} is not a member of the clusterset`);
  const reported = readPublicKey(cluster.status?.sealingKey);
  const found = reported && fingerprintOf(reported);
  if (found !== fingerprint)
    throw refusedError(`cluster ${id} reports the key ${found ?? 'none'}, not ${fingerprint}: compare them again`);
  const body = { data: pinsData(new Map([[id, fingerprint]])) };
  await home.patch(secretType, place, { kind: 'merge', body });
}

async function readClusters(deps: ClusterSetDeps, home: Client) {
  const membership = await requireMembership(home);
  const { clusterset: namespace, clusterId } = membership;
  const run = (broker: Client) => broker.list<Cluster>(clusterType, { namespace });
  const { items } = await consultBroker({ world: deps.world, membership, run });
  return { clusters: items.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)), clusterId };
}
