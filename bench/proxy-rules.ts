// Run by bench/proxy.ts inside a network namespace: loads rules of one layout, changes endpoints, and prints the times as
// JSON. The rules stay in the namespace. Arguments: ours|other, number of services, number of changes.

import { silentLog } from '../src/base/log.ts';
import { parseRange } from '../src/base/net/ip.ts';
import { collectGarbage } from '../src/base/real/collect-garbage.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { NftApplier } from '../src/proxy/nft/applier.ts';
import { NftProgram } from '../src/proxy/nft/edge/nft.ts';
import { ProxyState } from '../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../src/proxy/view.ts';
import { backendsOf, importOf, sliceOf } from './proxy/catalog.ts';
import { kubeChange, kubeService, kubeSkeleton } from './proxy/kube-layout.ts';

const [layout, countText, changesText] = process.argv.slice(2);
const count = Number(countText);
const nft = new NftProgram(createRealHost());
const { load, change } = layout === 'ours' ? ours() : other();
const loadMs = await timed(load);
const changesMs: number[] = [];
for (let each = 0; each < Number(changesText); each += 1) {
  const service = 2 + ((each * 7919) % (count - 2));
  const gone = backendsOf(service)[each % backendsOf(service).length]!;
  changesMs.push(await timed(() => change(service, { gone, isBack: false })));
  changesMs.push(await timed(() => change(service, { gone, isBack: true })));
}
collectGarbage();
const { rss } = process.memoryUsage();
await nft.close();
process.stdout.write(`${JSON.stringify({ loadMs, changesMs, rssMb: rss / 1e6 })}\n`);
process.exit(0);

function ours() {
  const ranges = [parseRange('243.0.0.0/12')!, parseRange('fd70:6f72:74f3::/64')!];
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'near' }));
  const table = { ranges };
  const applier = new NftApplier({ world: createRealWorld(), log: silentLog, state, nft, table, onGone: () => {} });
  for (let service = 1; service <= count; service += 1) {
    state.facts.upsertServiceImport(importOf(service));
    state.facts.upsertEndpointSlice(sliceOf(service));
  }
  const settled = async () => {
    await applier.settled();
    if (applier.status().problem !== '') throw new Error(applier.status().problem);
  };
  return {
    load: async () => {
      await applier.start();
      await settled();
    },
    change: async (service: number, { gone, isBack }: { gone: string; isBack: boolean }) => {
      state.facts.upsertEndpointSlice(sliceOf(service, isBack ? undefined : gone));
      await settled();
    },
  };
}

function other() {
  const services = Array.from({ length: count }, (_, index) => kubeService(index + 1)).join('\n');
  return {
    load: () => nft.apply(`${kubeSkeleton()}${services}\n`),
    change: (service: number, what: { gone: string; isBack: boolean }) => nft.apply(kubeChange(service, what)),
  };
}

async function timed(run: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await run();
  return performance.now() - startedMs;
}
