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

export class ExternalSource implements XdsSource {
  readonly #options: ExternalSourceOptions;
  readonly #log;
  readonly #services;
  readonly #properties;
  /** The last published resources, by owner. */
  #sent = new Map<string, string>();
  /** Keys that only some proxies get. */
  #limited: readonly XdsResource[] = [];
  readonly #workloads;
  readonly #batch;
  readonly #offs;
  readonly #source;

  constructor(options: ExternalSourceOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ source: 'external' });
    this.#services = createInformer<MeshExternalService>({
      client: this.#options.client,
      world: this.#options.world,
      log: this.#log,
      namespace: this.#options.namespace,
      type: meshExternalServiceType,
    });
    this.#properties = createInformer<ClusterProperty>({
      client: this.#options.client,
      world: this.#options.world,
      log: this.#log,
      type: clusterPropertyType,
    });
    this.#workloads = new NodeWorkloads({
      client: this.#options.client,
      world: this.#options.world,
      log: this.#log,
      namespace: this.#options.namespace,
      onChange: (node) => this.#batch.add(`node ${node}`),
    });
    this.#batch = new Batch(this.#options.world.timers, (keys) => {
      if (keys.has('all')) this.#renewAll();
      for (const { proxy, set } of this.#options.views.proxies())
        if (keys.has('all') || keys.has(`node ${this.#workloads.nodeOf(proxy.name)}`)) this.#giveKeys(proxy, set);
    });
    this.#offs = [
      this.#services.on(() => this.#renew()),
      this.#properties.on(() => this.#renew()),
      this.#options.secrets.on((key) => {
        if (this.#isNamed(key)) this.#renew();
      }),
    ];
    this.#renew();
    this.#options.views.onProxy((proxy, set) => this.#giveKeys(proxy, set));
    this.#source = sourceOf([this.#services, this.#properties] as unknown as Informer<never>[], () => {
      for (const off of this.#offs) off();
      this.#batch.stop();
      this.#workloads.stop();
    });
  }

  staleSinceMs() {
    return this.#source.staleSinceMs();
  }

  stop() {
    return this.#source.stop();
  }

  async whenSynced() {
    await Promise.all([this.#source.whenSynced(), this.#options.secrets.whenSynced()]);
    this.#batch.add('all');
    this.#batch.flush();
    await this.#workloads.whenSynced(podsMsMax);
    this.#batch.add('all');
    this.#batch.flush();
  }

  #giveKeys(proxy: ProxyIdentity, set: ResourceSet) {
    const isFor = ({ usedBy = [] }: XdsResource) => this.#workloads.runs(proxy, usedBy);
    replaceSafely(set, 'client keys', () => this.#limited.filter(isFor), this.#log);
  }

  #renewAll(): void {
    const next = new Map<string, string>();
    const resources = externalResources({
      services: [...this.#services.values()],
      place: {
        clusterset: this.#properties.get(clusterSetProperty)?.spec?.value ?? defaultClusterset,
        cluster: this.#options.cluster,
      },
      secrets: (name, key) => this.#options.secrets.get(`${externalNamespace}/${name}`)?.data?.[key],
      ...{
        plugins: this.#options.plugins,
        ports: this.#options.ports,
        otherPorts: this.#options.otherPorts,
        address: this.#options.address,
      },
    });
    this.#limited = resources.filter(({ usedBy }) => usedBy !== undefined);
    this.#workloads.ask(new Set(this.#limited.flatMap(({ usedBy = [] }) => usedBy.map((one) => one.namespace))));
    for (const resource of resources) {
      if (resource.usedBy !== undefined) continue;
      const owner = `${resource.type} ${resource.name}`;
      const text = JSON.stringify(resource);
      next.set(owner, text);
      if (this.#sent.get(owner) !== text)
        replaceSafely(this.#options.views.external, owner, () => [resource], this.#log);
    }
    for (const owner of this.#sent.keys())
      if (!next.has(owner)) replaceSafely(this.#options.views.external, owner, () => [], this.#log);
    this.#sent = next;
  }

  #isNamed(key: string) {
    return [...this.#services.values()].some(({ spec }) =>
      secretReferences(spec?.destination?.tls).some(({ name }) =>
        [`${externalNamespace}/${name}`, `${externalNamespace}/${name}.broker`].includes(key),
      ),
    );
  }

  #renew() {
    return this.#batch.add('all');
  }
}
