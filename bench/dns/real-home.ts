// For `npm run bench:dns`: a real home, over TLS, with services that three clusters share, for a resolver to read. Filled in
// process; the resolver is another process and reads it as any client does.

import { silentLog } from '../../src/base/log.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { createClient } from '../../src/kube/client/client.ts';
import {
  endpointSliceType,
  importedServiceNameLabel,
  sourceClusterLabel,
} from '../../src/kube/objects/endpoint-slice.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { startHome } from '../../src/main/home/part.ts';
import { inFlight } from '../api/load.ts';

const clusters = ['east', 'west', 'south'];
const namespaces = 100;
const width = 64;

export interface RealHome {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

export async function startRealHome(directory: string, services: number): Promise<RealHome> {
  const world = createRealWorld();
  const listen = { host: '127.0.0.1', port: 0 };
  const home = await startHome({ world, log: silentLog, directory, listen });
  const client = createClient(home.transport, { world, userAgent: 'bench' });
  const make = (object: object) => object as AnyObject;
  for (let i = 0; i < namespaces; i++)
    await client.create(namespaceType, make({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: `ns-${i}` } }));
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
  let next = 0;
  await inFlight(width, services, async () => {
    const i = next++;
    const [name, namespace] = [`svc-${i}`, `ns-${i % namespaces}`];
    const apiVersion = `${serviceImportType.group}/${serviceImportType.version}`;
    const spec = { type: 'ClusterSetIP', ips: [], ports };
    const { kind } = serviceImportType;
    await client.create(serviceImportType, make({ apiVersion, kind, metadata: { name, namespace }, spec }));
    for (const [at, cluster] of clusters.entries()) {
      const labels = { [importedServiceNameLabel]: name, [sourceClusterLabel]: cluster };
      const addresses = [`10.${10 + at}.${i >> 8}.${i & 255}`];
      await client.create(
        endpointSliceType,
        make({
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: { name: `${name}-${cluster}`, namespace, labels },
          addressType: 'IPv4',
          ports,
          endpoints: [{ addresses, conditions: { ready: true } }],
        }),
      );
    }
  });
  return { kubeconfig: home.kubeconfig, stop: () => home.stop() };
}
