// Run inside a namespace: asks one name over and over while another is asked beside it, and prints how many answers to the
// first were slow. Arguments: server, name, name asked beside, how many, and from how many milliseconds on one is slow.
import { createSocket } from 'node:dgram';

const [server, name, beside, count, slowMs] = process.argv.slice(2);
const socket = createSocket('udp4');
const waiting = new Map();
let id = 0;

socket.on('message', (reply) => waiting.get(reply.readUInt16BE(0))?.(reply[3] & 15));

function ask(question) {
  const own = (id = (id + 1) & 0xffff);
  const labels = question.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const head = [own >> 8, own & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const end = (rcode) => {
      clearTimeout(timer);
      waiting.delete(own);
      resolve({ ms: performance.now() - startedMs, rcode });
    };
    const timer = setTimeout(() => end(-1), 5000);
    waiting.set(own, end);
    socket.send(Buffer.from([...head, ...labels, 0, 0, 1, 0, 1]), 53, server);
  });
}

let slow = 0;
const codes = {};
for (let i = 0; i < Number(count); i++) {
  // A name of its own each time: a cache would hide that nobody answers.
  void ask(`x${i}.${beside}`);
  const { ms, rcode } = await ask(name);
  if (ms >= Number(slowMs)) slow += 1;
  codes[rcode] = (codes[rcode] ?? 0) + 1;
  await new Promise((resolve) => setTimeout(resolve, 2));
}
console.log(JSON.stringify({ slow, codes }));
process.exit(0);
