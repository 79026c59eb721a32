// `portolan uninstall`: takes the parts away again. Definitions stay, and with them everything that people made.

import type { Command } from 'commander';
import { findMembership } from '../../clusterset/explain/consult.ts';
import { hasOurs } from '../../install/coredns/cluster-dns.ts';
import { everyObject } from '../../install/objects.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { leaseType } from '../../kube/objects/lease.ts';
import { isOurs, systemNamespace } from '../../kube/objects/ours.ts';
import { partLabel } from '../../kube/objects/part-lease.ts';
import { CommandError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { refuseHelm, refuseMissingRights, typesOf } from './before.ts';
import { readClusterDns } from './cluster-dns.ts';
import { describe } from './describe.ts';
import { obsoleteObjects, readRecord, recordRef, type WrittenObject } from './record.ts';
import { removeOurs } from './remove.ts';

export function addUninstallCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('uninstall')
    .description(verbs.uninstall)
    .option('--force', 'even while the cluster is a member of a clusterset');
  addWaitOptions(addHomeOptions(command), 'everything is gone').action(
    (flags: HomeFlags & WaitFlags & { force?: boolean }) =>
      withHome(deps, flags, async ({ client }) => {
        const membership = flags.force ? undefined : await findMembership(client);
        if (membership !== undefined) {
          const { clusterId, clusterset } = membership;
          throw new CommandError(
            'refused',
            `cluster ${clusterId} is a member of clusterset ${clusterset}; run portolan leave first, or give --force`,
          );
        }
        await refuseHelm(client, 'uninstall');
        const objects = await installedObjects(client);
        const types = typesOf([...objects, { type: leaseType }]);
        await refuseMissingRights(client, 'uninstalling', [
          ...types.map((type) => ({ verb: 'delete', type })),
          { verb: 'deletecollection', type: leaseType },
        ]);
        await removeOurs(deps, client, objects);
        await removeLeases(client);
        await waitIfAsked(deps, flags, { what: 'uninstall', look: () => lookRemoved(client) });
        if (hasOurs(await readClusterDns(client)))
          deps.print('note: CoreDNS still asks portolan-dns, which is gone; portolan coredns --remove takes it out');
        deps.print('uninstalled; definitions, the namespace portolan-system and your objects are still there');
      }),
  );
}

/** The last written first. The record is the last to go: until then the command can be repeated. */
async function installedObjects(client: Client): Promise<WrittenObject[]> {
  const written = everyObject().map(({ type, object: { metadata } }) => ({ type, ref: metadata }));
  const obsolete = obsoleteObjects(await readRecord(client), everyObject());
  return [{ type: configMapType, ref: recordRef }, ...written, ...obsolete].reverse();
}

/** Only parts that crashed leave a Lease; the others remove theirs. */
async function removeLeases(client: Client): Promise<void> {
  await client.deleteCollection(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
}

async function lookRemoved(client: Client): Promise<Look> {
  for (const { type, ref } of await installedObjects(client)) {
    const present = await getOrUndefined(client, type, ref);
    if (present !== undefined && isOurs(present)) return { waiting: `${describe(type, ref)} is still there` };
  }
  return { done: 'everything is gone' };
}
