// For tests under the virtual clock: whole meshes with their homes and peering processes, which can be killed and started
// again. A mesh's certificate is its name.

import { SimHome } from '../../../sim/home.ts';
import { Simulation, type VirtualWorld } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { type Peer, type PeerSpec, peerType } from '../kinds/peer.ts';
import { type PeerExport, peerExportType } from '../kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../kinds/peer-service.ts';
import type { PeeringServerOptions } from '../peering.ts';
import { type Peering, type PeeringOptions, startPeering } from '../peering.ts';
import { meshOf } from './edge/mesh.ts';
import { VirtualPeering } from './virtual-peering.ts';

export const namespace = 'portolan-system';
const namespaceType = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };

export interface MeshOptions extends Partial<PeeringOptions> {
  /** Stands between the peering process and its home. */
  readonly wrapClient?: (client: Client) => Client;
}

export class VirtualMeshes {
  readonly simulation: Simulation;
  readonly network: VirtualPeering;
  /** Every mesh trusts it; the simulated socket decides the caller. */
  readonly root = meshOf('any.example').certificate;
  readonly meshes = new Map<string, VirtualMesh>();

  constructor(options: { readonly seed?: number; readonly latencyMs?: number } = {}) {
    this.simulation = new Simulation({ seed: options.seed ?? 1, latencyMs: { min: 0, max: 1 } });
    const timers = { after: (delayMs: number, run: () => void) => this.simulation.time.schedule(delayMs, run) };
    this.network = new VirtualPeering({ timers, latencyMs: options.latencyMs ?? 5 });
  }

  get time() {
    return this.simulation.time;
  }

  async add(name: string, options: MeshOptions = {}): Promise<VirtualMesh> {
    const mesh = new VirtualMesh(this, name, options);
    this.meshes.set(name, mesh);
    await this.time.settle(mesh.home.start());
    for (const one of [namespace, 'shop']) {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: one } };
      await this.time.settle(mesh.home.admin.create(namespaceType, object).catch(() => {}));
    }
    await mesh.start();
    return mesh;
  }

  /** `consumer` takes from `owner`. */
  async introduce(owner: VirtualMesh, consumer: VirtualMesh, spec: Partial<PeerSpec> = {}): Promise<void> {
    await owner.addPeer(consumer.name, {});
    await consumer.addPeer(owner.name, { address: owner.address, allowedDomains: ['*'], ...spec });
  }
}

export class VirtualMesh {
  readonly name: string;
  readonly home: SimHome;
  readonly address: string;
  readonly #all: VirtualMeshes;
  readonly #options: MeshOptions;
  #world: VirtualWorld | undefined;
  peering: Peering | undefined;

  constructor(all: VirtualMeshes, name: string, options: MeshOptions) {
    this.name = name;
    this.address = `https://${name}.example:8008`;
    this.#all = all;
    this.#options = options;
    const { simulation } = all;
    this.home = new SimHome({ simulation, name, serviceRanges: ['10.96.0.0/16'], mayDo: () => true });
  }

  async start(): Promise<void> {
    const world = this.#all.simulation.world(`peering-${this.name}`);
    this.#world = world;
    const access = { server: this.home.url, bearerToken: async () => `peering-${this.name}` };
    const { wrapClient = (client: Client) => client, ...options } = this.#options;
    const starting = startPeering({
      world,
      log: silentLog,
      client: wrapClient(createClient(world.network.http(access), { world, userAgent: 'peering' })),
      namespace,
      listen: { host: this.name, port: 0 },
      mesh: {
        trustDomain: `${this.name}.example`,
        domain: `${this.name}.example`,
        ingress: [{ address: '192.0.2.1', port: 15443 }],
      },
      own: () => ({ zones: ['cluster.local'], ranges: [], hosts: [] }),
      credentials: { current: () => ({ certificate: this.name, key: '' }), onChanged: () => () => {} },
      serve: (options: PeeringServerOptions) => this.#all.network.serve(this.address)(options),
      dial: this.#all.network.dial(),
      ...options,
    });
    this.peering = await this.#all.time.settle(starting);
  }

  /** As kill -9. */
  kill(): void {
    this.#world?.revoke();
    this.#all.network.vanish(this.address, this.name);
    this.peering = undefined;
  }

  async addPeer(name: string, spec: Partial<PeerSpec>): Promise<void> {
    const trust = { domain: `${name}.example`, bundle: this.#all.root };
    await this.#do(
      this.home.admin.create<Peer>(peerType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Peer',
        metadata: { name, namespace },
        spec: { trust, ...spec },
      }),
    );
  }

  async addService(name: string, description = ''): Promise<void> {
    const annotations = { 'portolan.dev/description': description };
    await this.#do(
      this.home.admin.create<Service>(serviceType, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace: 'shop', annotations },
        spec: { ports: [{ port: 80 }] },
      }),
    );
  }

  async describe(name: string, description: string): Promise<void> {
    const body = { metadata: { annotations: { 'portolan.dev/description': description } } };
    await this.#do(this.home.admin.patch(serviceType, { namespace: 'shop', name }, { kind: 'merge', body }));
  }

  async removeService(name: string): Promise<void> {
    await this.#do(this.home.admin.delete(serviceType, { namespace: 'shop', name }));
  }

  async exportAll(peers: readonly string[]): Promise<void> {
    await this.#do(
      this.home.admin.create<PeerExport>(peerExportType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'PeerExport',
        metadata: { name: 'all', namespace: 'shop' },
        spec: { serviceSelector: {}, peers: [...peers] },
      }),
    );
  }

  /** `name: description` of each service this mesh offers. */
  async offered(): Promise<string[]> {
    const { items } = await this.#do(this.home.admin.list<Service>(serviceType, { namespace: 'shop' }));
    return items
      .map(({ metadata }) => `${metadata.name}: ${metadata.annotations?.['portolan.dev/description']}`)
      .sort();
  }

  async held(): Promise<PeerService[]> {
    return (await this.#do(this.home.admin.list<PeerService>(peerServiceType, { namespace }))).items;
  }

  /** `name: description` of each service this mesh holds of others. */
  async heldTexts(): Promise<string[]> {
    return (await this.held()).map(({ spec }) => `${spec.name}: ${spec.description}`).sort();
  }

  async peer(name: string): Promise<Peer> {
    return this.#do(this.home.admin.get<Peer>(peerType, { namespace, name }));
  }

  #do<T>(promise: Promise<T>): Promise<T> {
    return this.#all.time.settle(promise);
  }
}
