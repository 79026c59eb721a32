// The table that all rules live in, as nft text: maps, hooks and the chains that pick a backend. Pure.
//
// A verdict map leads from address, protocol and port to the chain for that number of backends, which all services share;
// one map for each protocol leads from address, port and a random index to a backend.

import { formatRange, type IpRange } from '../../base/net/ip.ts';
import { drawChain, lotStride, readShareChain, type ShareChain } from './port-plan.ts';

export const tableName = 'inet portolan';

const versions = [4, 6] as const;
const protocols = ['tcp', 'udp', 'sctp'] as const;

export interface TableOptions {
  /** Addresses in these that lead nowhere are refused. */
  readonly ranges: readonly IpRange[];
  /** Connections of this user are never redirected: those of the Envoy that gets the others. */
  readonly redirectExceptUid?: number;
}

interface Declaration {
  readonly name: string;
  readonly body: string;
}

/** Maps whose elements are part of the plan. Those of `affinityMaps` belong to the kernel. */
export const planMaps: readonly Declaration[] = versions.flatMap((version) => {
  const ip = version === 4 ? 'ip' : 'ip6';
  const address = version === 4 ? 'ipv4_addr' : 'ipv6_addr';
  const index = 'numgen random mod 2';
  return [
    { name: `svc${version}`, body: `type ${address} . inet_proto . inet_service : verdict;` },
    { name: `affid${version}`, body: `typeof ${ip} daddr . meta l4proto . th dport . ${index} : meta priority;` },
    // One map for each protocol: with `th dport` in the data, a chain added later is refused ("conflicting protocols").
    ...protocols.flatMap((protocol) => {
      const target = `${ip} daddr . ${protocol} dport`;
      return [
        { name: `${protocol}${version}`, body: `typeof ${target} . ${index} : ${target};` },
        { name: `aff${protocol}${version}`, body: `typeof ${target} . meta priority : ${target};` },
      ];
    }),
    ...(['tcp', 'udp'] as const).map((protocol) => ({
      name: `redirect${protocol}${version}`,
      body: `type ${address} . inet_service : inet_service; flags interval;`,
    })),
  ];
});

export const planSets: readonly Declaration[] = [
  { name: 'hair4', body: 'type ipv4_addr . ipv4_addr;' },
  { name: 'hair6', body: 'type ipv6_addr . ipv6_addr;' },
];

const affinitySize = 'flags dynamic,timeout; size 65536;';

/** Which client stays with which backend. Kept over restarts. */
export const affinityMaps: readonly Declaration[] = [
  {
    name: 'aff4',
    body: `typeof ip saddr . ip daddr . meta l4proto . th dport : meta priority; ${affinitySize}`,
  },
  { name: 'aff6', body: `typeof numgen random mod 2 . numgen random mod 2 : meta priority; ${affinitySize}` },
];

/** Two hashes stand for client and service: nft 1.0.6 aborts on an update whose key holds an IPv6 address. */
function clientKey(version: 4 | 6): string {
  if (version === 4) return 'ip saddr . ip daddr . meta l4proto . th dport';
  const key = 'ip6 saddr . ip6 daddr . meta l4proto . th dport';
  const hash = (seed: number) => `jhash ${key} mod 4294967295 seed 0x${seed}`;
  return `${hash(1)} . ${hash(2)}`;
}

interface Chain {
  readonly name: string;
  /** `type nat hook …`, for those that packets enter by themselves. */
  readonly hook?: string;
  readonly rules: readonly string[];
}

export function fixedChains(options: TableOptions): Chain[] {
  const uid = options.redirectExceptUid;
  const isFirst = 'tcp flags & (fin | syn | rst | ack) == syn';
  return [
    { name: 'refuse', rules: ['meta l4proto tcp reject with tcp reset', 'reject with icmpx port-unreachable'] },
    { name: 'left', rules: options.ranges.map((range) => `${daddr(range)} ${formatRange(range)} goto refuse`) },
    {
      name: 'to-local',
      rules: [
        // A connection that is older than these rules goes on where it goes.
        `meta nfproto ipv4 ${isFirst} redirect to :ip daddr . tcp dport map @redirecttcp4`,
        `meta nfproto ipv6 ${isFirst} redirect to :ip6 daddr . tcp dport map @redirecttcp6`,
        'meta nfproto ipv4 meta l4proto udp redirect to :ip daddr . udp dport map @redirectudp4',
        'meta nfproto ipv6 meta l4proto udp redirect to :ip6 daddr . udp dport map @redirectudp6',
      ],
    },
    {
      name: 'dispatch',
      rules: ['ip daddr . meta l4proto . th dport vmap @svc4', 'ip6 daddr . meta l4proto . th dport vmap @svc6'],
    },
    ...versions.flatMap((version) =>
      protocols.map((protocol) => ({ name: `stick-${protocol}${version}`, rules: [stickRule(protocol, version)] })),
    ),
    // The second jump is for a packet that saw the chain for ten backends and the map with nine.
    { name: 'nat-pre', hook: natHook('prerouting', -100), rules: ['jump dispatch', 'jump dispatch', 'jump to-local'] },
    {
      name: 'nat-out',
      hook: natHook('output', -100),
      rules: [
        'jump dispatch',
        'jump dispatch',
        ...(uid === undefined ? [] : [`meta skuid ${uid} return`]),
        'jump to-local',
      ],
    },
    {
      name: 'nat-post',
      hook: natHook('postrouting', 100),
      rules: [
        // A backend that is sent to itself would see its own address as the sender and its answer would be lost.
        'ct status dnat ip saddr . ip daddr @hair4 masquerade',
        'ct status dnat ip6 saddr . ip6 daddr @hair6 masquerade',
      ],
    },
    { name: 'left-pre', hook: 'type filter hook prerouting priority -99; policy accept;', rules: ['jump left'] },
    { name: 'left-out', hook: 'type filter hook output priority -99; policy accept;', rules: ['jump left'] },
  ];
}

