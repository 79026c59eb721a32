import { expect, test } from 'vitest';
import { codes } from '../../base/grpc/status.ts';
import { serviceOf, TestView } from '../testing/services.ts';
import { v1alpha1 } from '../transport/wire.ts';
import type { ConsumerMessage } from './messages.ts';
import { type OwnerOutput, OwnerSession } from './owner-session.ts';

const resourceUrl = v1alpha1.resourceUrl;
const subscribe: ConsumerMessage = { kind: 'subscribe', resourceUrl };

function open(view: TestView, options: { window?: number; hasSnapshotEnd?: boolean } = {}) {
  const session = new OwnerSession({
    window: options.window ?? 64,
    hasSnapshotEnd: options.hasSnapshotEnd ?? false,
    resourceUrl,
    view: () => view,
  });
  return {
    session,
    say: (message: ConsumerMessage) => texts(session.step({ kind: 'message', message })),
    ack: (nonce: string) => texts(session.step({ kind: 'message', message: { kind: 'ack', nonce, resourceUrl } })),
    nack: (nonce: string, reason: string) =>
      texts(session.step({ kind: 'message', message: { kind: 'nack', nonce, resourceUrl, code: 3, reason } })),
    change: (...ids: string[]) => texts(session.step({ kind: 'changed', ids })),
  };
}

/** Outputs as a person would note them: `1 create db`. */
function texts(outputs: readonly OwnerOutput[]): string[] {
  return outputs.map((output) => {
    if (output.kind === 'send') {
      const { message } = output;
      return message.kind === 'snapshotEnd'
        ? `${message.nonce} end ${message.end.count}`
        : `${message.nonce} ${message.kind} ${message.offer.service.id}`;
    }
    if (output.kind === 'close') return `close ${output.code} ${output.reason}`;
    if (output.kind === 'refused') return `refused ${output.id}: ${output.reason}`;
    if (output.kind === 'accepted') return `accepted ${output.id}${output.note && `, but ${output.note}`}`;
    return output.kind;
  });
}

function viewOf(...ids: string[]): TestView {
  const view = new TestView();
  for (const id of ids) view.put(serviceOf(id));
  return view;
}

test('owner: a consumer registers -> the full catalog, one CREATE each [000-13]', () => {
  const { say, session } = open(viewOf('a', 'b', 'c'));
  expect(session.state.kind).toBe('accepting');
  expect(say(subscribe)).toEqual(['1 create a', '2 create b', '3 create c']);
  expect(session.state.kind).toBe('sending');
});

test('owner: one conversation (seed 000, Appendix A) -> accepting (2), validated (3), sending (4), waiting (5), closing with a code (6) [000-49]', () => {
  const view = viewOf('a');
  const { say, ack, change, session } = open(view);
  const states = [session.state.kind];
  const after = (step: unknown) => step && states.push(session.state.kind);
  after(say(subscribe));
  after(ack('1'));
  view.put(serviceOf('a', { description: 'changed' }));
  after(change('a'));
  after(ack('2'));
  after(say({ kind: 'subscribe', resourceUrl: 'something else' }));
  expect(states).toEqual(['accepting', 'sending', 'waiting', 'sending', 'waiting', 'closed']);
});

test('owner: data transmission errors (seed 000, Appendix A, state 7) -> closed with InvalidArgument [000-49]', () => {
  const { session } = open(viewOf('a'));
  expect(texts(session.step({ kind: 'unreadable', reason: 'no message' }))).toEqual(['close 3 no message']);
  expect(session.state).toEqual({ kind: 'closed', code: codes.invalidArgument });
});

test('owner: the consumer leaves (seed 000, deregisterConsumer) -> closed, and nothing is sent any more', () => {
  const view = viewOf('a');
  const { say, change, session } = open(view);
  say(subscribe);
  session.step({ kind: 'consumerLeft' });
  expect(session.state.kind).toBe('closed');
  view.put(serviceOf('a', { description: 'changed' }));
  expect(change('a')).toEqual([]);
});

test('owner: no services -> nothing is sent, and the session waits [000-18]', () => {
  const { say, session } = open(viewOf());
  expect(say(subscribe)).toEqual([]);
  expect(session.state.kind).toBe('waiting');
});

