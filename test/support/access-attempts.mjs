// Tries connections one after another in small groups. Arguments: JSON of [{ host, port, kind }]; prints JSON of booleans.
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const attempts = JSON.parse(readFileSync(0, 'utf8'));
const answerMs = 1500;

const tcp = ({ host, port }) =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (isReached) => {
      socket.destroy();
      resolve(isReached);
    };
    socket.setTimeout(answerMs, () => end(false));
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });

const udp = ({ host, port }) =>
  new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    let timer;
    const end = (isReached) => {
      clearTimeout(timer);
      socket.close();
      resolve(isReached);
    };
    timer = setTimeout(() => end(false), answerMs);
    socket.once('message', () => end(true));
    socket.once('error', () => end(false));
    socket.connect(port, host, (error) => (error ? end(false) : socket.send('x', () => {})));
  });

const results = new Array(attempts.length);
let next = 0;
const work = async () => {
  while (next < attempts.length) {
    const at = next++;
    results[at] = await (attempts[at].kind === 'udp' ? udp : tcp)(attempts[at]);
  }
};
await Promise.all(Array.from({ length: 32 }, work));
process.stdout.write(JSON.stringify(results));
process.exit(0);