function natHook(hook: string, priority: number): string {
  return `type nat hook ${hook} priority ${priority}; policy accept;`;
}

function stickRule(protocol: string, version: 4 | 6): string {
  const ip = version === 4 ? 'ip' : 'ip6';
  return `dnat ${ip} to ${ip} daddr . ${protocol} dport . meta priority map @aff${protocol}${version}`;
}

/** The rules of a chain named by `chainsOf`. */
export function pickRules(name: string): string[] {
  const share = readShareChain(name);
  if (share !== undefined) return shareRules(name, share);
  const parts = /^(pick|aff)-((?:tcp|udp|sctp)[46])-(\d+)(?:-(\d+)s)?$/.exec(name);
  if (parts === null) throw new Error(`no chain of the plan is called ${name}`);
  const [, , kind = '', count, seconds] = parts;
  const slots = { number: 0, count: Number(count) };
  return seconds === undefined ? [pickRule(kind, slots)] : stickyRules(kind, Number(seconds), idRule(kind, slots));
}

type Slots = Pick<ShareChain['lots'][number], 'number' | 'count'>;

function indexOf({ number, count }: Slots): string {
  return `numgen random mod ${count}${number === 0 ? '' : ` offset ${number * lotStride}`}`;
}

const ipOf = (kind: string) => (kind.endsWith('4') ? 'ip' : 'ip6');

/** Sends the connection to one of the slots. */
function pickRule(kind: string, slots: Slots): string {
  const ip = ipOf(kind);
  return `dnat ${ip} to ${ip} daddr . ${kind.slice(0, -1)} dport . ${indexOf(slots)} map @${kind}`;
}

/** Remembers the id of one of the slots. */
function idRule(kind: string, slots: Slots): string {
  const version = kind.at(-1);
  return `meta priority set ${ipOf(kind)} daddr . meta l4proto . th dport . ${indexOf(slots)} map @affid${version}`;
}

function shareRules(name: string, share: ShareChain): string[] {
  if (share.seconds > 0) return stickyRules(share.kind, share.seconds, `jump ${drawChain(share)}`);
  const { kind } = share;
  return name.startsWith('draw-')
    ? drawRules(share, (slots) => `${idRule(kind, slots)} return`)
    : drawRules(share, (slots) => pickRule(kind, slots));
}

/**
 * Each lot has its part of what those before it left. Without a map: `nft monitor` 1.0.6 takes all maps of a table for
 * unknown after one without a name is gone. Without chains of the lots: with each change the kernel follows all chains of each
 * address again, and a third of that is left so.
 */
function drawRules({ lots }: ShareChain, ruleOf: (slots: Slots) => string): string[] {
  let left = lots.reduce((sum, { perMille }) => sum + perMille, 0);
  return lots.map((lot, index) => {
    const part = Math.round((drawnOf * lot.perMille) / left);
    left -= lot.perMille;
    return index === lots.length - 1 ? ruleOf(lot) : `numgen random mod ${drawnOf} < ${part} ${ruleOf(lot)}`;
  });
}

const drawnOf = 1_000_000;

/** With session affinity: `choose` is the rule that sets the id of a backend for a client that has none. */
function stickyRules(kind: string, seconds: number, choose: string): string[] {
  const version = kind.endsWith('4') ? 4 : 6;
  const client = clientKey(version);
  const remember = `update @aff${version} { ${client} timeout ${seconds}s : meta priority }`;
  const stick = `jump stick-${kind}`;
  return [
    // The packet's priority is the register that holds the backend's id.
    'meta priority set none',
    `meta priority set ${client} map @aff${version} ${remember}`,
    stick,
    `delete @aff${version} { ${client} : meta priority }`,
    choose,
    remember,
    stick,
  ];
}

function daddr(range: IpRange): string {
  return range.family === 'IPv4' ? 'ip daddr' : 'ip6 daddr';
}
