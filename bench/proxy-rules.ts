// Run by bench/proxy.ts inside a network namespace: loads rules of one layout, changes endpoints, and prints the times as
// JSON. The rules stay in the namespace. Arguments: ours|weighted|other, number of services, number of changes. With weights a change
// is another pair of weights for one service.

import { silentLog } from '../src/base/log.ts';
import { parseRange } from '../src/base/net/ip.ts';
import { collectGarbage } from '../src/base/real/collect-garbage.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { NftApplier } from '../src/proxy/nft/applier.ts';
import { NftProgram } from '../src/proxy/nft/edge/nft.ts';
import { ProxyState } from '../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../src/proxy/view.ts';
import { backendsOf, importOf, sliceOf, weightedImportOf, weightedSlicesOf } from './proxy/catalog.ts';
import { kubeChange, kubeService, kubeSkeleton } from './proxy/kube-layout.ts';

const [layout, countText, changesText] = process.argv.slice(2);
const count = Number(countText);
const nft = new NftProgram(createRealHost());
let scriptLines = 0;
const apply = nft.apply.bind(nft);
nft.apply = (script) => {
  scriptLines += script.split('\n').filter((line) => line !== '').length;
  return apply(script);
};
const { load, change } = layout === 'other' ? other() : ours(layout === 'weighted');
const loadMs = await timed(load);
const changesMs: number[] = [];
let changeLinesMax = 0;
for (let each = 0; each < Number(changesText); each += 1) {
  const service = 2 + ((each * 7919) % (count - 2));
  const gone = backendsOf(service)[each % backendsOf(service).length]!;
  scriptLines = 0;
  changesMs.push(await timed(() => change(service, { gone, isBack: false })));
  changesMs.push(await timed(() => change(service, { gone, isBack: true })));
  changeLinesMax = Math.max(changeLinesMax, scriptLines / 2);
}
collectGarbage();
const { rss } = process.memoryUsage();
await nft.close();
process.stdout.write(`${JSON.stringify({ loadMs, changesMs, rssMb: rss / 1e6, changeLinesMax })}\n`);
process.exit(0);

function ours(isWeighted: boolean) {
  const ranges = [parseRange('243.0.0.0/12')!, parseRange('fd70:6f72:74f3::/64')!];
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'near' }));
  const table = { ranges };
  const applier = new NftApplier({ world: createRealWorld(), log: silentLog, state, nft, table, onGone: () => {} });
  for (let service = 1; service <= count; service += 1) {
    const hasWeights = isWeighted && service > 1;
    state.facts.upsertServiceImport(hasWeights ? weightedImportOf(service, percentOf(service)) : importOf(service));
    for (const slice of isWeighted ? weightedSlicesOf(service) : [sliceOf(service)])
      state.facts.upsertEndpointSlice(slice);
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
      // One that the service has never had, and the one from before.
      if (isWeighted)
        state.facts.upsertServiceImport(
          weightedImportOf(service, isBack ? percentOf(service) : percentOf(service + 1)),
        );
      else state.facts.upsertEndpointSlice(sliceOf(service, isBack ? undefined : gone));
      await settled();
    },
  };
}

/** All that there are. */
function percentOf(service: number): number {
  return 1 + (service % 99);
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
