// A consumer that keeps services in memory, so that many of them measure the owner and the wire, not our disk.

import { type ClientCall, dial } from '../src/base/grpc/transport-client.ts';
import { ConsumerSession } from '../src/peering/session/consumer-session.ts';
import { TestDisk } from '../src/peering/testing/test-disk.ts';
import { snapshotHeader, v1alpha1 } from '../src/peering/transport/wire.ts';
import type { BenchAccess } from './peering-consumer.ts';

export interface LightConsumer {
  /** Id to description. */
  readonly held: Map<string, string>;
  readonly synced: Promise<void>;
  readonly messages: () => number;
  stop(): void;
}

export function lightConsumer(access: BenchAccess): LightConsumer {
  const held = new Map<string, string>();
  let messages = 0;
  let isSynced = () => {};
  const synced = new Promise<void>((resolve) => {
    isSynced = resolve;
  });
  const disk = new TestDisk();
  const session = new ConsumerSession({
    resourceUrl: v1alpha1.resourceUrl,
    bounds: { allowedDomains: ['owner.example'], ownZones: [] },
    accepts: () => true,
    held: disk,
    bytesMax: 1e9,
    pendingMax: 100_000,
    servicesMax: 1_000_000,
    silenceMsMin: 3000,
    graceMs: 60_000,
  });
  const act = (outputs: ReturnType<ConsumerSession['step']>) => {
    for (const output of outputs) {
      if (output.kind === 'send') call.send(v1alpha1.encodeConsumerMessage(output.message));
      if (output.kind === 'reconciled') isSynced();
      if (output.kind !== 'store') continue;
      held.set(output.service.id, output.service.description);
      disk.queue(output);
      disk.take(output.ticket);
      act(session.step({ kind: 'stored', nowMs: performance.now(), ticket: output.ticket }));
    }
  };
  const call: ClientCall = dial(
    {
      ...{ address: access.address, path: v1alpha1.path, headers: { [snapshotHeader]: '1' } },
      ...{ certificate: access.certificate, key: access.key, roots: [access.root] },
      isExpected: () => true,
      messageBytesMax: 1 << 20,
      connectMsMax: 20_000,
      keepAliveMs: 10_000,
    },
    {
      onOpened: () => act(session.step({ kind: 'opened', nowMs: performance.now(), hasSnapshotEnd: true })),
      onMessage: (bytes) => {
        messages += 1;
        const message = v1alpha1.decodeOwnerMessage(bytes);
        if (message !== undefined) act(session.step({ kind: 'message', nowMs: performance.now(), message }));
      },
      onOversized() {},
      onAlive() {},
      onClosed: (code, reason) => {
        if (code !== 1) console.error(`a consumer's stream ended: ${code} ${reason}`);
      },
    },
  );
  call.send(v1alpha1.encodeConsumerMessage({ kind: 'subscribe', resourceUrl: v1alpha1.resourceUrl }));
  return { held, synced, messages: () => messages, stop: () => call.cancel() };
}
