// Every frame that passes the bridge between the clusters, from a packet socket, and the judgement of it: between two clusters there
// are TLS records to and from the port of a gateway, and nothing else.

import { readFileSync } from 'node:fs';
import { formatIp } from '../../src/base/net/ip.ts';
import type { Namespaces, Place } from '../support/namespaces.ts';
import { LineProcess } from '../support/proxy-processes.ts';

// Numbers of Linux: AF_PACKET 17, SOCK_RAW 3, ETH_P_ALL 3, SO_RCVBUFFORCE 33, SOL_PACKET 263, PACKET_STATISTICS 6, and 4 for frames
// that leave, which were seen when they came in. Prints how many frames the kernel dropped when it is told to end.
const program = `
use strict; $| = 1;
my ($file, $hub) = @ARGV;
socket(my $socket, 17, 3, unpack('n', pack('S', 3))) or die "packet socket: $!";
setsockopt($socket, 1, 33, pack('i', 256 << 20)) or die "buffer: $!";
open(my $out, '>:raw', $file) or die "$file: $!";
my $isOver = 0; $SIG{TERM} = sub { $isOver = 1 };
print "ready\\n";
my $except = pack('H*', $hub);
while (!$isOver) {
  my $from = recv($socket, my $frame, 70000, 0);
  next if !defined $from || unpack('C', substr($from, 10, 1)) == 4;
  next if length $except && (substr($frame, 0, 6) eq $except || substr($frame, 6, 6) eq $except);
  print $out pack('N', length $frame), $frame;
}
close($out);
my (undef, $dropped) = unpack('II', getsockopt($socket, 263, 6));
print "$dropped\\n";
`;

export class Capture {
  readonly #lines: LineProcess;
  readonly #file: string;

  private constructor(lines: LineProcess, file: string) {
    this.#lines = lines;
    this.#file = file;
  }

  /** Frames of the machine's own device `except` are left out. */
  static async start(net: Namespaces, at: Place, file: string, except?: string): Promise<Capture> {
    const mac = except === undefined ? '' : macOf(net, at, except).replaceAll(':', '');
    const lines = new LineProcess(net.start(at, 'perl', ['-e', program, file, mac]));
    if ((await lines.next()) !== 'ready') throw new Error(`the capture did not start: ${lines.errors}`);
    return new Capture(lines, file);
  }