test('owner: strict window -> one message in flight, the next after its answer [000-11]', () => {
  const { say, ack } = open(viewOf('a', 'b'), { window: 1 });
  expect(say(subscribe)).toEqual(['1 create a']);
  expect(ack('1')).toEqual(['accepted a', '2 create b']);
  expect(ack('2')).toEqual(['accepted b']);
});

test('owner: answers in another order than what they answer -> each counts for the ServiceID that its nonce stands for [000-16]', () => {
  const view = viewOf('a', 'b', 'c');
  const { say, ack, nack, session } = open(view);
  expect(say(subscribe)).toEqual(['1 create a', '2 create b', '3 create c']);
  expect(ack('3')).toEqual(['accepted c']);
  expect(nack('1', 'no')).toEqual(['refused a: no']);
  expect(['a', 'b', 'c'].map((id) => session.isPending(id))).toEqual([false, true, false]);
  expect(ack('2')).toEqual(['accepted b']);
});

test('owner: the window of its peer changes -> more go out at once, or none before enough are answered', () => {
  const { say, ack, session } = open(viewOf('a', 'b', 'c', 'd'), { window: 1 });
  const window = (size: number) => texts(session.step({ kind: 'window', window: size }));
  expect(window(1)).toEqual([]);
  expect(say(subscribe)).toEqual(['1 create a']);
  expect(window(3)).toEqual(['2 create b', '3 create c']);
  expect(window(1)).toEqual([]);
  expect(ack('1')).toEqual(['accepted a']);
  expect(ack('2')).toEqual(['accepted b']);
  expect(ack('3')).toEqual(['accepted c', '4 create d']);
});

test('owner: create, update and delete after the snapshot -> whole objects under new nonces [000-14]', () => {
  const view = viewOf('a');
  const { say, ack, change, session } = open(view);
  say(subscribe);
  ack('1');
  expect(session.state.kind).toBe('waiting');
  expect(change(view.put(serviceOf('b')))).toEqual(['2 create b']);
  expect(change(view.put(serviceOf('a', { tags: ['new'] })))).toEqual(['3 update a']);
  ack('2');
  ack('3');
  expect(change(view.remove('b'))).toEqual(['4 delete b']);
});

test('owner: a service changes ten times while the consumer is slow -> it is sent once, in its newest form', () => {
  const view = viewOf('a');
  const { say, ack, change, session } = open(view, { window: 1 });
  say(subscribe);
  for (let n = 0; n < 10; n += 1) expect(change(view.put(serviceOf('a', { description: `change ${n}` })))).toEqual([]);
  expect(session.lag).toBe(1);
  const [accepted, update] = session.step({ kind: 'message', message: { kind: 'ack', nonce: '1', resourceUrl } });
  expect(accepted).toEqual({ kind: 'accepted', id: 'a', note: '' });
  expect(update).toMatchObject({
    kind: 'send',
    message: { kind: 'update', offer: { service: { description: 'change 9' } } },
  });
  expect(ack('2')).toEqual(['accepted a']);
});

test('owner: a service comes and goes before it was sent -> nothing is said of it', () => {
  const view = viewOf('a');
  const { say, ack, change } = open(view, { window: 1 });
  say(subscribe);
  change(view.put(serviceOf('b')));
  change(view.remove('b'));
  expect(ack('1')).toEqual(['accepted a']);
});

test('owner: equal content announced again -> nothing is sent [000-12]', () => {
  const view = viewOf('a');
  const { say, ack, change } = open(view);
  say(subscribe);
  ack('1');
  expect(change(view.put(serviceOf('a')))).toEqual([]);
});

test('owner: a NACK -> that service is kept back until it changes, the rest goes on [000-15]', () => {
  const view = viewOf('bad', 'good');
  const { say, ack, nack, change } = open(view);
  say(subscribe);
  expect(nack('1', 'san: Required value')).toEqual(['refused bad: san: Required value']);
  expect(ack('2')).toEqual(['accepted good']);
  expect(change('bad')).toEqual([]);
  expect(change(view.put(serviceOf('bad', { tags: ['mended'] })))).toEqual(['3 update bad']);
  expect(ack('3')).toEqual(['accepted bad']);
});

test('owner: a withdrawn service -> DELETE carries the whole last object', () => {
  const view = viewOf('a');
  const { say, ack, session } = open(view);
  say(subscribe);
  ack('1');
  view.remove('a');
  expect(session.step({ kind: 'changed', ids: ['a'] })).toMatchObject([
    { kind: 'send', message: { kind: 'delete', offer: { service: { fqdn: 'a.example.com' } } } },
  ]);
});

