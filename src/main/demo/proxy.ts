// The demo's proxy: userspace mode on the clusterset IPs of west, as a node of that cluster would have them.

import { parseRange } from '../../base/net/ip.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep } from '../../base/world.ts';
import { emptyViewInput } from '../../proxy/view.ts';
import { startProxyAdmin } from '../proxy/admin.ts';
import { startProxy } from '../proxy/part.ts';
import { addAdmin, type DemoDeps, type RunningCluster } from './clusterset.ts';
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
  deps: DemoDeps,
  { cluster, client, resolver }: RunningCluster,
  range: string,
): Promise<DemoProxy> {
  const { world, log, host, parts } = deps;
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
    recordsFlows: true,
  });
  parts.add(`${id}: proxy`, () => proxy.stop());
  await proxy.whenServing();
  const [sample] = samples;
  const key = `${demoNamespace}/${sample!.name}`;
  for (let tries = 0; ; tries += 1) {
    const port = proxy.state.choiceOf(key).ports[0];
    if (port?.backends.length === sample!.clusters.length) {
      const zoneName = async () => resolver.catalog.clustersetZone.name;
      const asked = { metrics, proxy, identify: proxy.identify!, zone: zoneName };
      const admin = await addAdmin(deps, `proxy-${id}`, (listen) => startProxyAdmin({ ...asked, listen }));
      return { cluster: id, admin, ip: port.ip, port: port.port };
    }
    if (tries > 300) throw new Error(`demo: ${key} has ${port?.backends.length ?? 0} endpoints in ${id} after 30 s`);
    await sleep(world.timers, 100);
  }
}
