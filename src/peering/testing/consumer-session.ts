// For tests of the consumer's side of a session: messages of an owner, and a session whose outputs are words.

import {
  type ConsumerInput,
  type ConsumerOutput,
  ConsumerSession,
  type ConsumerSessionOptions,
} from '../session/consumer-session.ts';
import { exclusiveOr, type ReceivedMessage } from '../session/messages.ts';
import { v1alpha1 } from '../transport/wire.ts';
import { serviceOf } from './services.ts';
import { TestDisk } from './test-disk.ts';

export const hashOf = (id: string, changes = {}) => v1alpha1.encodeOffer(serviceOf(id, changes)).hash;

export function upsert(nonce: string, id: string, changes: Parameters<typeof serviceOf>[1] = {}): ReceivedMessage {
  const { hash, bytes } = v1alpha1.encodeOffer(serviceOf(id, changes));
  return { kind: 'upsert', nonce, service: serviceOf(id, changes), hash, bytes: bytes.length };
}

export function end(
  nonce: string,
  ids: readonly string[],
  changes: { revision?: number; count?: number } = {},
): ReceivedMessage {
  const digest = new Uint8Array(32);
  for (const id of ids) exclusiveOr(digest, hashOf(id));
  return { kind: 'snapshotEnd', nonce, end: { epoch: 'e', revision: 5, count: ids.length, digest, ...changes } };
}

export function open(options: Partial<ConsumerSessionOptions> & { holds?: readonly string[]; isExact?: boolean } = {}) {
  const disk = new TestDisk();
  for (const id of options.holds ?? []) disk.put(id, hashOf(id), 100);
  const session = new ConsumerSession({
    resourceUrl: v1alpha1.resourceUrl,
    bounds: { allowedDomains: ['example.com'], ownZones: ['cluster.local'] },
    accepts: () => true,
    servicesMax: 1000,
    bytesMax: 1_000_000,
    held: disk,
    pendingMax: 100,
    silenceMsMin: 3000,
    graceMs: 60_000,
    ...options,
  });
  let latestMs = 0;
  const step = (input: ConsumerInput) => {
    if ('nowMs' in input) latestMs = input.nowMs;
    if (input.kind === 'stored') disk.take(input.ticket);
    const outputs = session.step(input);
    for (const output of outputs) disk.queue(output);
    return texts(outputs);
  };
  step({ kind: 'opened', nowMs: 0, hasSnapshotEnd: options.isExact ?? false });
  const take = (message: ReceivedMessage, nowMs = 0) => step({ kind: 'message', nowMs, message });
  return {
    session,
    step,
    take,
    stored: (ticket: number, nowMs = latestMs) => step({ kind: 'stored', nowMs, ticket }),
    tick: (nowMs: number, aliveMs = nowMs) => step({ kind: 'tick', nowMs, aliveMs }),
  };
}

function ackText({ nonce, note }: { nonce: string; note?: string }): string {
  return note === undefined ? nonce : `${nonce} but ${note}`;
}

function texts(outputs: readonly ConsumerOutput[]): string[] {
  return outputs.map((output) => {
    switch (output.kind) {
      case 'send':
        return output.message.kind === 'nack'
          ? `nack ${output.message.nonce} ${output.message.code} ${output.message.reason}`
          : `${output.message.kind} ${output.message.kind === 'ack' ? ackText(output.message) : ''}`;
      case 'store':
        return `store ${output.service.id} as ${output.ticket}`;
      case 'remove':
        return `remove ${output.ids.join(',')} as ${output.ticket}`;
      case 'suspect':
        return `suspect ${output.ids.join(',')}`;
      case 'reconciled':
        return `reconciled ${output.mode}, ${output.removed} gone`;
      case 'close':
        return `close ${output.code} ${output.reason}`;
      case 'confirmed':
        return `confirmed ${output.id}`;
      case 'refused':
        return `refused ${output.id}: ${output.reason}`;
      case 'named':
        return `named ${output.id}`;
      case 'heldBack':
        return `held back for ${output.unreadable}`;
      case 'nothingConfirmed':
        return 'nothing confirmed';
      case 'probe':
        return 'probe';
    }
  });
}
