// The proxy of `portolan up`: by nftables where this machine allows it, in userspace where all clusterset addresses are
// loopback addresses. It starts when the ranges of the clusterset are known, which the agent copies into the home.

import { hostname } from 'node:os';
import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep, type World } from '../../base/world.ts';
import { findServiceRanges } from '../../cli/clusterset/own-ranges.ts';
import type { UpProxyMode } from '../../cli/roles/up.ts';
import { readAddressPlan } from '../../clusterset/rules/address-plan.ts';
import { clusterSetDnsName, readDnsOptions } from '../../clusterset/rules/clusterset-dns.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { identifyByConntrack } from '../../proxy/connectivity/prober.ts';
import type { Redirect } from '../../proxy/nft/redirects.ts';
import { modeProblem, rangesAtHome } from '../../proxy/ranges.ts';
import { emptyViewInput } from '../../proxy/view.ts';
import { startProxyAdmin } from '../proxy/admin.ts';
import { followEnvoyRedirects } from '../proxy/envoy-redirects.ts';
import { type ProxyRole, startProxy } from '../proxy/part.ts';

export interface UpProxyOptions {
  readonly world: World;
  readonly log: Log;
  readonly host: Host;
  readonly home: Client;
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  readonly mode: UpProxyMode;
  readonly carriesServices: boolean;
  /** Otherwise it has no addresses of a clusterset. */
  readonly isMember: boolean;
  /** Whether connections to peers' services go to the Envoy beside it. */
  readonly hasEnvoy: boolean;
  readonly say: (part: string, text: string) => void;
  /** Aborted when it is no longer wanted. */
  readonly signal: AbortSignal;
}

const lookMs = 200;
const verifyMs = 600_000;

/** Undefined if clusterset addresses cannot be routed here, which is said. */
export async function startUpProxy(options: UpProxyOptions): Promise<{ stop(): Promise<void> } | undefined> {
  const { home, host, say } = options;
  const { ranges, zone } = options.isMember ? await whenKnown(options) : { ranges: [], zone: readDnsOptions({}).zone };
  const metrics = createPartMetrics('proxy');
  const proxy = await startInSomeMode(options, ranges, metrics);
  if (proxy === undefined) return undefined;
  try {
    // Ranges that cannot be routed here keep it from serving until the set has others.
    await Promise.race([proxy.role.whenServing(), whenAborted(options.signal)]);
    const redirects = options.hasEnvoy && proxy.mode === 'nftables' ? redirectPeers(options, proxy.role) : undefined;
    const identify = proxy.role.identify ?? identifyByConntrack(host);
    const listen = { host: '127.0.0.1', port: 0 };
    const zoneNow = async () => (await readOptions(home))?.zone ?? zone;
    const admin = await startProxyAdmin({ listen, metrics, proxy: proxy.role, identify, zone: zoneNow });
    say('proxy', `${proxy.mode}, admin ${admin.url}`);
    const stop = async () => {
      redirects?.stop();
      await admin.close();
      await proxy.role.stop();
    };
    return { stop };
  } catch (error) {
    await proxy.role.stop();
    throw error;
  }
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function redirectPeers({ world, log, home, id }: UpProxyOptions, role: ProxyRole): { stop(): void } {
  const onChange = (redirects: readonly Redirect[]) => role.setRedirects(redirects);
  return followEnvoyRedirects({ world, log, home, cluster: id, arePeersOnly: true, onChange });
}

async function startInSomeMode(
  options: UpProxyOptions,
  ranges: readonly IpRange[],
  metrics: ReturnType<typeof createPartMetrics>,
): Promise<{ readonly mode: string; readonly role: ProxyRole } | undefined> {
  const { id, zone, region } = options;
  const place = { cluster: id, ...(zone === '' ? {} : { zone }), ...(region === '' ? {} : { region }) };
  const start = async (mode: 'nftables' | 'userspace') => {
    const { carriesServices } = options;
    const serviceRanges = carriesServices ? await serviceRangesOf(options.home) : [];
    const view = { ...emptyViewInput, ...place, ranges, serviceRanges, carriesServices };
    const more = { metrics, node: hostname(), verifyMs, recordsFlows: true, learnsRanges: true };
    return { mode, role: await startProxy({ ...options, ...more, redirected: 'peers', mode, view }) };
  };
  if (options.mode === 'userspace' || options.mode === 'nftables') return start(options.mode);
  if (!options.carriesServices && ranges.length > 0 && modeProblem(ranges, 'userspace') === undefined)
    return start('userspace');
  try {
    return await start('nftables');
  } catch (error) {
    const what = options.isMember
      ? 'clusterset addresses'
      : options.hasEnvoy
        ? "addresses of peers' services"
        : 'cluster IPs';
    const other = options.isMember ? ', or give the clusterset a range in 127.0.0.0/8' : '';
    options.say(
      'proxy',
      `off, ${what} are not routed on this machine: nftables cannot be used (${errorText(error)}); run as root${other}`,
    );
    return undefined;
  }
}

async function serviceRangesOf(home: Client): Promise<IpRange[]> {
  return (await findServiceRanges(home)).map(parseRange).filter((range) => range !== undefined);
}

async function whenKnown({ home, world, signal }: UpProxyOptions) {
  for (;;) {
    const known = await readOptions(home);
    if (known !== undefined) return known;
    await sleep(world.timers, lookMs);
    signal.throwIfAborted();
  }
}

async function readOptions(home: Client): Promise<{ ranges: IpRange[]; zone: string } | undefined> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const written = await getOrUndefined<ConfigMap>(home, configMapType, ref);
  if (written === undefined || readAddressPlan(written) === undefined) return undefined;
  return { ranges: rangesAtHome(written), zone: readDnsOptions(written).zone };
}
