// Which runs of conntrack removed backends cost.

import { expect, test } from 'vitest';
import type { Command, Host } from '../../base/host.ts';
import { silentLog } from '../../base/log.ts';
import { Conntrack } from './conntrack.ts';
import type { GoneBackend } from './ruleset.ts';

const gone = (ip: string, backend: string, protocol: 'tcp' | 'udp' = 'udp'): GoneBackend => {
  return { ip, version: ip.includes(':') ? 6 : 4, protocol, backend: `${backend} . 8080` };
};
const flow = (vip: string, backend: string) =>
  `udp      17 29 src=10.9.0.1 dst=${vip} sport=4000 dport=53 [UNREPLIED] src=${backend} dst=10.9.0.1 sport=5353 dport=4000 mark=0 use=1`;

function start(listing: readonly string[]) {
  const runs: string[] = [];
  const run = async ({ args }: Command) => {
    runs.push(args.join(' '));
    const stdout = args.includes('-L') ? `${listing.join('\n')}\n` : '';
    return { kind: 'exited' as const, code: 0, stdout, stderr: '' };
  };
  const host: Host = { environment: {}, readText: async () => undefined, run };
  return { runs, conntrack: new Conntrack(host, silentLog) };
}

test('conntrack: 1,000 backends go at once, three flows lead to two of them -> one listing and two removals', async () => {
  const listing = [
    flow('243.0.0.1', '10.1.0.1'),
    flow('243.0.0.1', '10.1.0.1'),
    flow('243.0.0.2', '10.1.0.7'),
    flow('243.0.0.1', '10.2.0.1'),
  ];
  const { runs, conntrack } = start(listing);
  const backends = Array.from({ length: 500 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  await conntrack.clear(backends.flatMap((backend) => ['243.0.0.1', '243.0.0.2'].map((vip) => gone(vip, backend))));
  expect(runs).toEqual([
    '-L -p udp',
    '-D -p udp --orig-dst 243.0.0.1 --reply-src 10.1.0.1',
    '-D -p udp --orig-dst 243.0.0.2 --reply-src 10.1.0.7',
  ]);
});

test('conntrack: nothing leads to them -> one listing for each protocol and family', async () => {
  const { runs, conntrack } = start([flow('243.0.0.1', '10.2.0.1')]);
  await conntrack.clear([
    gone('243.0.0.1', '10.1.0.1'),
    gone('243.0.0.1', '10.1.0.1', 'tcp'),
    gone('fd00::1', 'fd01::1'),
  ]);
  expect(runs).toEqual(['-L -p udp', '-L -p tcp --state SYN_SENT', '-L -f ipv6 -p udp']);
});

test('conntrack: backends go one after the other while it runs -> they share the next listing', async () => {
  const { runs, conntrack } = start([]);
  await Promise.all(Array.from({ length: 50 }, (_, i) => conntrack.clear([gone('243.0.0.1', `10.1.0.${i}`)])));
  expect(runs.length).toBeLessThanOrEqual(2);
});

test.each([
  ['many backends of few addresses', 2, 30, ['--orig-dst 243.0.0.0', '--orig-dst 243.0.0.1']],
  ['many addresses', 40, 1, ['--orig-dst 243.0.0.0/26']],
])('conntrack: more flows than runs are made for, %s -> taken together', async (_what, vips, each, removals) => {
  const pairs = Array.from({ length: vips }, (_, v) =>
    Array.from({ length: each }, (_, b) => [`243.0.0.${v}`, `10.1.${v}.${b}`] as const),
  ).flat();
  const { runs, conntrack } = start(pairs.map(([vip, backend]) => flow(vip, backend)));
  await conntrack.clear(pairs.map(([vip, backend]) => gone(vip, backend)));
  expect(runs.slice(1)).toEqual(removals.map((removal) => `-D -p udp ${removal}`));
});
