// Run by bench/proxy.ts inside a network namespace: a bare HTTP server, or a client that counts requests for some time.
// Arguments: server ADDRESS PORT | keep-alive|connect|single ADDRESS PORT MILLISECONDS. Prints JSON.
import { connect, createServer } from 'node:net';

const [role, host, port, forMs] = process.argv.slice(2);
const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const response = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const untilMs = performance.now() + Number(forMs);
let count = 0;
const tookMs = [];

if (role === 'server') {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => socket.write(response));
    socket.on('error', () => {});
  });
  server.listen(Number(port), host, 4096, () => process.stdout.write('ready\n'));
} else {
  const lanes = role === 'single' ? 1 : 16;
  await Promise.all(Array.from({ length: lanes }, role === 'keep-alive' ? keepAlive : connections));
  tookMs.sort((a, b) => a - b);
  process.stdout.write(`${JSON.stringify({ count, p50Ms: tookMs[Math.floor(tookMs.length / 2)] })}\n`);
  process.exit(0);
}

function keepAlive() {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), noDelay: true }, () => socket.write(request));
    socket.on('error', reject);
    socket.on('data', () => {
      count += 1;
      if (performance.now() >= untilMs) resolve(socket.destroy());
      else socket.write(request);
    });
  });
}

async function connections() {
  while (performance.now() < untilMs) {
    const startedMs = performance.now();
    await new Promise((resolve, reject) => {
      const socket = connect({ host, port: Number(port), noDelay: true }, () => socket.write(request));
      socket.on('error', reject);
      socket.on('data', () => {
        socket.resetAndDestroy();
        resolve();
      });
    });
    count += 1;
    tookMs.push(performance.now() - startedMs);
  }
}
