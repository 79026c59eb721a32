// The node of the clients: a home with all cases in it, a resolver and a discovery server. Prints where they are as JSON.

import { silentLog } from '../../src/base/log.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { casePlaces, caseSelf } from '../../src/clusterset/rules/choice/testing/choice-case.ts';
import { dnsOptionsManifest, dnsOptionsOf } from '../../src/clusterset/rules/clusterset-dns.ts';
import { install } from '../../src/kube/client/apply.ts';
import { createClient } from '../../src/kube/client/client.ts';
import { type AnyObject, parseApiVersion } from '../../src/kube/objects/object.ts';
import { startResolver } from '../../src/main/dns/part.ts';
import { startHome } from '../../src/main/home/part.ts';
import { startXdsTest } from '../support/xds.ts';

export interface NodeTask {
  readonly directory: string;
  readonly address: string;
  readonly objects: readonly AnyObject[];
  readonly virtualPort: number;
}

export interface NodeReady {
  readonly kubeconfig: string;
  readonly envoyBootstrap: object;
  readonly xdsSocket: string;
  readonly xdsFolder: string;
}

const task = await new Promise<NodeTask>((resolve) => {
  let text = '';
  process.stdin.on('data', (chunk) => (text += chunk));
  process.stdin.on('end', () => resolve(JSON.parse(text)));
});
const { address, directory, virtualPort } = task;
const world = createRealWorld();
const home = await startHome({ world, log: silentLog, directory, listen: { host: address, port: 0 } });
const client = createClient(home.transport, { world, userAgent: 'test' });
const clusters = new Map(Object.entries(casePlaces));
const locality = { preference: 'Spread', clusters } as const;
const options = dnsOptionsManifest(dnsOptionsOf(undefined), { locality });
const typeOf = ({ apiVersion = '', kind = '', metadata }: AnyObject) => ({
  ...parseApiVersion(apiVersion),
  ...{ plural: `${kind.toLowerCase()}s`, kind, isNamespaced: metadata.namespace !== undefined },
});
await install(client, options);
for (const object of task.objects) await client.create(typeOf(object), object);
const place = { id: caseSelf, ...casePlaces[caseSelf] };
await startResolver({ world, log: silentLog, home: client, cluster: place, listen: { hosts: [address], port: 53 } });
const ports = { virtual: virtualPort, ingress: 15_443 };
const xds = await startXdsTest({ home: client, cluster: caseSelf, ports, listen: { host: address, port: 0 } });
const ready: NodeReady = {
  kubeconfig: home.kubeconfig,
  envoyBootstrap: await xds.bootstrap('sidecar', 'web', { isClustersetProxied: true }),
  ...{ xdsSocket: xds.socket, xdsFolder: xds.folder },
};
process.stdout.write(`${JSON.stringify(ready)}\n`);
