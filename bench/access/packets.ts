// CPU time of one packet of an established connection through a node, as the sender pays it: the kernel forwards a packet of a
// veth device on behalf of the process that sent it. A sender in Perl, because a datagram costs Node five times as much.

import type { Namespaces, Place } from '../../test/support/namespaces.ts';
import { LineProcess } from '../../test/support/proxy-processes.ts';
import { target } from './catalog.ts';

// Answers once, so that the connection is established, and reads no more: what comes then is dropped at its socket.
const receiver = `
use strict; use IO::Socket::INET; $| = 1;
my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => $ARGV[0], LocalPort => $ARGV[1]) or die "$@";
print "ready\\n";
$socket->recv(my $text, 100); $socket->send('y');
<STDIN>;
`;

// For each line, sends as many packets and prints the CPU time of one in microseconds.
const sender = `
use strict; use IO::Socket::INET; use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID); $| = 1;
my $socket = IO::Socket::INET->new(Proto => 'udp', PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die "$@";
$socket->send('x'); $socket->recv(my $text, 100);
print "ready\\n";
while (my $count = <STDIN>) {
  my $start = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
  for (1..$count) { send($socket, 'x', 0) }
  printf "%.4f\\n", (clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $start) * 1e6 / $count;
}
`;

export interface PacketSender {
  /** Microseconds of CPU time for each of them. */
  cost(packets: number): Promise<number>;
  stop(): Promise<void>;
}

export async function startSender(net: Namespaces, from: Place, to: Place): Promise<PacketSender> {
  const ends = [target.address, String(target.port)];
  const lines: LineProcess[] = [];
  for (const [place, program] of [
    [to, receiver],
    [from, sender],
  ] as const) {
    const one = new LineProcess(net.start(place, 'perl', ['-e', program, ...ends]));
    lines.push(one);
    await one.next();
  }
  return {
    cost: (packets) => lines[1]!.ask<number>(packets),
    stop: async () => {
      for (const one of lines) await one.stop();
    },
  };
}
