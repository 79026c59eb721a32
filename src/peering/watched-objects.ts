// The objects of the home that peering follows, and how far their history has been read.

import type { Log } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Client } from '../kube/client/client.ts';
import { createInformer, type Informer } from '../kube/controller/informer.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import { type ImportedService, importedServiceType, serviceOfImport } from './kinds/imported-service.ts';
import { type Peer, peerType } from './kinds/peer.ts';
import { type PeerExport, peerExportType } from './kinds/peer-export.ts';

export interface WatchedObjectsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Where Peers lie; Services and PeerExports are in any namespace. */
  readonly namespace: string;
  readonly secretsNamespace: string;
}

export class WatchedObjects {
  readonly services: Informer<Service>;
  /** Services of the clusterset, each as a Service. A home may not have the kind, or not let us read it. */
  readonly imports: Informer<Service>;
  readonly exports: Informer<PeerExport>;
  readonly peers: Informer<Peer>;
  readonly secrets: Informer<Secret>;
  #revision = 0;

  constructor({ namespace, secretsNamespace, ...common }: WatchedObjectsOptions) {
    this.services = createInformer<Service>({ ...common, type: serviceType, keep: keepService });
    this.imports = createInformer<ImportedService, Service>({
      ...common,
      type: importedServiceType,
      keep: serviceOfImport,
    });
    this.exports = createInformer<PeerExport>({ ...common, type: peerExportType });
    this.peers = createInformer<Peer>({ ...common, type: peerType, namespace });
    this.secrets = createInformer<Secret>({ ...common, type: secretType, namespace: secretsNamespace });
  }

  start(): void {
    for (const informer of this.#all()) informer.start();
  }

  stop(): void {
    for (const informer of this.#all().reverse()) informer.stop();
  }

  hasSynced(): boolean {
    const needed = this.#all().filter((informer) => informer !== this.imports);
    return needed.every(({ hasSynced }) => hasSynced) && (this.imports.hasSynced || this.#hasNoImports());
  }

  // The older of the two revisions: nothing in the catalog can be older. Not the newest object's: that one may be
  // deleted during a downtime, and the next snapshot would seem older than the last.
  revision(): number {
    const read = [this.services, this.exports, ...(this.imports.hasSynced ? [this.imports] : [])];
    const positions = read.map((informer) => Number(informer.status().revision ?? 0));
    this.#revision = Math.max(this.#revision, Math.min(...positions) || 0);
    return this.#revision;
  }

  /** Known, not guessed: while the home has only not answered yet, a catalog without imports would withdraw services. */
  #hasNoImports(): boolean {
    const { state } = this.imports.status();
    return state.kind === 'unserved' || (state.kind === 'failing' && state.code === forbidden);
  }

  #all() {
    return [this.services, this.imports, this.exports, this.peers, this.secrets];
  }
}

const forbidden = 403;

/** The fields that an export can refer to. */
function keepService({ apiVersion, kind, metadata, spec }: Service): Service {
  const { name, namespace, labels, annotations, resourceVersion, uid } = metadata;
  const ports = spec?.ports?.map(({ name: own, port, protocol, appProtocol }) => ({
    name: own,
    port,
    protocol,
    appProtocol,
  }));
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, resourceVersion, uid },
    spec: { ports },
  };
}
