// Keeps the resources of external services current, for every sidecar, and client keys for those whose nodes may use them: MeshExternalServices, the Secrets that they name and
// the clusterset that this cluster is in. All of them make one listener, so all are generated anew; only what came out
// different is encoded and sent. Each resource is replaced by itself: one that cannot be encoded leaves the others alone.

import {
  type ClusterProperty,
  clusterPropertyType,
  clusterSetProperty,
} from '../../clusterset/kinds/cluster-property.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import type { OutboundPorts } from '../../external/rules/redirects.ts';
import { secretReferences } from '../../external/rules/tls-plan.ts';
import { defaultClusterset } from '../../external/rules/visibility.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { externalResources } from '../external/generate.ts';
import type { ProxyIdentity } from '../identity/proxy-identity.ts';
import type { XdsResource } from '../resource.ts';
import type { ResourceSet } from '../view/resource-set.ts';
import { Batch } from './batch.ts';
import { NodeWorkloads } from './node-workloads.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface ExternalSourceOptions extends SourceOptions {
  readonly namespace: string;
  readonly cluster: string;
  readonly secrets: Informer<Secret>;
  readonly plugins: Plugins;
  readonly ports: OutboundPorts;
  /** Ports of other listeners of the same proxies. */
  readonly otherPorts: readonly number[];
  /** Where both listeners listen. */
  readonly address: string;
}

/** How long the first configuration waits for Pods. */
const podsMsMax = 5000;

export function startExternalSource(options: ExternalSourceOptions): XdsSource {
  const { client, world, book, namespace, cluster, secrets, plugins, ports, otherPorts, address } = options;
  const log = options.log.with({ source: 'external' });
  const services = createInformer<MeshExternalService>({
    client,
    world,
    log,
    namespace,
    type: meshExternalServiceType,
  });
  const properties = createInformer<ClusterProperty>({ client, world, log, type: clusterPropertyType });
  /** The last published resources, by owner. */
  let sent = new Map<string, string>();
  /** Keys that only some proxies get. */
  let limited: readonly XdsResource[] = [];
  const workloads = new NodeWorkloads({ client, world, log, namespace, onChange: (node) => batch.add(`node ${node}`) });

  const giveKeys = (proxy: ProxyIdentity, set: ResourceSet) => {
    const isFor = ({ usedBy = [] }: XdsResource) => workloads.runs(proxy, usedBy);
    replaceSafely(set, 'client keys', () => limited.filter(isFor), log);
  };

  const batch = new Batch(world.timers, (keys) => {
    if (keys.has('all')) renewAll();
    for (const { proxy, set } of book.proxies())
      if (keys.has('all') || keys.has(`node ${workloads.nodeOf(proxy.name)}`)) giveKeys(proxy, set);
  });

  function renewAll(): void {
    const next = new Map<string, string>();
    const resources = externalResources({
      services: [...services.values()],
      place: { clusterset: properties.get(clusterSetProperty)?.spec?.value ?? defaultClusterset, cluster },
      secrets: (name, key) => secrets.get(`${externalNamespace}/${name}`)?.data?.[key],
      ...{ plugins, ports, otherPorts, address },
    });
    limited = resources.filter(({ usedBy }) => usedBy !== undefined);
    workloads.ask(new Set(limited.flatMap(({ usedBy = [] }) => usedBy.map((one) => one.namespace))));
    for (const resource of resources) {
      if (resource.usedBy !== undefined) continue;
      const owner = `${resource.type} ${resource.name}`;
      const text = JSON.stringify(resource);
      next.set(owner, text);
      if (sent.get(owner) !== text) replaceSafely(book.external, owner, () => [resource], log);
    }
    for (const owner of sent.keys()) if (!next.has(owner)) replaceSafely(book.external, owner, () => [], log);
    sent = next;
  }

  const isNamed = (key: string) =>
    [...services.values()].some(({ spec }) =>
      secretReferences(spec?.destination?.tls).some(({ name }) =>
        [`${externalNamespace}/${name}`, `${externalNamespace}/${name}.broker`].includes(key),
      ),
    );
  const renew = () => batch.add('all');
  const offs = [
    services.on(renew),
    properties.on(renew),
    secrets.on((key) => {
      if (isNamed(key)) renew();
    }),
  ];
  renew();
  book.onProxy(giveKeys);
  const source = sourceOf([services, properties] as unknown as Informer<never>[], () => {
    for (const off of offs) off();
    batch.stop();
    workloads.stop();
  });
  return {
    ...source,
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), secrets.whenSynced()]);
      batch.add('all');
      batch.flush();
      await workloads.whenSynced(podsMsMax);
      batch.add('all');
      batch.flush();
    },
  };
}
