// A gRPC client in JavaScript that resolves its target by xDS. For each number it reads it makes that many calls, one after
// the other, and prints how many were answered by whom. A `!` behind the number: calls that do not wait for a connection.
import { createInterface } from 'node:readline';
import * as grpc from '@grpc/grpc-js';
import { register } from '@grpc/grpc-js-xds';

register();
const target = process.argv[2] ?? '';
const client = new grpc.Client(target, grpc.credentials.createInsecure());
const same = (bytes) => bytes;

function call(waitForReady) {
  return new Promise((resolve) => {
    const metadata = new grpc.Metadata({ waitForReady });
    const options = { deadline: Date.now() + 15_000 };
    client.makeUnaryRequest('/test.Who/Am', same, same, Buffer.alloc(0), metadata, options, (error, reply) =>
      resolve(error ? `error: ${error.details}` : reply.toString()),
    );
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const counts = {};
  for (let i = 0; i < Number.parseInt(line, 10); i++) {
    const name = await call(!line.endsWith('!'));
    counts[name] = (counts[name] ?? 0) + 1;
  }
  console.log(JSON.stringify(counts));
}
process.exit(0);
