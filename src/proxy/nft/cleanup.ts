// Takes the proxy's rules and routes off a node. While no other table translates addresses, the kernel stops translating
// with ours, and connections that are open would hang: then they are reset for a moment before the table goes.

import type { Host } from '../../base/host.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { sleep, type Timers } from '../../base/world.ts';
import { removeBytesScript } from './bytes-table.ts';
import { removeCountsScript } from './counts-table.ts';
import { type Nft, removeTable } from './edge/nft.ts';
import { removeFlowsScript } from './flows-table.ts';
import { rangesWithRoutes, removeRoutes } from './node-network.ts';
import { removeRetryScript } from './retry-table.ts';
import { drainScript } from './script.ts';

export interface CleanupOptions {
  readonly host: Host;
  readonly nft: Pick<Nft, 'list' | 'apply'>;
  /** Besides those that the node has routes for. */
  readonly ranges: readonly IpRange[];
  readonly timers: Timers;
}

const resetMs = 2000;
const accessTable = 'inet portolan-access';

export async function cleanUp({ host, nft, ranges, timers }: CleanupOptions): Promise<void> {
  const json = await nft.list('ruleset-without-elements');
  if (hasOurTable(json)) {
    if (!translatesWithoutUs(json)) {
      await nft.apply(drainScript({ ranges: [...ranges, ...(await rangesWithRoutes(host))] }));
      await sleep(timers, resetMs);
    }
    await removeTable(host);
  }
  await nft.apply(removeRetryScript);
  await nft.apply(removeCountsScript);
  await nft.apply(removeBytesScript);
  await nft.apply(removeFlowsScript);
  await nft.apply(`add table ${accessTable}\ndelete table ${accessTable}\n`);
  await removeRoutes(host);
}

interface ListedChain {
  readonly table?: string;
  readonly family?: string;
  readonly type?: string;
  readonly hook?: string;
  readonly name?: string;
  readonly expr?: readonly object[];
}

function objectsIn(json: string): { readonly kind: string; readonly object: ListedChain }[] {
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly Record<string, ListedChain>[] };
  return nftables.flatMap((each) => Object.entries(each).map(([kind, object]) => ({ kind, object })));
}

function hasOurTable(json: string): boolean {
  return objectsIn(json).some(
    ({ kind, object }) => kind === 'table' && object.family === 'inet' && object.name === 'portolan',
  );
}

/** Hooks alone do not do it: the kernel tracks connections while a rule needs it. */
function translatesWithoutUs(json: string): boolean {
  const others = objectsIn(json).filter(({ object }) => object.table !== 'portolan' && object.family !== 'ip6');
  const hooks = others.filter(({ object }) => object.type === 'nat').map(({ object }) => object.hook);
  const translating = ['dnat', 'snat', 'masquerade', 'redirect', 'xt'];
  const hasRule = others.some(({ object }) =>
    (object.expr ?? []).some((each) =>
      translating.some((name) => typeof each === 'object' && each !== null && Object.hasOwn(each, name)),
    ),
  );
  return hooks.includes('prerouting') && hooks.includes('postrouting') && hasRule;
}
