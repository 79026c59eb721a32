// A virtual address of its own for each PeerService, in the ranges set aside for peers: taken when it comes, written to its
// status, and given back when it goes. Names and proxies read it from there.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { Allocator, claimsByOwner } from '../../addresses/allocator.ts';
import { ownerKey } from '../../addresses/claim.ts';
import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import { type IpFamily, type IpRange, parseRange } from '../../base/net/ip.ts';
import { Queue } from '../../base/queue.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import { type PeerService, peerServiceType } from '../kinds/peer-service.ts';

export interface PeerAddressesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly namespace: string;
  /** CIDRs, one for each family. */
  readonly ranges: readonly string[];
}

/** The kept fields of a service: 50,000 of them are in memory. */
interface Kept {
  readonly isUsable: boolean;
  readonly ips: readonly string[];
  /** Undefined for almost all of them. */
  readonly conditions?: readonly Condition[];
  readonly resourceVersion: string;
}

const sweepEveryMs = 600_000;
const writesMax = 32;
/** Addresses of services that went come free without a word. */
const exhaustedRetryMs = 60_000;

export async function startPeerAddresses(options: PeerAddressesOptions): Promise<{ stop(): Promise<void> }> {
  const { world, log, home: client, namespace } = options;
  const ranges = options.ranges.map(rangeOf);
  const claims = createInformer<AddressClaim>({
    ...{ client, world, log, type: addressClaimType },
    indexes: { [claimsByOwner]: (claim) => [ownerKey(claim.spec.owner)] },
  });
  const services = createInformer<PeerService, Kept>({
    ...{ client, world, log, namespace, type: peerServiceType },
    keep: ({ metadata, spec, status }) => ({
      isUsable: spec.fqdn !== undefined,
      ips: status?.ips ?? [],
      ...(status?.conditions?.length ? { conditions: status.conditions } : {}),
      resourceVersion: metadata.resourceVersion ?? '',
    }),
  });
  const allocator = new Allocator({ home: client, world, log, claims });
  const queue = new Queue({
    name: 'peer-addresses',
    world,
    concurrency: writesMax,
    work: async (key) => {
      if (key === sweepKey) {
        await allocator.sweep();
        return { requeueAfterMs: sweepEveryMs };
      }
      const now = formatTime(world.clock.wallMs());
      const subject = { client, allocator, ranges, namespace, name: key.slice(namespace.length + 1), now };
      const isExhausted = await settle(subject, services.get(key));
      return isExhausted ? { requeueAfterMs: exhaustedRetryMs } : undefined;
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
  readonly now: string;
}

/** Whether a range has no address left. */
async function settle(subject: Subject, service: Kept | undefined): Promise<boolean> {
  const { client, allocator, ranges, namespace, name, now } = subject;
  const owner = { kind: 'PeerService', namespace, name };
  if (service === undefined || !service.isUsable) {
    await allocator.release(owner);
    return false;
  }
  const ips: string[] = [];
  const exhausted: IpFamily[] = [];
  for (const range of ranges) {
    const held = await allocator.hold({ owner, range, present: service.ips, wishes: [] });
    if (held.kind === 'held') ips.push(held.address);
    else exhausted.push(range.family);
  }
  await allocator.release(owner, ips);
  const conditions = conditionsWith(service.conditions, exhausted, now);
  const hasNews = conditions !== undefined && !isSameJson(conditions, service.conditions ?? []);
  if (isSameJson(ips, service.ips) && !hasNews) return exhausted.length > 0;
  // Others write conditions too: theirs must be the ones that were read.
  const metadata = hasNews ? { metadata: { resourceVersion: service.resourceVersion } } : {};
  const body = { ...metadata, status: { ips, ...(hasNews ? { conditions } : {}) } };
  const patch = { kind: 'merge' as const, body };
  await client.patch(peerServiceType, { namespace, name }, patch, { subresource: 'status' }).catch((error) => {
    if (!isNotFound(error)) throw error;
  });
  return exhausted.length > 0;
}

/** Undefined where nothing is or was wrong: a service with its addresses says nothing of them. */
function conditionsWith(
  present: readonly Condition[] | undefined,
  exhausted: readonly IpFamily[],
  now: string,
): Condition[] | undefined {
  const had = present?.some(({ type }) => type === 'AddressHeld') ?? false;
  if (exhausted.length === 0) return had ? (present ?? []).filter(({ type }) => type !== 'AddressHeld') : undefined;
  const condition = {
    type: 'AddressHeld',
    status: 'False',
    reason: 'RangeExhausted',
    message: `no ${exhausted.join(' and ')} address is left in the range for peers' services: give portolan peering a larger --address-range, or the clusterset a larger one`,
  } as const;
  return [...withConditions(present, [condition], { now })];
}

function rangeOf(text: string): IpRange {
  const range = parseRange(text);
  if (range === undefined) throw new Error(`--address-range ${text}: expected a range such as 241.64.0.0/16`);
  return range;
}
