// A virtual address of its own for each PeerService, in the ranges set aside for peers: taken when it comes, written to its
// status, and given back when it goes. Names and proxies read it from there.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { type Allocator, claimsByOwner, createAllocator } from '../../addresses/allocator.ts';
import { ownerKey } from '../../addresses/claim.ts';
import { type IpRange, parseRange } from '../../base/ip.ts';
import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import { createQueue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { type PeerService, peerServiceType } from '../kinds/peer-service.ts';

export interface PeerAddressesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly namespace: string;
  /** CIDRs, one for each family. */
  readonly ranges: readonly string[];
}

/** What is kept of a service: 50,000 of them are in memory. */
interface Kept {
  readonly isUsable: boolean;
  readonly ips: readonly string[];
}

/** As long as a clusterset keeps the address of a service that went, for when it comes back. */
const holdMs = 24 * 3_600_000;
const sweepEveryMs = 600_000;
const writesMax = 32;

export async function startPeerAddresses(options: PeerAddressesOptions): Promise<{ stop(): Promise<void> }> {
  const { world, log, home: client, namespace } = options;
  const ranges = options.ranges.map(rangeOf);
  const claims = createInformer<AddressClaim>({
    ...{ client, world, log, type: addressClaimType },
    indexes: { [claimsByOwner]: (claim) => [ownerKey(claim.spec.owner)] },
  });
  const services = createInformer<PeerService, Kept>({
    ...{ client, world, log, namespace, type: peerServiceType },
    keep: ({ spec, status }) => ({ isUsable: spec.fqdn !== undefined, ips: status?.ips ?? [] }),
  });
  const allocator = createAllocator({ home: client, world, log, claims, holdMs: () => holdMs });
  const queue = createQueue({
    name: 'peer-addresses',
    world,
    concurrency: writesMax,
    work: async (key) => {
      if (key === sweepKey) {
        await allocator.sweep();
        return { requeueAfterMs: sweepEveryMs };
      }
      await settle({ client, allocator, ranges, namespace, name: key.slice(namespace.length + 1) }, services.get(key));
      return undefined;
    },
    onFailure: ({ key, error }) => log.warn('no address for a peer service yet', { key, error: errorText(error) }),
  });
  services.on((key, next, previous) => {
    if (next?.isUsable !== previous?.isUsable || !isSameJson(next?.ips, previous?.ips)) queue.add(key);
  });
  claims.start();
  services.start();
  await Promise.all([claims.whenSynced(), services.whenSynced()]);
  for (const claim of claims.values()) {
    const { kind, name } = claim.spec.owner;
    if (kind === 'PeerService' && services.get(`${namespace}/${name}`) === undefined) queue.add(`${namespace}/${name}`);
  }
  queue.add(sweepKey);
  queue.start();
  return {
    stop: async () => {
      services.stop();
      claims.stop();
      await queue.stop();
    },
  };
}

const sweepKey = '';

interface Subject {
  readonly client: Client;
  readonly allocator: Allocator;
  readonly ranges: readonly IpRange[];
  readonly namespace: string;
  readonly name: string;
}

async function settle(subject: Subject, service: Kept | undefined): Promise<void> {
  const { client, allocator, ranges, namespace, name } = subject;
  const owner = { kind: 'PeerService', namespace, name };
  if (service === undefined || !service.isUsable) return allocator.release(owner);
  const ips: string[] = [];
  for (const range of ranges) {
    const held = await allocator.hold({ owner, range, preferred: service.ips });
    if (held.kind === 'held') ips.push(held.address);
  }
  await allocator.release(owner, ips);
  if (isSameJson(ips, service.ips)) return;
  const patch = { kind: 'merge' as const, body: { status: { ips } } };
  await client.patch(peerServiceType, { namespace, name }, patch, { subresource: 'status' }).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
}

function rangeOf(text: string): IpRange {
  const range = parseRange(text);
  if (range === undefined) throw new Error(`--address-range ${text}: expected a range such as 241.64.0.0/16`);
  return range;
}
