import { expect, test } from 'vitest';
import { type Ends, judge } from './capture.ts';

const [west, gate, east] = ['02:00:00:00:00:01', '02:00:00:00:00:02', '02:00:00:00:00:03'];
const ends: Ends = {
  clusterOf: new Map([
    [west, 'west'],
    [gate, 'east'],
    [east, 'east'],
  ]),
  gateways: new Set([gate]),
  port: 15_443,
};

interface Sent {
  readonly from?: string;
  readonly to?: string;
  readonly protocol?: number;
  readonly port?: number;
  readonly sequence?: number;
  readonly isFirst?: boolean;
  readonly data?: Buffer;
}

function frame({ from = west, to = gate, protocol = 6, port = 15_443, sequence = 1, isFirst, data }: Sent): Buffer {
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(40_000, 0);
  tcp.writeUInt16BE(port, 2);
  tcp.writeUInt32BE(sequence, 4);
  tcp[12] = 5 << 4;
  tcp[13] = isFirst ? 2 : 16;
  const body = Buffer.concat([tcp, data ?? Buffer.alloc(0)]);
  const ip = Buffer.alloc(20);
  ip[0] = 0x45;
  ip.writeUInt16BE(20 + body.length, 2);
  ip[9] = protocol;
  const ethernet = Buffer.from(`${to}${from}`.replaceAll(':', ''), 'hex');
  return Buffer.concat([ethernet, Buffer.from([8, 0]), ip, body]);
}

const record = (type: number, length: number) =>
  Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length, 7)]);
const first = frame({ isFirst: true, sequence: 0 });

test('capture: TLS in pieces, out of order and twice -> records are counted', () => {
  const bytes = Buffer.concat([record(22, 300), record(23, 40)]);
  const piece = (from: number, to: number) => frame({ sequence: 1 + from, data: bytes.subarray(from, to) });
  const frames = [first, piece(0, 3), piece(200, 307), piece(3, 200), piece(3, 200), piece(307, 350)];
  const { records, problems, connections } = judge(frames, ends);
  expect(judge([frame({})], ends).problems).toEqual([]);
  expect([[...records], problems, connections]).toEqual([
    [
      [22, 1],
      [23, 1],
    ],
    [],
    1,
  ]);
});

test.each<[string, Buffer[], string]>([
  ['plain HTTP to the port of the gateway', [first, frame({ data: Buffer.from('GET / HTTP/1.1') })], 'no TLS record'],
  ['another port', [frame({ port: 8080, isFirst: true })], 'TCP port 40000 to 8080'],
  ['the port on a machine that has no gateway', [frame({ to: east, isFirst: true })], 'TCP port 40000 to 15443'],
  ['UDP', [frame({ protocol: 17 })], 'IP protocol 17'],
  ['a connection from before', [frame({ data: record(23, 1) })], 'its beginning was not seen'],
  ['a gap', [first, frame({ sequence: 99, data: record(23, 1) })], 'frames are missing'],
])('capture: %s -> said', (_what, frames, problem) => {
  expect(judge(frames, ends).problems.join()).toContain(problem);
});

test('capture: inside one cluster -> not looked at', () => {
  expect(judge([frame({ from: east, port: 8080 })], ends)).toMatchObject({ frames: 0, problems: [] });
});
