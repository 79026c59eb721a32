// Clients of one namespace. Each line of standard input is an order, answered by a line: how many connections to an address were
// answered by which endpoint, or how many answers to a question began with which address.

import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export type AskOrder =
  | { readonly do: 'connect'; readonly host: string; readonly port: number; readonly count: number }
  | { readonly do: 'look up'; readonly server: string; readonly name: string; readonly count: number };

export interface Asked {
  /** By address of an endpoint; errors by their code. */
  readonly first: Record<string, number>;
  /** All addresses that were in any answer. */
  readonly any: string[];
}

const lanes = 24;
const timeoutMs = 10_000;

function once({ host, port }: Extract<AskOrder, { do: 'connect' }>): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('timeout')));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once('end', () => resolve('ended'));
    socket.once('data', (data) => {
      resolve(String(data));
      // A reset: no port waits for two minutes.
      socket.resetAndDestroy();
    });
  });
}

async function connects(order: Extract<AskOrder, { do: 'connect' }>): Promise<Asked> {
  const first: Record<string, number> = {};
  let begun = 0;
  const lane = async () => {
    while (begun < order.count) {
      begun += 1;
      const answer = await once(order);
      first[answer] = (first[answer] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { first, any: Object.keys(first) };
}

function questionFor(name: string): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]);
  const head = Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
}

/** Addresses in the order of the answer, whose names are all pointers to the question. */
function addressesIn(message: Buffer, questionEnd: number): string[] {
  const found: string[] = [];
  let at = questionEnd;
  for (let left = message.readUInt16BE(6); left > 0; left -= 1) {
    const length = message.readUInt16BE(at + 10);
    if (message.readUInt16BE(at + 2) === 1) found.push(message.subarray(at + 12, at + 16).join('.'));
    at += 12 + length;
  }
  return found;
}

async function looksUp({ server, name, count }: Extract<AskOrder, { do: 'look up' }>): Promise<Asked> {
  const question = questionFor(name);
  const first: Record<string, number> = {};
  const any = new Set<string>();
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.connect(53, server, resolve));
  let [asked, answered] = [0, 0];
  const send = () => {
    question.writeUInt16BE(asked % 65_536);
    asked += 1;
    socket.send(question);
  };
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${name}: ${answered} of ${count} answers`)), 120_000);
    socket.on('message', (message) => {
      const addresses = addressesIn(message, question.length);
      for (const address of addresses) any.add(address);
      const to = addresses[0] ?? `code ${message[3]! & 15}`;
      first[to] = (first[to] ?? 0) + 1;
      answered += 1;
      if (asked < count) send();
      if (answered < count) return;
      clearTimeout(timer);
      resolve();
    });
    for (let i = 0; i < Math.min(lanes, count); i += 1) send();
  });
  socket.close();
  return { first, any: [...any] };
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as AskOrder;
  const asked = await (order.do === 'connect' ? connects(order) : looksUp(order));
  process.stdout.write(`${JSON.stringify(asked)}\n`);
}
