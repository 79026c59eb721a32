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
import type { WithheldBook } from '../withheld.ts';
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
  /** Of the Secrets that Peers name. */
  readonly secretsNamespace: string;
  readonly secrets: Informer<Secret>;
  readonly slices: Informer<EndpointSlice>;
  readonly mesh: MeshSource;
  readonly withheld: WithheldBook;
  readonly port: number;
  /** Where it listens; everywhere if absent. */
  readonly address?: string;
}

/** For how long the Peers and exports of a home that is away admit new connections. */
const confirmedMs = 600_000;
/** Certificates that are due are issued anew this often. */
const renewMs = 3_600_000;

export function startIngressSource(options: IngressSourceOptions): XdsSource {
  const { client, world, book, namespace, secrets, slices, mesh, withheld } = options;
  const log = options.log.with({ source: 'ingress' });
  const certificates = new MeshCertificates(world, ofWorkloads);
  const where = { client, world, log };
  const exports = createInformer<PeerExport>({ ...where, type: peerExportType });
  const services = createInformer<Service>({
    ...where,
    type: serviceType,
    indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ''] },
  });
  const peers = createInformer<Peer>({ ...where, namespace, type: peerType });
  let routes: readonly SharedRoute[] = [];
  const imports = watchImportedServices(where, {
    importsChanged: () => batch.add('all'),
    slicesChanged: (service) => batch.add(service),
  });

  const batch = new Batch(world.timers, (keys) => {
    if (keys.has('all')) return renewAll();
    for (const key of keys) renewBackends((backend) => `${backend.namespace}/${backend.service}` === key);
  });

  let trusted = new Map<string, CallerTrust | undefined>();
  function trustOf(name: string): CallerTrust | undefined {
    if (!trusted.has(name)) trusted.set(name, readTrust(name));
    return trusted.get(name);
  }

  function readTrust(name: string): CallerTrust | undefined {
    const peer = peers.get(`${namespace}/${name}`);
    const bundle = peer === undefined ? '' : bundleOf(peer, secrets, options.secretsNamespace);
    if (peer === undefined || bundle === '') return undefined;
    return { peer: name, domain: peer.spec.trust.domain, bundle, identities: peer.spec.trust.identities ?? [] };
  }

  function renewAll(): void {
    trusted = new Map();
    const defaults = mesh.defaults();
    const before = routes;
    routes = defaults === undefined ? [] : routesOf(exports, { services, imports }, defaults);
    const hasCertificate = () => mesh.authority() !== undefined;
    const outcome = ingressResources({
      ...{ routes, trustOf, hasCertificate, port: options.port },
      ...{ address: options.address, isClosed: confirmation.isOver },
    });
    replaceSafely(book.ingress, 'secrets', () => secretsOf(), log);
    const gone = before.filter(({ backend }) => !routes.some((route) => isSameBackend(route.backend, backend)));
    renewBackends(() => true);
    replaceSafely(book.ingress, 'listener', () => outcome.resources, log);
    for (const { backend } of gone) book.ingress.replace(`backend ${backendKey(backend)}`, []);
    withheld.set('ingress', outcome.withheld);
  }

  function secretsOf(): XdsResource[] {
    const made = new Map<string, XdsResource>();
    const authority = mesh.authority();
    const callers = new Map<string, CallerTrust>();
    const ending = routes.filter(({ tls }) => tls !== 'passthrough');
    for (const { san, peers: names } of ending) {
      if (authority !== undefined) made.set(san, workloadResource(san, certificates.of(san, authority)));
      for (const trust of names.map(trustOf)) if (trust !== undefined) callers.set(trust.peer, trust);
    }
    if (callers.size === 0) return [...made.values()];
    const causes = new Map(ending.map(({ cause }) => [`${cause.namespace}/${cause.name}`, cause]));
    return [...made.values(), callersResource([...callers.values()], [...causes.values()])];
  }

  function renewBackends(isMeant: (backend: SharedRoute['backend']) => boolean): void {
    const backends = new Map(routes.map(({ backend }) => [backendKey(backend), backend]));
    for (const [key, backend] of backends) {
      if (!isMeant(backend)) continue;
      const service = `${backend.namespace}/${backend.service}`;
      const [own, imported] = [slicesOf(slices, service), imports.slicesOf(service)];
      replaceSafely(book.ingress, `backend ${key}`, () => [backendEndpoints(backend, own, imported)], log);
    }
  }

  for (const informer of [exports, services, peers] as unknown as Informer<never>[])
    informer.on(() => batch.add('all'));
  const offs = [
    secrets.on(() => batch.add('all')),
    mesh.onChange(() => batch.add('all')),
    onServiceSlices(slices, (key) => batch.add(key)),
  ];
  const stopRenewing = repeat(world.timers, { everyMs: renewMs }, () => batch.add('all'));
  const source = sourceOf([exports, services, peers] as unknown as Informer<never>[], () => {
    batch.stop();
    confirmation.stop();
    stopRenewing();
    imports.stop();
    for (const off of offs) off();
  });
  const confirmation: Confirmation = new Confirmation({
    ...{ world, holdsMs: confirmedMs, staleSinceMs: () => source.staleSinceMs() },
    onChange: (isOver) => {
      if (isOver) log.warn('the home has not confirmed who may call: new connections of peers are refused');
      else log.info('the home confirms again who may call');
      batch.add('all');
    },
  });
  return {
    ...source,
    whenSynced: async () => {
      await Promise.all([source.whenSynced(), slices.whenSynced(), imports.whenKnown(), mesh.whenSynced()]);
      batch.add('all');
      batch.flush();
    },
  };
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
