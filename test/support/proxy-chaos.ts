// Random changes of imports and slices in a home, with kills of the proxy and of its nft and changes by hand in between;
// then the kernel's table must equal the plan, loaded afresh in another namespace.

import { writeFileSync } from 'node:fs';
import { randomImport, randomSlice, seeded } from '../../src/proxy/testing/random-catalog.ts';
import { until } from './dns-process.ts';
import type { Namespaces, Place } from './namespaces.ts';
import { portolan, run } from './portolan.ts';
import { comparable, nftSessionsIn } from './proxy-kernel.ts';
import { type NodeHome, type ProxyProcess, startProxyProcess } from './proxy-processes.ts';

export interface ChaosOptions {
  readonly net: Namespaces;
  readonly node: Place;
  /** An empty namespace to load the plan into. */
  readonly scratch: Place;
  readonly home: NodeHome;
  readonly directory: string;
  readonly seed: number;
  readonly changes: number;
  /** A disturbance and a comparison after so many changes. */
  readonly every: number;
}

const services = 12;

/** How often the kernel was compared with the plan. */
export async function runChaos(
  options: ChaosOptions,
): Promise<{ readonly comparisons: number; readonly kills: number }> {
  const { net, node, home, changes, every } = options;
  const chance = seeded(options.seed);
  const flags = [
    '--kubeconfig',
    home.proxyKubeconfig,
    '--node',
    'chaos',
    '--cluster-id',
    'east',
    '--log-level',
    'error',
  ];
  const start = async () => {
    const proxy = await startProxyProcess(net, node, flags);
    await proxy.whenReady();
    return proxy;
  };
  let proxy: ProxyProcess = await start();
  let [comparisons, kills] = [0, 0];
  try {
    for (let change = 1; change <= changes; change += 1) {
      await changeOne(home, chance);
      if (change % every !== 0) continue;
      const dice = chance();
      if (dice < 0.5) {
        await proxy.stop('SIGKILL');
        await changeOne(home, chance);
        proxy = await start();
        kills += 1;
      } else if (dice < 0.75) {
        for (const pid of nftSessionsIn(net, node)) process.kill(pid, 'SIGKILL');
        await changeOne(home, chance);
        kills += 1;
      } else tamper(net, node, chance);
      await compare(options, flags);
      comparisons += 1;
    }
    await compare(options, flags);
  } finally {
    await proxy.stop('SIGKILL');
  }
  return { comparisons: comparisons + 1, kills };
}

async function changeOne(home: NodeHome, chance: () => number): Promise<void> {
  const service = Math.floor(chance() * services);
  const dice = chance();
  const { creationTimestamp: _at, ...metadata } = randomImport(chance, service).metadata;
  const made = { ...randomImport(chance, service), metadata };
  const slice = randomSlice(chance, service, Math.floor(chance() * 3));
  // The family of a slice cannot change.
  slice.metadata.name += `-${slice.addressType.toLowerCase()}`;
  if (dice < 0.3) await home.order({ put: made as never });
  else if (dice < 0.85) await home.order({ put: slice as never });
  else if (dice < 0.93) await home.order({ remove: made as never });
  else await home.order({ remove: slice as never });
}

function tamper(net: Namespaces, node: Place, chance: () => number): void {
  const changes = [
    'flush map inet portolan svc4',
    'add chain inet portolan mine',
    'flush chain inet portolan nat-pre',
    'delete table inet portolan',
    "add element inet portolan hair4 '{ 192.0.2.1 . 192.0.2.1 }'",
  ];
  net.run(node, `nft ${changes[Math.floor(chance() * changes.length)]}`);
}

async function compare({ net, node, scratch, directory }: ChaosOptions, flags: readonly string[]): Promise<void> {
  let seen = '';
  const same = async () => {
    const { out } = await run('ip', [...net.within(node).slice(1), portolan, 'proxy', '--dry-run', ...flags]);
    writeFileSync(`${directory}/plan.nft`, out);
    net.run(scratch, `sh -c 'nft flush ruleset; nft -f ${directory}/plan.nft'`);
    const [has, wants] = [node, scratch].map((place) =>
      comparable(net.run(place, `sh -c 'nft -j list table inet portolan 2>/dev/null || echo "{\\"nftables\\":[]}"'`)),
    ) as [string[], string[]];
    const missing = wants.filter((line) => !has.includes(line));
    const surplus = has.filter((line) => !wants.includes(line));
    seen = JSON.stringify({ missing: missing.slice(0, 5), surplus: surplus.slice(0, 5) });
    return missing.length + surplus.length === 0 && has.length > 0;
  };
  await until('the kernel equals the plan', same).catch((error: Error) => {
    throw new Error(`${error.message}: ${seen}`);
  });
}
