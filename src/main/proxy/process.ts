// The process of `portolan proxy`: from flags to a running proxy and its admin endpoint, or to the rules on paper, or to a
// node without them.

import type { Host } from '../../base/host.ts';
import type { Log } from '../../base/log.ts';
import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { Parts } from '../../base/parts.ts';
import { stayCompact } from '../../base/real/collect-garbage.ts';
import { createRealHost } from '../../base/real/host.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import type { World } from '../../base/world.ts';
import { usageError } from '../../cli/exit-codes.ts';
import { parseListen } from '../../cli/roles/options.ts';
import type { ProxyFlags } from '../../cli/roles/proxy.ts';
import { clustersetRangesOf, rangesOf, redirectsOf, uidOf, verifyMsOf } from '../../cli/roles/proxy-flags.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { attachProxy } from '../../proxy/attach.ts';
import { identifyByConntrack } from '../../proxy/connectivity/prober.ts';
import { cleanUp } from '../../proxy/nft/cleanup.ts';
import { NftProgram } from '../../proxy/nft/edge/nft.ts';
import { type Redirect, redirectElements } from '../../proxy/nft/redirects.ts';
import { Ruleset } from '../../proxy/nft/ruleset.ts';
import { refillScript } from '../../proxy/nft/script.ts';
import { rangesAtHome } from '../../proxy/ranges.ts';
import { ProxyState } from '../../proxy/state.ts';
import { emptyViewInput, type ViewInput, viewOf } from '../../proxy/view.ts';
import { openRole, untilStopped } from '../process.ts';
import { startProxyAdmin } from './admin.ts';
import { followEnvoyRedirects } from './envoy-redirects.ts';
import { startProxy } from './part.ts';

interface Hands {
  readonly world: World;
  readonly host: Host;
  readonly log: Log;
}

export async function runProxy(flags: ProxyFlags): Promise<void> {
  const { world, log } = await openRole('proxy', flags.logLevel);
  const hands = { world, host: createRealHost(), log };
  const given = clustersetRangesOf(flags);
  if (flags.cleanup) return removeAll(hands, given ?? rangesAtHome(undefined));
  const learnsRanges = given === undefined;
  const adminListen = parseListen(flags.adminListen, '--admin-listen');
  const redirects = redirectsOf(flags.redirect);
  const envoyUid = uidOf(flags.envoyUid);
  const verifyMs = verifyMsOf(flags.verifyMinutes);
  const access = await findHome({ ...hands, clock: world.clock, kubeconfig: flags.kubeconfig, context: flags.context });
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-proxy' });
  const parts = new Parts(hands.log);
  parts.add('home client', () => home.close());
  try {
    const view = await viewInputOf(home, flags, given ?? []);
    if (flags.services) refuseServices(flags, view);
    if (flags.dryRun) {
      const { ruleset, ranges } = await planOf(hands, home, { view, node: flags.node, learnsRanges });
      ruleset.setRedirects(redirectElements(redirects));
      process.stdout.write(refillScript(ruleset, { ranges, redirectExceptUid: envoyUid }, undefined));
      return await parts.stop();
    }
    const metrics = createPartMetrics('proxy');
    const { node, mode } = flags;
    const proxy = await startProxy({
      ...{ ...hands, metrics, home, mode, node, view, learnsRanges },
      ...{ redirects, envoyUid, verifyMs, recordsFlows: flags.flows, leavesSilent: flags.keepSilent !== true },
    });
    parts.add('proxy', () => proxy.stop());
    if (flags.envoy) {
      const onChange = (found: readonly Redirect[]) => proxy.setRedirects([...redirects, ...found]);
      const following = followEnvoyRedirects({ ...hands, home, cluster: flags.clusterId, onChange });
      parts.add('redirects', () => following.stop());
    }
    const identify = proxy.identify ?? identifyByConntrack(hands.host);
    const zone = () => zoneOf(home);
    const admin = await startProxyAdmin({ listen: adminListen, metrics, proxy, identify, zone });
    parts.add('admin endpoint', () => admin.close());
    const stopped = untilStopped(hands.log, () => parts.stop());
    if (mode === 'userspace')
      process.stdout.write('userspace mode is meant for trying out: every byte passes through this process\n');
    process.stdout.write(`admin ${admin.url}\n`);
    void proxy.whenServing().then(() => {
      process.stdout.write(`ready ${access.server}\n`);
      stayCompact();
    });
    await stopped;
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function removeAll({ world, host }: Hands, ranges: readonly IpRange[]): Promise<void> {
  const nft = new NftProgram(host);
  try {
    await cleanUp({ host, nft, ranges, timers: world.timers });
  } finally {
    await nft.close();
  }
}

async function viewInputOf(home: Client, flags: ProxyFlags, ranges: readonly IpRange[]): Promise<ViewInput> {
  const serviceRanges = rangesOf('--service-range', flags.serviceRange);
  return {
    ...emptyViewInput,
    cluster: flags.clusterId ?? '',
    zone: flags.zone,
    region: flags.region,
    ranges,
    nodeRanges: rangesOf('--node-range', flags.nodeRange),
    serviceRanges: serviceRanges.length > 0 ? serviceRanges : await serviceCidrs(home),
    carriesServices: flags.services === true,
  };
}

function refuseServices({ mode }: ProxyFlags, { serviceRanges }: ViewInput): void {
  if (mode !== 'nftables') throw usageError(`--services: cluster IPs are carried by the kernel, not by --mode ${mode}`);
  if (serviceRanges.length === 0)
    throw usageError(
      '--services: the home does not say where Services have their addresses; give --service-range, such as 10.96.0.0/12',
    );
}

const serviceCidrType = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'servicecidrs',
  kind: 'ServiceCIDR',
  isNamespaced: false,
};

/** Service ranges of a Kubernetes that publishes them; a home that is away or has none is served without. */
async function serviceCidrs(home: Client): Promise<IpRange[]> {
  try {
    const { items } = await home.list<AnyObject & { spec?: { cidrs?: string[] } }>(serviceCidrType, {
      timeoutMs: 3000,
    });
    return items.flatMap(({ spec }) => (spec?.cidrs ?? []).map(parseRange).filter((range) => range !== undefined));
  } catch {
    return [];
  }
}

async function planOf(
  { world, log }: Hands,
  client: Client,
  { view, node, learnsRanges }: { readonly view: ViewInput; readonly node: string; readonly learnsRanges: boolean },
): Promise<{ readonly ruleset: Ruleset; readonly ranges: readonly IpRange[] }> {
  const state = new ProxyState(viewOf(view));
  let { ranges } = view;
  const useRanges = async (learned: readonly IpRange[]) => {
    ranges = learned;
    return '';
  };
  const attachment = attachProxy({ client, world, log, state, view, node, ...(learnsRanges ? { useRanges } : {}) });
  await attachment.whenSynced();
  attachment.stop();
  const ruleset = new Ruleset({ isHairpin: (cluster) => state.mayBeClient(cluster) });
  ruleset.change(state.takeDirty().map((key) => [key, state.choiceOf(key).ports] as const));
  return { ruleset, ranges: view.carriesServices ? [...ranges, ...view.serviceRanges] : ranges };
}

async function zoneOf(home: Client): Promise<string> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  return readDnsOptions(await home.get<ConfigMap>(configMapType, ref, { timeoutMs: 3000 }).catch(() => ({}))).zone;
}
