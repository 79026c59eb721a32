// Which connections the kernel tells of: those to clusterset addresses, a bounded number of new ones each second, and of each its
// start, its first answer and its end. The others are counted. Pure.
//
// In a table of its own. Whoever else listens to the kernel's events gets these three of our connections, and all of any other.

import { formatRange, type IpRange } from '../../base/net/ip.ts';

export const flowsTableName = 'inet portolan-flows';

/** New connections of each second that are told of, at most. */
const perSecondMax = 500;

const recorded = `limit rate ${perSecondMax}/second burst ${perSecondMax} packets ct event set new,reply,destroy`;
/** Nothing ever sets labels on these: so they are silent. */
const silent = 'counter ct event set label';

/** All of it, whatever is there: what was counted is lost. */
export function flowsScript(ranges: readonly IpRange[]): string {
  const lines = [
    removeFlowsScript.trimEnd(),
    `add table ${flowsTableName}`,
    `add chain ${flowsTableName} first`,
    `add rule ${flowsTableName} first ${recorded} accept`,
    `add rule ${flowsTableName} first ${silent}`,
    ...['prerouting', 'output'].flatMap((hook) => [
      `add chain ${flowsTableName} ${hook} { type filter hook ${hook} priority -145; policy accept; }`,
      ...ranges.map((range) => {
        const ip = range.family === 'IPv4' ? 'ip' : 'ip6';
        return `add rule ${flowsTableName} ${hook} ct state new ${ip} daddr ${formatRange(range)} goto first`;
      }),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

/** Also where there is none. */
export const removeFlowsScript = `add table ${flowsTableName}\ndelete table ${flowsTableName}\n`;

/** From `nft -j list table`: connections that were not told of since the table was written. */
export function readUntold(json: string): number {
  const { nftables } = JSON.parse(json) as { nftables?: readonly { rule?: { expr?: readonly unknown[] } }[] | null };
  let untold = 0;
  for (const each of nftables ?? [])
    for (const part of each?.rule?.expr ?? []) {
      const packets = (part as { counter?: { packets?: unknown } } | null)?.counter?.packets;
      if (typeof packets === 'number') untold += packets;
    }
  return untold;
}
