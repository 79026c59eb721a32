// Connections to clusterset addresses that are not answered: after a second the kernel forgets them, so that the client's own next
// attempt is a new connection and may go to another endpoint. Pure.
//
// In a table of its own that is written once: `nft monitor` 1.0.6 crashes when such an object is deleted, and ours is deleted by
// whoever deletes the table.

import { formatRange, type IpRange } from '../../base/net/ip.ts';

const retryTableName = 'inet portolan-retry';

/** As long as a client waits before it tries again. One that is there keeps its value, whatever is added. */
const retrySeconds = 1;

/** All of it, whatever is there. */
export function retryScript(ranges: readonly IpRange[]): string {
  const chains = ['prerouting', 'output'];
  const lines = [
    `add table ${retryTableName}`,
    ...(['ip', 'ip6'] as const).map(
      (l3) =>
        `add ct timeout ${retryTableName} ${l3}-fast { protocol tcp; l3proto ${l3}; policy = { syn_sent : ${retrySeconds} }; }`,
    ),
    ...chains.flatMap((hook) => [
      `add chain ${retryTableName} ${hook} { type filter hook ${hook} priority -150; policy accept; }`,
      `flush chain ${retryTableName} ${hook}`,
      ...ranges.map((range) => `add rule ${retryTableName} ${hook} ${retryRule(range)}`),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function retryRule(range: IpRange): string {
  const l3 = range.family === 'IPv4' ? 'ip' : 'ip6';
  return `${l3} daddr ${formatRange(range)} meta l4proto tcp ct state new ct timeout set "${l3}-fast"`;
}

/** Also where there is none. */
export const removeRetryScript = `add table ${retryTableName}\ndelete table ${retryTableName}\n`;
