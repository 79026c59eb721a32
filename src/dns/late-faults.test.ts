// Errors of our own in answers that come later, outside the chain: each costs one answer, not the thread.

import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { createAliasFollower } from './chain/alias-follower.ts';
import { Answer } from './message/answer.ts';
import { messageOf } from './message/handler.ts';
import { Query } from './message/wire.ts';
import { encodeQuestion } from './testing/ask.ts';
import { TestNet } from './testing/edge/test-net.ts';
import { ReplyCache } from './upstream/cache.ts';
import { unkept } from './upstream/cached-reply.ts';
import { Forwarder } from './upstream/forwarder.ts';
import { failureOf } from './upstream/reply.ts';
import { ServerSet } from './upstream/servers.ts';
import { WaitingRoom } from './upstream/waiting-room.ts';

const fault = new Error('nobody foresaw this');
const fail = () => {
  throw fault;
};

function asked(name: string): { query: Query; answer: Answer } {
  const query = new Query();
  query.clientAddress = '127.0.0.1';
  query.read(encodeQuestion(`${name} A`));
  const answer = new Answer();
  answer.begin(query);
  return { query, answer };
}

test('an error in reading a reply -> reported, and the server counts as one that talks nonsense', async () => {
  const faults: unknown[] = [];
  const onFault = (error: unknown) => faults.push(error);
  const net = new TestNet();
  const server = { host: '192.0.2.53', port: 53 };
  // The owner of the second record has to be judged.
  const answers = ['www.example.com', 'other.example.com'].map((name) => ({
    type: 'A',
    name,
    ttl: 60,
    data: '10.0.0.1',
  }));
  net.servers.set('192.0.2.53:53', () => ({ answers: answers as never }));
  const { clock, timers, random, exchange } = net;
  const forwarder = new Forwarder({
    world: { clock, timers, random },
    exchange,
    cache: new ReplyCache(),
    room: new WaitingRoom({ onFault }),
    servers: new ServerSet([server], { takesTurns: true }),
    isOfOthers: fail,
    onFault,
  });
  const { query, answer } = asked('www.example.com');
  const step = forwarder.handle(query, answer);
  const message = await messageOf(step as Exclude<typeof step, string>);
  expect(packet.decode(Buffer.from(message!)).rcode).toBe('SERVFAIL');
  expect(faults[0]).toBe(fault);
});

test('an error in one of the answers to those who wait -> silence for one, the others are answered', async () => {
  const faults: unknown[] = [];
  let answers = 0;
  const room = new WaitingRoom({
    onAnswered: () => (answers++ === 0 ? fail() : undefined),
    onFault: (error) => faults.push(error),
  });
  const waiters = ['a.example.com', 'b.example.com'].map((name) => {
    const { query, answer } = asked(name);
    return room.enter(query, answer);
  });
  for (const waiter of waiters) room.answer(waiter, unkept(failureOf(5, -1, ''), 0), 0);
  const [first, second] = await Promise.all(waiters.map((waiter) => messageOf(waiter)));
  expect([first, second && packet.decode(Buffer.from(second)).rcode]).toEqual([undefined, 'REFUSED']);
  expect([faults, room.waiting]).toEqual([[fault], 0]);
});

test('an error of one who takes an answer -> reported, and its place is free', () => {
  const faults: unknown[] = [];
  const room = new WaitingRoom({ onFault: (error) => faults.push(error) });
  const { query, answer } = asked('a.example.com');
  const waiter = room.enter(query, answer);
  waiter.take(fail);
  room.answer(waiter, unkept(failureOf(5, -1, ''), 0), 0);
  expect([faults, room.waiting]).toEqual([[fault], 0]);
});

test('an error at the end of an alias -> silence, and the query no longer waits', async () => {
  const faults: unknown[] = [];
  const target = Buffer.from('\x03www\x07example\x00', 'latin1');
  const follow = createAliasFollower({
    handlers: [{ name: 'upstream', handle: () => ({ take: (take) => take(encodeQuestion('www.example A')) }) }],
    onAnswered: fail,
    onFault: (error) => faults.push(error),
  });
  const { query, answer } = asked('partner.shop.svc.cluster.local');
  const step = follow(query, answer, target);
  expect(await messageOf(step as Exclude<typeof step, string>)).toBeUndefined();
  expect(faults).toEqual([fault]);
});
