// The yardstick of `npm run bench:dns`: the least a DNS server in Node can do. Looks nothing up and checks nothing: sends the
// question back with three addresses. What ours needs more than this is ours.

import { createSocket } from 'node:dgram';

const records = Buffer.concat(
  [10, 11, 12].map((first) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, first, 0, 0, 1])),
);
const block = new Uint8Array(1 << 20);
let at = 0;
const socket = createSocket({ type: 'udp4', lookup: (host, _options, done) => done(null, host, 4) });
socket.on('message', (packet, client) => {
  if (at + 1024 > block.length) at = 0;
  // The question ends where an OPT, if there is one, begins.
  let end = 12;
  while (packet[end] !== 0) end += packet[end] + 1;
  end += 5;
  for (let i = 0; i < end; i++) block[at + i] = packet[i];
  block[at + 2] = 0x85;
  block[at + 3] = 0;
  block[at + 7] = 3;
  block[at + 11] = 0;
  block.set(records, at + end);
  const length = end + records.length;
  socket.send(block, at, length, client.port, client.address);
  at += length;
});
socket.bind(0, '127.0.0.1', () => {
  socket.setRecvBufferSize(8 << 20);
  socket.setSendBufferSize(8 << 20);
  console.log(JSON.stringify({ port: socket.address().port, pid: process.pid }));
});
process.stdin.on('end', () => process.exit(0)).resume();
