// `portolan api rotate-ca`: one step of replacing the certificate authority of a home. A step that would cut off a member or an
// authority that has not reported the new one is refused.

import { resolve } from 'node:path';
import { errorText } from '../../base/log.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { CommandError } from '../../cli/exit-codes.ts';
import type { RotateFlags, RotationStep } from '../../cli/roles/api.ts';
import { type Look, parseTimeout, type WaitFlags, waitIfAsked, waitUntil } from '../../cli/wait.ts';
import type { CliDeps } from '../../cli/with-home.ts';
import { readHeartbeat, readMembers } from '../../clusterset/explain/broker-state.ts';
import { listAll } from '../../clusterset/explain/set-state.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { authorityFingerprints, trustsAll } from '../../clusterset/rules/leases/trusted-authorities.ts';
import { type AuthorityOptions, openAuthority, rotateAuthority } from '../../home/security/authority.ts';
import { isRotationApplied } from '../../home/security/pki.ts';
import { PkiFiles } from '../../home/security/pki-files.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { isForgotten, partLabel } from '../../kube/objects/part-lease.ts';
import { processLog } from '../process.ts';

type RotationPlace = AuthorityOptions & { readonly world: ReturnType<typeof createRealWorld> };

const answerMs = 5_000;

/** Members and authorities that have not reported that they trust all authorities that the home has now. */
async function withoutAuthority(at: RotationPlace): Promise<string[]> {
  const { world } = at;
  const { trusted } = await openAuthority(at, new PkiFiles(at));
  const wanted = authorityFingerprints(trusted);
  const kubeconfig = `${at.directory}/admin.kubeconfig`;
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  const client = createClient(world.network.http(access), {
    ...{ world, userAgent: 'portolan-cli', requestTimeoutMs: answerMs },
  });
  try {
    return await withoutTrust(client, wanted, world.clock.wallMs());
  } finally {
    client.close();
  }
}

/** `wanted` are the fingerprints of those authorities. */
export async function withoutTrust(client: Client, wanted: readonly string[], nowMs: number): Promise<string[]> {
  const isAuthority = (lease: Lease) => !isForgotten(lease, nowMs) && !trustsAll(lease, wanted);
  const labelSelector = `${partLabel}=authority`;
  const authorities = await listAll<Lease>(client, leaseType, { namespace: systemNamespace, labelSelector });
  return [
    ...(await membersWithout(client, wanted)),
    ...authorities.filter(isAuthority).map(({ metadata }) => `authority ${metadata.name}`),
  ];
}

async function membersWithout(client: Client, wanted: readonly string[]): Promise<string[]> {
  const sets = await listAll<ClusterSet>(client, clusterSetType).catch((error: unknown) => {
    if (isNotFound(error)) return [];
    throw error;
  });
  const lost: string[] = [];
  for (const set of sets) {
    for (const { id, cluster, record } of await readMembers(client, set.metadata.name)) {
      // One that was invited and has not joined gets them with its token.
      if (record === undefined) continue;
      if (!trustsAll(await readHeartbeat(client, cluster.spec.namespace), wanted)) lost.push(`cluster ${id}`);
    }
  }
  return lost;
}

/** Those that would be cut off by the step are waited for, or named. */
export async function refuseToLose(step: RotationStep, { deps, flags, look }: Asked): Promise<void> {
  if (flags.wait) await waitUntil(deps, { ...waitFor(step, flags), look });
  const found = await look();
  if ('done' in found) return;
  throw new CommandError(
    'notReady',
    `rotate-ca ${step}: would cut off members: waiting for ${found.waiting}; give --wait to wait for them, or --force to go on: they have to join again then`,
  );
}

interface Asked {
  readonly deps: CliDeps;
  readonly flags: WaitFlags;
  readonly look: () => Promise<Look>;
}

function waitFor(step: RotationStep, flags: WaitFlags) {
  return { what: `rotate-ca ${step}`, timeoutMs: parseTimeout(flags.timeout) };
}

async function lookForAll(at: RotationPlace, done: string): Promise<Look> {
  try {
    const lost = await withoutAuthority(at);
    return lost.length === 0 ? { done } : { waiting: `${lost.join(', ')} to report trust in the new authority` };
  } catch (error) {
    return { waiting: `an answer of the home, which knows its members: ${errorText(error)}` };
  }
}

const rotationNext = {
  begin: 'the new authority is trusted beside the old one; when all clients have both: portolan api rotate-ca switch',
  switch: 'certificates come from the new authority; when no client has an old one left: portolan api rotate-ca finish',
  finish: 'the old authority is no longer trusted',
};

export async function rotateCa(data: string, step: RotationStep, flags: RotateFlags): Promise<void> {
  const world = createRealWorld();
  const at = { world, directory: resolve(data), log: processLog(world, 'warn') };
  const deps = { world, host: createRealHost(), print: (line: string) => process.stdout.write(`${line}\n`) };
  const look = () => lookForAll(at, 'nobody is cut off');
  if (step !== 'begin' && !flags.force) await refuseToLose(step, { deps, flags, look });
  await rotateAuthority(at, step);
  await waitIfAsked(deps, flags, {
    what: `rotate-ca ${step}`,
    look: async () => {
      if (!(await isRotationApplied(at)))
        return { waiting: `the home of ${data} has not rewritten its admin.kubeconfig; does it run?` };
      const done = 'the running home has applied it';
      return step === 'begin' ? lookForAll(at, `${done}, and all members trust the new authority`) : { done };
    },
  });
  process.stdout.write(`${rotationNext[step]}\n`);
}
