// Keeps the resources of the ingress current: PeerExports, the Services and imports they select, the slices of both, and
// the peers that may call.

import { repeat } from '../../base/repeat.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { importedPortName } from '../../peering/kinds/imported-service.ts';
import { type Peer, peerType } from '../../peering/kinds/peer.ts';
import {
  exportsService,
  type MeshDefaults,
  type PeerExport,
  peerExportType,
  sharedPort,
  sharedServiceOf,
} from '../../peering/kinds/peer-export.ts';
import {
  backendEndpoints,
  type CallerTrust,
  callersResource,
  ingressResources,
  type SharedRoute,
  workloadResource,
} from '../ingress/generate.ts';
import type { XdsResource } from '../resource.ts';
import type { WithheldList } from '../withheld.ts';
import { Batch } from './batch.ts';
import { Confirmation } from './confirmation.ts';
import { bundleOf } from './home-secrets.ts';
import { type ImportedServices, watchImportedServices } from './imported-services.ts';
import type { MeshSource } from './mesh.ts';
import { MeshCertificates, ofWorkloads } from './mesh-certificates.ts';
import { onServiceSlices, slicesOf } from './own-slices.ts';
import { replaceSafely, type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface IngressSourceOptions extends SourceOptions {
  readonly namespace: string;
  /** Namespace of the Secrets that Peers name. */
  readonly secretsNamespace: string;
  readonly secrets: Informer<Secret>;
  readonly slices: Informer<EndpointSlice>;
  readonly mesh: MeshSource;
  readonly withheld: WithheldList;
  readonly port: number;
  /** Where it listens; everywhere if absent. */
  readonly address?: string;
}

/** For how long the Peers and exports of a home that is away admit new connections. */
const confirmedMs = 600_000;
/** Certificates that are due are issued anew this often. */
const renewMs = 3_600_000;

export class IngressSource implements XdsSource {
  readonly #options: IngressSourceOptions;
  readonly #log;
  readonly #certificates;
  readonly #where;
  readonly #exports;
  readonly #services;
  readonly #peers;
  #routes: readonly SharedRoute[] = [];
  readonly #imports;
  readonly #batch;
  #trusted = new Map<string, CallerTrust | undefined>();
  readonly #offs;
  readonly #stopRenewing;
  readonly #source;
  readonly #confirmation: Confirmation;

  constructor(options: IngressSourceOptions) {
    this.#options = options;
    this.#log = this.#options.log.with({ source: 'ingress' });
    this.#certificates = new MeshCertificates(this.#options.world, ofWorkloads);
    this.#where = { client: this.#options.client, world: this.#options.world, log: this.#log };
    this.#exports = createInformer<PeerExport>({ ...this.#where, type: peerExportType });
    this.#services = createInformer<Service>({
      ...this.#where,
      type: serviceType,
      indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ''] },
    });
    this.#peers = createInformer<Peer>({ ...this.#where, namespace: this.#options.namespace, type: peerType });
    this.#imports = watchImportedServices(this.#where, {
      importsChanged: () => this.#batch.add('all'),
      slicesChanged: (service) => this.#batch.add(service),
    });
    this.#batch = new Batch(this.#options.world.timers, (keys) => {
      if (keys.has('all')) return this.#renewAll();
      for (const key of keys) this.#renewBackends((backend) => `${backend.namespace}/${backend.service}` === key);
    });
    for (const informer of [this.#exports, this.#services, this.#peers] as unknown as Informer<never>[])
      informer.on(() => this.#batch.add('all'));
    this.#offs = [
      this.#options.secrets.on(() => this.#batch.add('all')),
      this.#options.mesh.onChange(() => this.#batch.add('all')),
      onServiceSlices(this.#options.slices, (key) => this.#batch.add(key)),
    ];
    this.#stopRenewing = repeat(this.#options.world.timers, { everyMs: renewMs }, () => this.#batch.add('all'));
    this.#source = sourceOf([this.#exports, this.#services, this.#peers] as unknown as Informer<never>[], () => {
      this.#batch.stop();
      this.#confirmation.stop();
      this.#stopRenewing();
      this.#imports.stop();
      for (const off of this.#offs) off();
    });
    this.#confirmation = new Confirmation({
      ...{ world: this.#options.world, holdsMs: confirmedMs, staleSinceMs: () => this.#source.staleSinceMs() },
      onChange: (isOver) => {
        if (isOver) this.#log.warn('the home has not confirmed who may call: new connections of peers are refused');
        else this.#log.info('the home confirms again who may call');
        this.#batch.add('all');
      },
    });
  }

  staleSinceMs() {
    return this.#source.staleSinceMs();
  }

  stop() {
    return this.#source.stop();
  }

  async whenSynced() {
    await Promise.all([
      this.#source.whenSynced(),
      this.#options.slices.whenSynced(),
      this.#imports.whenKnown(),
      this.#options.mesh.whenSynced(),
    ]);
    this.#batch.add('all');
    this.#batch.flush();
  }

  #trustOf(name: string): CallerTrust | undefined {
    if (!this.#trusted.has(name)) this.#trusted.set(name, this.#readTrust(name));
    return this.#trusted.get(name);
  }

  #readTrust(name: string): CallerTrust | undefined {
    const peer = this.#peers.get(`${this.#options.namespace}/${name}`);
    const bundle = peer === undefined ? '' : bundleOf(peer, this.#options.secrets, this.#options.secretsNamespace);
    if (peer === undefined || bundle === '') return undefined;
    return { peer: name, domain: peer.spec.trust.domain, bundle, identities: peer.spec.trust.identities ?? [] };
  }

  #renewAll(): void {
    this.#trusted = new Map();
    const defaults = this.#options.mesh.defaults();
    const before = this.#routes;
    this.#routes =
      defaults === undefined
        ? []
        : routesOf(this.#exports, { services: this.#services, imports: this.#imports }, defaults);
    const hasCertificate = () => this.#options.mesh.authority() !== undefined;
    const outcome = ingressResources({
      ...{ routes: this.#routes, trustOf: (name) => this.#trustOf(name), hasCertificate, port: this.#options.port },
      ...{ address: this.#options.address, isClosed: this.#confirmation.isOver },
    });
    replaceSafely(this.#options.views.ingress, 'secrets', () => this.#secretsOf(), this.#log);
    const gone = before.filter(({ backend }) => !this.#routes.some((route) => isSameBackend(route.backend, backend)));
    this.#renewBackends(() => true);
    replaceSafely(this.#options.views.ingress, 'listener', () => outcome.resources, this.#log);
    for (const { backend } of gone) this.#options.views.ingress.replace(`backend ${backendKey(backend)}`, []);
    this.#options.withheld.set('ingress', outcome.withheld);
  }

  #secretsOf(): XdsResource[] {
    const made = new Map<string, XdsResource>();
    const authority = this.#options.mesh.authority();
    const callers = new Map<string, CallerTrust>();
    const ending = this.#routes.filter(({ tls }) => tls !== 'passthrough');
    for (const { san, peers: names } of ending) {
      if (authority !== undefined) made.set(san, workloadResource(san, this.#certificates.of(san, authority)));
      for (const trust of names.map((name) => this.#trustOf(name)))
        if (trust !== undefined) callers.set(trust.peer, trust);
    }
    if (callers.size === 0) return [...made.values()];
    const causes = new Map(ending.map(({ cause }) => [`${cause.namespace}/${cause.name}`, cause]));
    return [...made.values(), callersResource([...callers.values()], [...causes.values()])];
  }

  #renewBackends(isMeant: (backend: SharedRoute['backend']) => boolean): void {
    const backends = new Map(this.#routes.map(({ backend }) => [backendKey(backend), backend]));
    for (const [key, backend] of backends) {
      if (!isMeant(backend)) continue;
      const service = `${backend.namespace}/${backend.service}`;
      const [own, imported] = [slicesOf(this.#options.slices, service), this.#imports.slicesOf(service)];
      replaceSafely(
        this.#options.views.ingress,
        `backend ${key}`,
        () => [backendEndpoints(backend, own, imported)],
        this.#log,
      );
    }
  }
}

interface Selectable {
  readonly services: Informer<Service>;
  readonly imports: ImportedServices;
}

function routesOf(exports: Informer<PeerExport>, { services, imports }: Selectable, mesh: MeshDefaults): SharedRoute[] {
  const routes: SharedRoute[] = [];
  for (const each of exports.values()) {
    const { namespace = '', name } = each.metadata;
    const isElsewhere = ({ metadata }: Service) => services.get(`${namespace}/${metadata.name}`) === undefined;
    const elsewhere = imports.inNamespace(namespace).filter(isElsewhere);
    for (const service of [...services.byIndex('namespace', namespace), ...elsewhere]) {
      const port = sharedPort(each, service);
      if (port === undefined || !exportsService(each, service)) continue;
      const { id, san } = sharedServiceOf(each, service, mesh);
      routes.push({
        sni: id,
        san,
        tls: each.spec.tls ?? 'terminate',
        peers: each.spec.peers ?? [],
        backend: {
          ...{ namespace, service: service.metadata.name, portName: port.name ?? '' },
          importedPortName: importedPortName(port, imports.get(`${namespace}/${service.metadata.name}`)),
        },
        cause: { at: 'home', kind: 'PeerExport', namespace, name },
      });
    }
  }
  return routes;
}

function backendKey({ namespace, service, portName }: SharedRoute['backend']): string {
  return `${namespace}/${service}/${portName}`;
}

function isSameBackend(one: SharedRoute['backend'], other: SharedRoute['backend']): boolean {
  return backendKey(one) === backendKey(other);
}
