// Connections to clusterset addresses that are not answered: after a second the kernel forgets them, so that the client's own next
// attempt is a new connection and may go to another endpoint. Later where a cluster is farther away than that. Pure.
//
// In a table of its own whose objects stay: `nft monitor` 1.0.6 crashes when one is deleted, and ours is deleted by whoever deletes the
// table. One that is there keeps its value, whatever is added: so there is one for each time.

import { formatRange, type IpRange } from '../../base/net/ip.ts';

const retryTableName = 'inet portolan-retry';

/** The first is as long as a client waits before it tries again. */
const retrySeconds = [1, 2, 4] as const;
type RetrySeconds = (typeof retrySeconds)[number];

/** For the farthest cluster that this node has measured: an answer that is under way is waited for. */
export function retryAfter(longestRttMs: number): RetrySeconds {
  return retrySeconds.find((seconds) => seconds * 1000 >= longestRttMs * 1.25) ?? retrySeconds.at(-1)!;
}

/** All of it, whatever is there. */
export function retryScript(ranges: readonly IpRange[], seconds: RetrySeconds): string {
  const chains = ['prerouting', 'output'];
  const lines = [
    `add table ${retryTableName}`,
    ...(['ip', 'ip6'] as const).map(
      (l3) =>
        `add ct timeout ${retryTableName} ${l3}-after-${seconds} { protocol tcp; l3proto ${l3}; policy = { syn_sent : ${seconds} }; }`,
    ),
    ...chains.flatMap((hook) => [
      `add chain ${retryTableName} ${hook} { type filter hook ${hook} priority -150; policy accept; }`,
      `flush chain ${retryTableName} ${hook}`,
      ...ranges.map((range) => `add rule ${retryTableName} ${hook} ${retryRule(range, seconds)}`),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function retryRule(range: IpRange, seconds: RetrySeconds): string {
  const l3 = range.family === 'IPv4' ? 'ip' : 'ip6';
  return `${l3} daddr ${formatRange(range)} meta l4proto tcp ct state new ct timeout set "${l3}-after-${seconds}"`;
}

/** Also where there is none. */
export const removeRetryScript = `add table ${retryTableName}\ndelete table ${retryTableName}\n`;
