// Every endpoint of all cases: servers that say at which of their addresses they were reached, by TCP and by gRPC. Prints a line when
// all of them listen.

import { createServer as createHttp2 } from 'node:http2';
import { createServer } from 'node:net';
import { grpcPorts, tcpPorts } from './objects.ts';

const backlog = 4096;

function serveTcp(port: number): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(socket.localAddress ?? '');
  });
  return new Promise((resolve) => server.listen({ port, host: '0.0.0.0', backlog }, resolve));
}

/** One message for each call, framed as gRPC has it. */
function serveGrpc(port: number): Promise<void> {
  const server = createHttp2();
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    const text = Buffer.from(stream.session?.socket.localAddress ?? '');
    const frame = Buffer.alloc(5 + text.length);
    frame.writeUInt32BE(text.length, 1);
    text.copy(frame, 5);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.resume();
    stream.end(frame);
  });
  return new Promise((resolve) => server.listen({ port, host: '0.0.0.0', backlog }, resolve));
}

await Promise.all([...tcpPorts.map(serveTcp), ...grpcPorts.map(serveGrpc)]);
process.stdout.write('ready\n');