test('owner: the consumer asked for the end of the snapshot -> it follows the last CREATE', () => {
  const { say, ack } = open(viewOf('a', 'b'), { hasSnapshotEnd: true });
  expect(say(subscribe)).toEqual(['1 create a', '2 create b', '3 end 2']);
  expect(ack('3')).toEqual(['snapshotAccepted']);
});

test('owner: an empty catalog for a consumer that asked -> the end alone [000-18]', () => {
  expect(open(viewOf(), { hasSnapshotEnd: true }).say(subscribe)).toEqual(['1 end 0']);
});

test('owner: a change during the snapshot -> the end counts what was told', () => {
  const view = viewOf('a', 'b');
  const { say, ack, change } = open(view, { window: 1, hasSnapshotEnd: true });
  say(subscribe);
  change(view.remove('b'));
  change(view.put(serviceOf('c')));
  expect(ack('1')).toEqual(['accepted a', '2 create c']);
  expect(ack('2')).toEqual(['accepted c', '3 end 2']);
});

test('owner: strict window and an end of the snapshot -> the end too waits for its turn', () => {
  const { say, ack, session } = open(viewOf('a'), { window: 1, hasSnapshotEnd: true });
  expect(say(subscribe)).toEqual(['1 create a']);
  expect(session.unacknowledged).toBe(1);
  expect(ack('1')).toEqual(['accepted a', '2 end 1']);
});

test('owner: the way to the consumer is full -> nothing more is sent until it has drained', () => {
  const view = viewOf('a');
  const { say, ack, change, session } = open(view);
  say(subscribe);
  session.step({ kind: 'blocked' });
  expect(ack('1')).toEqual(['accepted a']);
  expect(change(view.put(serviceOf('b')))).toEqual([]);
  expect(session.state.kind).toBe('sending');
  expect(texts(session.step({ kind: 'drained' }))).toEqual(['2 create b']);
});

test('owner: a consumer refuses a DELETE -> the same service can be offered again', () => {
  const view = viewOf('a');
  const { say, ack, nack, change } = open(view);
  say(subscribe);
  ack('1');
  expect(change(view.remove('a'))).toEqual(['2 delete a']);
  expect(nack('2', 'not now')).toEqual(['refused a: not now']);
  expect(change(view.put(serviceOf('a')))).toEqual(['3 create a']);
});

test('owner: a consumer registers again on its stream -> a new catalog; before the last one is complete -> InvalidArgument [000-36]', () => {
  const { say, ack } = open(viewOf('a', 'b'), { window: 1 });
  say(subscribe);
  expect(say(subscribe)[0]).toContain(`close ${codes.invalidArgument} the consumer registered again`);
  const other = open(viewOf('a'));
  other.say(subscribe);
  other.ack('1');
  expect(other.say(subscribe)).toEqual(['2 create a']);
  expect(ack('1')).toEqual([]);
});

test('owner: its own catalog has not synced -> Unavailable, never an empty catalog [000-33]', () => {
  const view = viewOf();
  view.hasSynced = false;
  expect(open(view).say(subscribe)).toEqual([`close ${codes.unavailable} the owner's catalog has not synced yet`]);
});

test.each<{ name: string; message: ConsumerMessage; reason: string }>([
  {
    name: 'an ACK before registering [000-38]',
    message: { kind: 'ack', nonce: '1', resourceUrl },
    reason: 'an answer came before the consumer registered',
  },
  {
    name: 'a NACK before registering [000-38]',
    message: { kind: 'nack', nonce: '1', resourceUrl, code: 3, reason: '' },
    reason: 'an answer came before the consumer registered',
  },
  {
    name: 'a wrong resource URL',
    message: { kind: 'subscribe', resourceUrl: 'type.googleapis.com/other' },
    reason: 'resource_url is "type.googleapis.com/other"',
  },
  { name: 'no resource URL', message: { kind: 'subscribe', resourceUrl: '' }, reason: 'resource_url is missing' },
])('owner: $name -> InvalidArgument [000-35]', ({ message, reason }) => {
  const { say, session } = open(viewOf('a'));
  expect(say(message)[0]).toContain(`close ${codes.invalidArgument} ${reason}`);
  expect(session.state).toEqual({ kind: 'closed', code: codes.invalidArgument });
});

