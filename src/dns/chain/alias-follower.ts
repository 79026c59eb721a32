// Finds the end of an alias that leads out of our own zones: asks for its target as a client would, through the
// handlers that ask others, and puts what they say behind the alias. Without upstream servers, the alias alone is the
// answer.

import { copyOf as copyBytes } from '../../base/bytes/copy.ts';
import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { tryDecodeMessage } from '../../base/dns/message.ts';
import { encodeName } from '../../base/dns/name.ts';
import { signMessage } from '../../base/dns/tsig.ts';
import { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { extendedError, headerBytes, messageBytesMax, Query, udpPayloadMax } from '../message/wire.ts';

export interface AliasFollowerOptions {
  /** Those who may know the target, in order. */
  readonly handlers: readonly Handler[];
  readonly onAnswered?: (query: Query, answer: Answer) => void;
  /** Told of errors of ours, which concern one answer. */
  readonly onFault: (error: unknown) => void;
}

/** From one table to another; a table follows its own as far. */
const aliasesMax = 8;

export type FollowAlias = (query: Query, answer: Answer, target: Uint8Array) => Step | Later;

export function createAliasFollower({ handlers, onAnswered, onFault }: AliasFollowerOptions): FollowAlias {
  function finished(query: Query, answer: Answer, message: Uint8Array | undefined): Uint8Array | undefined {
    try {
      return finish(query, answer, message, onAnswered);
    } catch (error) {
      onFault(error);
      return undefined;
    }
  }

  return (query, answer, target) => {
    if (query.aliasCount >= aliasesMax) {
      answer.fail(rcode.SERVFAIL, extendedError.other, `aliases of this name go on for more than ${aliasesMax} steps`);
      return 'done';
    }
    const question = questionFor(query, target);
    const reply = new Answer(new Uint8Array(messageBytesMax));
    const answering = ask(handlers, question, reply);
    if (answering === undefined) return 'done';
    const [asker, kept] = [copyOf(query), keep(answer, query)];
    return { take: (take) => answering.take((message) => take(finished(asker, kept, message))) };
  };
}

/** The same asker and type, another name, and as if over TCP: what comes back must be whole. */
function questionFor(query: Query, target: Uint8Array): Query {
  const packet = Buffer.alloc(headerBytes + target.length + 4);
  packet.writeUInt16BE(0x0100, 2);
  packet.writeUInt16BE(1, 4);
  packet.set(target, headerBytes);
  packet.writeUInt16BE(query.type, headerBytes + target.length);
  packet.writeUInt16BE(classIn, headerBytes + target.length + 2);
  const question = new Query();
  question.transport = 'tcp';
  question.clientAddress = query.clientAddress;
  question.sourceOption = query.sourceOption;
  question.receivedMs = query.receivedMs;
  question.isInner = true;
  question.aliasCount = query.aliasCount + 1;
  question.read(packet);
  return question;
}

function ask(handlers: readonly Handler[], question: Query, reply: Answer): Later | undefined {
  reply.begin(question);
  for (const handler of handlers) {
    const step = handler.handle(question, reply);
    if (step === 'next') continue;
    if (step === 'drop') return { take: (take) => take(undefined) };
    if (step !== 'done') return step;
    const message = copyBytes(reply.bytes, 0, reply.finish());
    return { take: (take) => take(message) };
  }
  return undefined;
}

/** Copies the answer written so far out of reused memory. */
function keep(answer: Answer, query: Query): Answer {
  const kept = new Answer(new Uint8Array(query.transport === 'udp' ? 2 * udpPayloadMax : messageBytesMax + 2));
  kept.nsid = answer.nsid;
  kept.keepaliveMs = answer.keepaliveMs;
  kept.begin(query);
  kept.cookie = answer.cookie;
  kept.recordsOf(answer);
  kept.isAuthoritative = answer.isAuthoritative;
  kept.extendedError = answer.extendedError;
  kept.signature = answer.signature;
  kept.zone = answer.zone;
  return kept;
}

function finish(
  query: Query,
  answer: Answer,
  reply: Uint8Array | undefined,
  onAnswered: AliasFollowerOptions['onAnswered'],
): Uint8Array {
  answer.adopt(query);
  answer.isRecursionAvailable = true;
  if (reply) append(answer, reply);
  else answer.fail(rcode.SERVFAIL, extendedError.noReachableAuthority, 'no nameserver for the target of this alias');
  const length = answer.finish();
  onAnswered?.(query, answer);
  const message = answer.bytes.subarray(0, length);
  const { signature } = answer;
  return signature ? signMessage(message, signature.key, signature).message : message;
}

function append(answer: Answer, reply: Uint8Array): void {
  // Rdata of other servers is passed on unread, so that it may not be what its type says.
  const message = tryDecodeMessage(reply);
  answer.rcode = message ? message.flags & 15 : rcode.SERVFAIL;
  if (answer.rcode !== rcode.NOERROR && answer.rcode !== rcode.NXDOMAIN)
    answer.fail(answer.rcode, extendedError.noReachableAuthority, 'the target of this alias cannot be resolved');
  if (!message) return;
  const { answers, authorities } = message;
  for (const { name, type, ttl, rdata } of answers) {
    if (!answer.recordOf('answer', { owner: encodeName(name), type, ttl, rdata })) {
      answer.isTruncated = true;
      return;
    }
  }
  // RFC 2308 section 3: how long a "no" may be remembered.
  const soa = authorities.find(({ type }) => type === recordType.SOA);
  if (soa) answer.recordOf('authority', { ...soa, owner: encodeName(soa.name) });
}

/** For an answer that comes later: the query itself is used again at once. */
function copyOf(query: Query): Query {
  const copy = new Query();
  copy.sourceOption = query.sourceOption;
  copy.receivedMs = query.receivedMs;
  copy.isInner = query.isInner;
  copy.aliasCount = query.aliasCount;
  copy.transport = query.transport;
  copy.clientAddress = query.clientAddress;
  copy.clientPort = query.clientPort;
  copy.clientIdentity = query.clientIdentity;
  copy.read(Uint8Array.prototype.slice.call(query.packet, 0, query.length));
  return copy;
}
