// Servers of gRPC that say at which of their addresses they were reached. Frames by hand: a tenth of what a call costs in a whole
// server of HTTP/2, and the clients are what is tested. Prints a line when all of them listen.

import { createServer, type Socket } from 'node:net';
import { grpcPorts } from './objects.ts';

const [data, headers, settings, ping, windowUpdate] = [0, 1, 4, 6, 8];
const [endStream, ack, endHeaders] = [1, 1, 4];
const prefaceLength = 24;

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

// HPACK, RFC 7541: `:status: 200` and `content-type` are in its static table.
const head = Buffer.concat([Buffer.from([0x88, 0x0f, 0x10, 16]), Buffer.from('application/grpc')]);
const trailer = Buffer.concat([Buffer.from([0, 11]), Buffer.from('grpc-status'), Buffer.from([1]), Buffer.from('0')]);
const largeWindow = Buffer.from([0x40, 0, 0, 0]);

function answerOf(text: string): (stream: number) => Buffer {
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text)]);
  const frames = [
    frame(headers, endHeaders, 0, head),
    frame(data, 0, 0, message),
    frame(headers, endHeaders | endStream, 0, trailer),
  ];
  const whole = Buffer.concat(frames);
  const starts = frames.map((_, index) => frames.slice(0, index).reduce((sum, { length }) => sum + length, 0));
  return (stream) => {
    const copy = Buffer.from(whole);
    for (const start of starts) copy.writeUInt32BE(stream, start + 5);
    return copy;
  };
}

function serve(socket: Socket): void {
  const answer = answerOf(socket.localAddress ?? '');
  let rest = Buffer.alloc(0);
  let skipped = prefaceLength;
  socket.on('error', () => {});
  socket.setNoDelay(true);
  socket.write(Buffer.concat([frame(settings, 0, 0), frame(windowUpdate, 0, 0, largeWindow)]));
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const out: Buffer[] = [];
    let at = Math.min(skipped, rest.length);
    skipped -= at;
    while (rest.length - at >= 9 && rest.length - at >= 9 + rest.readUIntBE(at, 3)) {
      const length = rest.readUIntBE(at, 3);
      const [type, flags, stream] = [rest[at + 3]!, rest[at + 4]!, rest.readUInt32BE(at + 5)];
      if (type === settings && (flags & ack) === 0) out.push(frame(settings, ack, 0));
      if (type === ping && (flags & ack) === 0) out.push(frame(ping, ack, 0, rest.subarray(at + 9, at + 9 + length)));
      if ((type === headers || type === data) && (flags & endStream) !== 0) out.push(answer(stream));
      at += 9 + length;
    }
    rest = rest.subarray(at);
    if (out.length > 0) socket.write(Buffer.concat(out));
  });
}

await Promise.all(
  grpcPorts.map((port) => {
    const server = createServer(serve);
    return new Promise<void>((resolve) => server.listen({ port, host: '0.0.0.0', backlog: 4096 }, resolve));
  }),
);
process.stdout.write('ready\n');