  /** All frames so far; the capture is over. */
  async end(): Promise<{ readonly frames: readonly Buffer[]; readonly dropped: number }> {
    this.#lines.child.kill('SIGTERM');
    const dropped = Number(await this.#lines.next());
    await this.#lines.stop();
    return { frames: framesIn(readFileSync(this.#file)), dropped };
  }

  stop(): Promise<void> {
    return this.#lines.stop();
  }
}

export function macOf(net: Namespaces, place: Place, device = 'eth0'): string {
  return /link\/ether ([0-9a-f:]{17})/.exec(net.ip(place, `link show ${device}`))![1]!;
}

function framesIn(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    frames.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return frames;
}

export interface Opening {
  readonly from: string;
  readonly port: number;
}

/** First packets of TCP connections, datagrams of UDP, packets of SCTP: the address they come from, and the port they go to. Pure. */
export function* openingsIn(frames: Iterable<Buffer>): Generator<Opening> {
  for (const frame of frames) {
    const type = frame.readUInt16BE(12);
    const isFour = type === 0x0800;
    if (!isFour && type !== 0x86dd) continue;
    const ip = frame.subarray(14);
    const [protocol, rest] = isFour ? [ip[9], ip.subarray((ip[0]! & 15) * 4)] : [ip[6], ip.subarray(40)];
    if (protocol !== 17 && protocol !== 132 && !(protocol === 6 && (rest[13]! & 0x12) === 2)) continue;
    const from = isFour ? text(ip, 12) : formatIp({ family: 'IPv6', value: BigInt(`0x${ip.toString('hex', 8, 24)}`) });
    yield { from, port: rest.readUInt16BE(2) };
  }
}

export interface Ends {
  /** By hardware address. */
  readonly clusterOf: ReadonlyMap<string, string>;
  /** Hardware addresses of the machines with gateways. */
  readonly gateways: ReadonlySet<string>;
  readonly port: number;
}

export interface Judgement {
  /** Frames from one cluster to another, without those that look for hardware addresses. */
  readonly frames: number;
  readonly connections: number;
  /** TLS records by type: 22 handshake, 23 data. */
  readonly records: ReadonlyMap<number, number>;
  /** The first of each kind. */
  readonly problems: readonly string[];
}

const problemsMax = 20;

/** Pure. */
export function judge(frames: Iterable<Buffer>, { clusterOf, gateways, port }: Ends): Judgement {
  const flows = new Map<string, Flow>();
  const records = new Map<number, number>();
  const problems = new Set<string>();
  let [count, connections] = [0, 0];
  for (const frame of frames) {
    const [to, from] = [hardware(frame, 0), hardware(frame, 6)];
    const [one, other] = [clusterOf.get(from), clusterOf.get(to)];
    const type = frame.readUInt16BE(12);
    if (one === undefined || other === undefined || one === other || type === 0x0806) continue;
    count += 1;
    const problem = look(frame, type, { from, to });
    if (problem !== undefined && problems.size < problemsMax) problems.add(`from ${one} to ${other}: ${problem}`);
  }
  for (const [name, flow] of flows) if (flow.waiting.size > 0) problems.add(`${name}: frames are missing`);
  return { frames: count, connections, records, problems: [...problems] };

  function look(frame: Buffer, type: number, ends: { readonly from: string; readonly to: string }): string | undefined {
    if (type !== 0x0800) return `ethernet type 0x${type.toString(16)}`;
    const ip = frame.subarray(14, 14 + frame.readUInt16BE(16));
    if (ip[9] !== 6) return `IP protocol ${ip[9]}`;
    const tcp = ip.subarray((ip[0]! & 15) * 4);
    const [source, destination] = [tcp.readUInt16BE(0), tcp.readUInt16BE(2)];
    const isToGateway = destination === port && gateways.has(ends.to);
    const isFromGateway = source === port && gateways.has(ends.from);
    if (!isToGateway && !isFromGateway) return `TCP port ${source} to ${destination}`;
    const name = `${text(ip, 12)}:${source} to ${text(ip, 16)}:${destination}`;
    const sequence = tcp.readUInt32BE(4);
    const isFirst = (tcp[13]! & 2) !== 0;
    if (isFirst) {
      connections += isToGateway ? 1 : 0;
      flows.set(name, { next: (sequence + 1) >>> 0, waiting: new Map(), left: 0, head: Buffer.alloc(0) });
    }
    const flow = flows.get(name);
    const data = tcp.subarray((tcp[12]! >> 4) * 4);
    // A refusal has neither a beginning nor data.
    if (flow === undefined) return data.length === 0 ? undefined : `${name}: its beginning was not seen`;
    if (data.length > 0 && !isFirst) flow.waiting.set(sequence, data);
    return take(flow, records);
  }
}

interface Flow {
  /** Sequence number of the next byte. */
  next: number;
  readonly waiting: Map<number, Buffer>;
  /** Bytes until the record ends. */
  left: number;
  /** Of the next record, as far as it has come. */
  head: Buffer;
}

/** Reads what has come in order. */
function take(flow: Flow, records: Map<number, number>): string | undefined {
  let problem: string | undefined;
  for (let isAgain = true; isAgain; ) {
    isAgain = false;
    for (const [sequence, data] of flow.waiting) {
      const known = (flow.next - sequence) | 0;
      if (known < 0) continue;
      flow.waiting.delete(sequence);
      if (known >= data.length) continue;
      problem ??= read(flow, data.subarray(known), records);
      flow.next = (flow.next + data.length - known) >>> 0;
      isAgain = true;
    }
  }
  return problem;
}

const headLength = 5;
const recordLengthMax = 16_384 + 256;

function read(flow: Flow, bytes: Buffer, records: Map<number, number>): string | undefined {
  let at = 0;
  while (at < bytes.length) {
    if (flow.left > 0) {
      const part = Math.min(flow.left, bytes.length - at);
      flow.left -= part;
      at += part;
      continue;
    }
    const part = bytes.subarray(at, at + headLength - flow.head.length);
    flow.head = Buffer.concat([flow.head, part]);
    at += part.length;
    if (flow.head.length < headLength) break;
    const [type, major] = [flow.head[0]!, flow.head[1]!];
    const length = flow.head.readUInt16BE(3);
    const head = flow.head;
    flow.head = Buffer.alloc(0);
    if (type < 20 || type > 23 || major !== 3 || length > recordLengthMax)
      return `no TLS record: ${JSON.stringify(head.toString('latin1'))}`;
    records.set(type, (records.get(type) ?? 0) + 1);
    flow.left = length;
  }
  return undefined;
}

function hardware(frame: Buffer, at: number): string {
  return frame.toString('hex', at, at + 6).replace(/(..)(?=.)/g, '$1:');
}

function text(ip: Buffer, at: number): string {
  return [...ip.subarray(at, at + 4)].join('.');
}
