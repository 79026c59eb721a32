// Takes the time from a change in one cluster until it stands in the last one. Changes are told apart by the address that
// they bring, first in their slice.

import type { Client } from '../../src/kube/client/client.ts';
import { createInformer } from '../../src/kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { pause, world } from './clusterset.ts';

export interface Arrivals {
  /** From now on the time is taken until this address has come everywhere. */
  expect(address: string): void;
  /** Waits for what is still under way. */
  settle(): Promise<void>;
  sortedMs(): number[];
  stop(): void;
}

export async function watchArrivals(
  clients: ReadonlyMap<string, Client>,
  labelSelector: string | undefined,
): Promise<Arrivals> {
  const open = new Map<string, { startedMs: number; missing: Set<string> }>();
  const latenciesMs: number[] = [];
  const informers = Array.from(clients, ([id, client]) => {
    const type = endpointSliceType;
    const informer = createInformer<EndpointSlice>({ client, world, type, namespace: 'shop', labelSelector });
    informer.on((_key, next) => arrived(id, next?.endpoints?.[0]?.addresses?.[0] ?? ''));
    informer.start();
    return informer;
  });
  function arrived(id: string, address: string): void {
    const entry = open.get(address);
    if (entry === undefined || !entry.missing.delete(id) || entry.missing.size > 0) return;
    latenciesMs.push(performance.now() - entry.startedMs);
    open.delete(address);
  }
  await Promise.all(informers.map((informer) => informer.whenSynced()));
  return {
    expect: (address) => open.set(address, { startedMs: performance.now(), missing: new Set(clients.keys()) }),
    settle: async () => {
      for (let round = 0; open.size > 0 && round < 600; round += 1) await pause(100);
      if (open.size > 0) throw new Error(`${open.size} changes never arrived everywhere`);
    },
    sortedMs: () => latenciesMs.toSorted((a, b) => a - b),
    stop: () => {
      for (const informer of informers) informer.stop();
    },
  };
}