test('owner: lenient in what it takes -> an ACK without nonce answers the oldest, one without URL counts, an unknown one is ignored', () => {
  const { say } = open(viewOf('a', 'b'), { window: 1 });
  say(subscribe);
  expect(say({ kind: 'ack', nonce: 'never-sent', resourceUrl })).toEqual([]);
  expect(say({ kind: 'ack', nonce: '', resourceUrl: '' })).toEqual(['accepted a', '2 create b']);
});

test('owner: 100,000 changes of 100 services to a consumer that does not answer -> memory is bounded by the services', () => {
  const view = viewOf();
  const { say, change, session } = open(view, { window: 8 });
  say(subscribe);
  for (let n = 0; n < 100_000; n += 1) change(view.put(serviceOf(`s${n % 100}`, { description: String(n) })));
  expect(session.unacknowledged).toBe(8);
  expect(session.lag).toBeLessThanOrEqual(108);
});

test('owner: an ACK with a note -> accepted, with the note; said again under the same nonce -> the newest note counts', () => {
  const view = viewOf('a');
  const { say, ack, change } = open(view, { hasSnapshotEnd: true });
  const note = (nonce: string, text: string) => say({ kind: 'ack', nonce, resourceUrl, note: text });
  expect(say(subscribe)).toEqual(['1 create a', '2 end 1']);
  expect(note('1', 'held')).toEqual(['accepted a, but held']);
  expect(note('1', 'contested')).toEqual(['accepted a, but contested']);
  expect(ack('1')).toEqual(['accepted a']);
  expect(ack('2')).toEqual(['snapshotAccepted']);
  // Answers to an earlier form do not concern this one.
  expect(change(view.put(serviceOf('a', { tags: ['new'] })))).toEqual(['3 update a']);
  expect(note('1', 'held')).toEqual([]);
  expect(note('3', 'held')).toEqual(['accepted a, but held']);
  expect(change(view.remove('a'))).toEqual(['4 delete a']);
  expect(note('3', 'held')).toEqual([]);
  expect(ack('4')).toEqual(['accepted a']);
});

test('owner: a foreign consumer answers twice -> the second answer is nothing', () => {
  const { say, ack } = open(viewOf('a'));
  say(subscribe);
  expect(say({ kind: 'ack', nonce: '1', resourceUrl, note: 'fine' })).toEqual(['accepted a, but fine']);
  expect(ack('1')).toEqual([]);
});

test('owner: changes before a consumer has registered -> nothing is sent, and the state stays', () => {
  const { session, change } = open(viewOf('a'));
  expect(change('a')).toEqual([]);
  expect(session.state.kind).toBe('accepting');
});

test('owner: a consumer registers again after a service went -> that one is deleted, the others are sent anew', () => {
  const view = viewOf('a', 'b');
  const { say, ack } = open(view);
  say(subscribe);
  ack('1');
  ack('2');
  view.remove('b');
  expect(
    say(subscribe)
      .map((text) => text.replace(/^\d+ /, ''))
      .sort(),
  ).toEqual(['create a', 'delete b']);
});

test('owner: the end of the snapshot is refused -> said so, with the reason, and not taken for accepted', () => {
  const { say, nack } = open(viewOf(), { hasSnapshotEnd: true });
  expect(say(subscribe)).toEqual(['1 end 0']);
  expect(nack('1', 'count differs')).toEqual(['snapshotRefused']);
});

test('owner: a service is not changed while it is in flight -> its answer sends nothing more', () => {
  const { say, ack, session } = open(viewOf('a'));
  say(subscribe);
  expect(ack('1')).toEqual(['accepted a']);
  expect(session.state.kind).toBe('waiting');
});

test('owner: a refused service is announced again as it is -> kept back; after a removal of it was refused -> offered', () => {
  const view = viewOf('a');
  const { say, nack, change } = open(view);
  say(subscribe);
  nack('1', 'no');
  expect(change('a')).toEqual([]);
  view.remove('a');
  expect(change('a')).toEqual(['2 delete a']);
  nack('2', 'not this either');
  view.put(serviceOf('a'));
  expect(change('a')).toEqual(['3 create a']);
});
