// A link between two network namespaces on which every frame is late: kernels here have no netem, so a process between two devices
// holds each frame back. Sizes and checksums of segments that the kernel has not cut yet pass unchanged. Needs root.

import { execFileSync, spawn } from 'node:child_process';
import { pathOf } from './counterparts.ts';
import { inNamespace } from './in-namespace.ts';
import { LineProcess } from './proxy-processes.ts';
import { endLater } from './started.ts';

// Numbers of Linux: AF_PACKET 17, SOCK_RAW 3, ETH_P_ALL 3, SOL_PACKET 263, PACKET_VNET_HDR 15, PACKET_IGNORE_OUTGOING 23,
// SO_RCVBUFFORCE 33, SO_SNDBUFFORCE 32, MSG_DONTWAIT 64.
const program = `
use strict; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC); $| = 1;
my ($delay, @names) = @ARGV;
my @sockets = map {
  my $name = $_;
  socket(my $socket, 17, 3, unpack('n', pack('S', 3))) or die "packet socket: $!";
  setsockopt($socket, 263, 15, pack('i', 1)) or die "header: $!";
  setsockopt($socket, 263, 23, pack('i', 1)) or die "outgoing: $!";
  setsockopt($socket, 1, $_, pack('i', 64 << 20)) or die "buffer: $!" for (32, 33);
  open(my $file, '<', "/sys/class/net/$name/ifindex") or die "$name: $!";
  bind($socket, pack('S n i S C C a8', 17, 3, int(<$file>), 0, 0, 0, '')) or die "bind $name: $!";
  $socket;
} @names;
my $all = '';
vec($all, fileno($_), 1) = 1 for @sockets;
my @late;
print "ready\\n";
while (1) {
  my $now = clock_gettime(CLOCK_MONOTONIC);
  while (@late && $late[0][0] <= $now) {
    my (undef, $to, $frame) = @{ shift @late };
    send($to, $frame, 0);
  }
  my $ready = $all;
  select($ready, undef, undef, @late ? $late[0][0] - $now : undef);
  for my $side (0, 1) {
    for (1 .. 32) {
      defined recv($sockets[$side], my $frame, 70000, 64) or last;
      push @late, [clock_gettime(CLOCK_MONOTONIC) + $delay, $sockets[1 - $side], $frame];
    }
  }
}
`;

interface FarLink {
  /** Namespaces. */
  readonly ends: readonly [string, string];
  /** Of the link: `10.89.1`. */
  readonly net: string;
  /** What it adds to an answer. */
  readonly roundTripMs: number;
  /** Its name in both namespaces; no two links of one namespace have the same. */
  readonly device?: string;
}

/** The addresses of both ends. */
export async function connectFarAway({
  ends,
  net,
  roundTripMs,
  device = 'far0',
}: FarLink): Promise<readonly [string, string]> {
  const ip = pathOf('ip')!;
  const between = `${device}-${process.pid}`;
  execFileSync(ip, ['netns', 'add', between]);
  endLater(() => execFileSync(ip, ['netns', 'delete', between]));
  // Nothing of its own is sent.
  inNamespace(between, ['sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1']);
  for (const [index, end] of ends.entries()) {
    execFileSync(ip, ['-n', between, 'link', 'add', `side${index}`, 'type', 'veth', 'peer', device, 'netns', end]);
    inNamespace(between, ['ip', 'link', 'set', `side${index}`, 'up']);
    inNamespace(end, ['ip', 'addr', 'add', `${net}.${index + 1}/30`, 'dev', device]);
    inNamespace(end, ['ip', 'link', 'set', device, 'up']);
  }
  const args = ['netns', 'exec', between, 'perl', '-e', program, String(roundTripMs / 2000), 'side0', 'side1'];
  const relay = new LineProcess(spawn(ip, args));
  endLater(() => relay.stop());
  await relay.next();
  return [`${net}.1`, `${net}.2`];
}
