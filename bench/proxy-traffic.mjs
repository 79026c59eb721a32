// Run by bench/proxy.ts inside a network namespace: a bare HTTP server, or a client that asks several targets in turn, in
// bursts of a few milliseconds, so that other load on the machine falls on all of them alike.
// Arguments: server ADDRESS PORT | keep-alive|connect|single ROUNDS BURST ADDRESS:PORT... It prints, as JSON, the
// microseconds that one request took in each round, by target.
import { connect, createServer } from 'node:net';

const [role, ...args] = process.argv.slice(2);
const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const response = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const warmUpRounds = 20;

if (role === 'server') serve(...args);
else await compare(...args);

function serve(host, port) {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => socket.write(response));
    socket.on('error', () => {});
  });
  server.listen(Number(port), host, 4096, () => process.stdout.write('ready\n'));
}

async function compare(rounds, burst, ...texts) {
  const lanes = role === 'single' ? 1 : 16;
  const targets = await Promise.all(
    texts.map(async (text) => {
      const at = text.lastIndexOf(':');
      const target = { host: text.slice(0, at), port: Number(text.slice(at + 1)), lanes, burst: Number(burst), us: [] };
      return role === 'keep-alive' ? { ...target, run: await overKept(target) } : { ...target, run: overNew(target) };
    }),
  );
  for (let round = -warmUpRounds; round < Number(rounds); round += 1) {
    // Every target goes first equally often.
    const order = targets.map((_, index) => targets[(index + Math.abs(round)) % targets.length]);
    for (const target of round % 2 === 0 ? order : order.reverse()) {
      const startedMs = performance.now();
      await target.run();
      if (round >= 0) target.us.push((1000 * (performance.now() - startedMs)) / target.burst);
    }
  }
  process.stdout.write(`${JSON.stringify(targets.map(({ us }) => us))}\n`, () => process.exit(0));
}

function open({ host, port }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** One burst of requests over connections that stay open. */
async function overKept(target) {
  let left = 0;
  let idle = 0;
  let done;
  const sockets = await Promise.all(Array.from({ length: target.lanes }, () => open(target)));
  for (const socket of sockets)
    socket.on('data', () => {
      if (left > 0) {
        left -= 1;
        socket.write(request);
      } else if (++idle === target.lanes) done();
    });
  return () =>
    new Promise((resolve) => {
      [left, idle, done] = [target.burst - target.lanes, 0, resolve];
      for (const socket of sockets) socket.write(request);
    });
}

/** One burst of connections with a request each. */
function overNew(target) {
  return async () => {
    let left = target.burst;
    const lane = async () => {
      while (left > 0) {
        left -= 1;
        const socket = await open(target);
        await new Promise((resolve) => {
          socket.once('data', resolve);
          socket.write(request);
        });
        socket.resetAndDestroy();
      }
    };
    await Promise.all(Array.from({ length: target.lanes }, lane));
  };
}
