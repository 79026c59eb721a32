// A gRPC client in JavaScript that resolves its target by xDS. For each number it reads it makes that many calls and prints how many
// were answered by whom. A `!` behind the number: calls that do not wait for a connection. Behind a space: another target, and how
// many calls are under way at a time (one if nothing is said).
import { createInterface } from 'node:readline';
import * as grpc from '@grpc/grpc-js';
import { register } from '@grpc/grpc-js-xds';

register();
const same = (bytes) => bytes;
const clientOf = (target) => new grpc.Client(target, grpc.credentials.createInsecure());

function call(client, waitForReady) {
  return new Promise((resolve) => {
    const metadata = new grpc.Metadata({ waitForReady });
    const options = { deadline: Date.now() + 15_000 };
    client.makeUnaryRequest('/test.Who/Am', same, same, Buffer.alloc(0), metadata, options, (error, reply) =>
      resolve(error ? `error: ${error.details}` : reply.toString()),
    );
  });
}

let [target = '', client] = [process.argv[2]];
for await (const line of createInterface({ input: process.stdin })) {
  const [number, wanted = target, lanes = '1'] = line.split(' ');
  if (client === undefined || wanted !== target) {
    const before = client;
    [target, client] = [wanted, clientOf(wanted)];
    // Not sooner: without a channel the connection to the discovery server ends, and is not always made again.
    before?.close();
  }
  const counts = {};
  let left = Number.parseInt(number, 10);
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const name = await call(client, !number.endsWith('!'));
      counts[name] = (counts[name] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: Number(lanes) }, lane));
  console.log(JSON.stringify(counts));
}
process.exit(0);
