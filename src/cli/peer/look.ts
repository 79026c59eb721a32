// Conditions that the commands about peers wait for with `--wait`.

import { getOrUndefined } from '../../kube/client/absent.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../../peering/kinds/peer-export.ts';
import type { Look } from '../wait.ts';
import { isKnown, type PeerHome } from './add.ts';
import { servicesOf } from './show.ts';

export async function lookIntroduced(home: PeerHome, name: string): Promise<Look> {
  if (await isKnown(home, name)) return { done: `peer ${name} has used the token` };
  return { waiting: `${name} has not used the token yet` };
}

export async function lookSynced({ client, namespace }: PeerHome, name: string): Promise<Look> {
  const { spec, status } = await client.get<Peer>(peerType, { namespace, name });
  if (spec.address === undefined) return { done: `peer ${name} has no address: nothing is taken from it` };
  const { state, message } = status?.consumer ?? {};
  if (state === 'Synced') return { done: `peer ${name} is synced: ${status?.consumer?.services ?? 0} services` };
  return {
    waiting: `peer ${name} is ${state ?? 'not seen by the peering process yet'}${message ? `: ${message}` : ''}`,
  };
}

export async function lookTaken(
  { client }: PeerHome,
  service: { readonly namespace: string; readonly name: string },
): Promise<Look> {
  const { metadata, spec, status } = await client.get<PeerExport>(peerExportType, service);
  const isCurrent = status?.observedGeneration === metadata.generation;
  const waiting = (spec?.peers ?? []).filter(
    (peer) => !isCurrent || status?.peers?.find((one) => one.peer === peer)?.state !== 'Acknowledged',
  );
  if (waiting.length === 0)
    return { done: `${service.namespace}/${service.name} is taken by ${spec?.peers?.join(', ')}` };
  const refused = status?.peers?.find(({ state }) => state === 'Refused');
  const why = refused === undefined ? '' : `: ${refused.message ?? 'it refuses the service'}`;
  return { waiting: `not taken by ${waiting.join(', ')}${why}` };
}

export async function lookGone(home: PeerHome, name: string): Promise<Look> {
  const { client, namespace } = home;
  const isThere = (await getOrUndefined<Peer>(client, peerType, { namespace, name })) !== undefined;
  const count = (await servicesOf(home, name)).length;
  if (!isThere && count === 0) return { done: `peer ${name} is gone` };
  return { waiting: `${count} services of peer ${name} are still there` };
}
