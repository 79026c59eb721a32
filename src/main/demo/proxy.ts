// The demo's proxy: userspace mode on the clusterset IPs of west, as a node of that cluster would have them.

import { parseRange } from '../../base/ip.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep } from '../../base/world.ts';
import { emptyViewInput } from '../../proxy/view.ts';
import { startProxy } from '../proxy.ts';
import { startProxyAdmin } from '../proxy-admin.ts';
import type { DemoDeps, RunningCluster } from './clusterset.ts';
import { demoNamespace, samples } from './samples.ts';

export interface DemoProxy {
  readonly cluster: string;
  /** URL of its admin endpoint. */
  readonly admin: string;
  /** Where the first sample service is reached. */
  readonly ip: string;
  readonly port: number;
}

export async function startDemoProxy(
  { world, log, host, parts }: DemoDeps,
  { cluster, client, resolver }: RunningCluster,
  range: string,
): Promise<DemoProxy> {
  const metrics = createPartMetrics('proxy');
  const { id, zone, region } = cluster;
  const proxy = await startProxy({
    world,
    host,
    log,
    metrics,
    home: client,
    mode: 'userspace',
    node: `demo-${id}`,
    view: { ...emptyViewInput, cluster: id, zone, region, ranges: [parseRange(range)!] },
    verifyMs: 0,
  });
  parts.add(`${id}: proxy`, () => proxy.stop());
  await proxy.whenServing();
  const [sample] = samples;
  const key = `${demoNamespace}/${sample!.name}`;
  for (let tries = 0; ; tries += 1) {
    const port = proxy.state.choiceOf(key).ports[0];
    if (port?.backends.length === sample!.clusters.length) {
      const listen = { host: '127.0.0.1', port: 0 };
      const zoneName = async () => resolver.catalog.clustersetZone.name;
      const admin = await startProxyAdmin({ listen, metrics, proxy, identify: proxy.identify!, zone: zoneName });
      parts.add(`${id}: proxy's admin endpoint`, () => admin.close());
      return { cluster: id, admin: admin.url, ip: port.ip, port: port.port };
    }
    if (tries > 300) throw new Error(`demo: ${key} has ${port?.backends.length ?? 0} endpoints in ${id} after 30 s`);
    await sleep(world.timers, 100);
  }
}
