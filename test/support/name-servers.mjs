// TCP, HTTP and UDP servers that answer with their name. Told which by JSON: [{ kind, address, port, says }]. Prints a line
// when all of them listen. A TCP client gets the name at once, and again for each line that it sends.
import { createSocket } from 'node:dgram';
import { createServer as createHttp } from 'node:http';
import { createServer } from 'node:net';

const servers = JSON.parse(process.argv[2]);
await Promise.all(servers.map(start));
process.stdout.write('ready\n');

function start({ kind, address, port, says }) {
  return new Promise((resolve, reject) => {
    if (kind === 'udp') {
      const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      socket.on('message', (_message, from) => socket.send(says, from.port, from.address));
      socket.once('error', reject);
      return socket.bind(port, address, resolve);
    }
    const server =
      kind === 'http'
        ? createHttp((_request, response) => response.end(says))
        : createServer((socket) => {
            socket.on('error', () => {});
            socket.write(`${says}\n`);
            socket.on('data', () => socket.write(`${says}\n`));
          });
    server.once('error', reject);
    server.listen(port, address, 4096, resolve);
  });
}
