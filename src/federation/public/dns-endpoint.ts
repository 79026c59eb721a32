// Public names as objects of kind DNSEndpoint, one for each name, for an external-dns that runs with the source `crd`: it
// writes the records, at any provider that it knows. Each object is labelled with its Federation and goes with it. An
// object of another writer under a name of ours is left alone.

import { errorText } from '../../base/log.ts';
import type { Clock } from '../../base/world.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isConflict, isNotFound } from '../../kube/objects/api-error.ts';
import { boundedName } from '../../kube/objects/bounded-name.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { managedByLabel, managerName } from '../../kube/objects/ours.ts';
import type { Federation } from '../kinds/federation.ts';
import { type NameChange, ownerNameOf, ownerText, type ZoneSet } from './difference.ts';
import type { ChangeResult, Provider } from './publisher.ts';
import { type Endpoint, endpointOf, readEndpoints, zoneSetsOf } from './webhook-protocol.ts';

export const dnsEndpointType: ResourceType = {
  group: 'externaldns.k8s.io',
  version: 'v1alpha1',
  plural: 'dnsendpoints',
  kind: 'DNSEndpoint',
  isNamespaced: true,
};

interface DnsEndpoint extends KubernetesObject {
  spec?: { endpoints?: Endpoint[] | null };
  /** Written by external-dns. */
  status?: { observedGeneration?: number };
}

export interface DnsEndpointOptions {
  readonly broker: Client;
  readonly clock: Clock;
  readonly namespace: string;
  readonly domain: string;
  /** Its name, and itself while it exists: the objects go with it. */
  readonly federation: string;
  readonly present: () => Federation | undefined;
  readonly owner: string;
  readonly ttlSeconds: number;
}

const federationLabel = 'portolan.dev/federation';
/** external-dns looks once a minute unless it was told otherwise. */
const observedMsMax = 180_000;

export class DnsEndpointProvider implements Provider {
  readonly #options: DnsEndpointOptions;
  #known: ReadonlyMap<string, DnsEndpoint> = new Map();

  constructor(options: DnsEndpointOptions) {
    this.#options = options;
  }

  async read(): Promise<readonly ZoneSet[]> {
    const objects: DnsEndpoint[] = [];
    try {
      for await (const { items } of this.#options.broker.listPaged<DnsEndpoint>(dnsEndpointType, {
        namespace: this.#options.namespace,
      }))
        objects.push(...items);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new Error('the broker has no kind DNSEndpoint (externaldns.k8s.io/v1alpha1): install its definition');
    }
    this.#known = new Map(objects.map((object) => [object.metadata.name, object]));
    return objects.flatMap((object) => this.#setsOf(object));
  }

  async apply(changes: readonly NameChange[]): Promise<readonly ChangeResult[]> {
    const results: ChangeResult[] = [];
    for (const change of changes) results.push(await this.#applyOne(change));
    return results;
  }

  remark(): string {
    const nowMs = this.#options.clock.wallMs();
    const ours = [...this.#known.values()].filter((labels) => this.#isOurs(labels));
    const waiting = ours.filter(
      ({ metadata: { generation, creationTimestamp }, status }) =>
        status?.observedGeneration !== generation && nowMs - Date.parse(creationTimestamp ?? '') > observedMsMax,
    );
    if (waiting.length === 0) return '';
    return `${waiting.length} of ${ours.length} DNSEndpoints have not been taken up by an external-dns: run one with --source=crd that reads namespace ${this.#options.namespace} of the broker`;
  }

  /** Ours with a mark like that of a zone; a name of somebody else's object has another owner. */
  #setsOf(object: DnsEndpoint): ZoneSet[] {
    const sets = zoneSetsOf(
      readEndpoints(object.spec?.endpoints, `DNSEndpoint ${object.metadata.name}`),
      this.#options.domain,
    );
    if (!this.#isOurs(object)) return sets.map((set) => ({ ...set, type: 'other' as const }));
    const names = new Set(sets.map(({ name }) => name));
    const marks = [...names].map((name) => ({
      name: ownerNameOf(name),
      type: 'TXT' as const,
      values: [ownerText(this.#options.owner, name)],
    }));
    return [...sets, ...marks];
  }

  #isOurs({ metadata: { labels } }: DnsEndpoint): boolean {
    return labels?.[managedByLabel] === managerName && labels[federationLabel] === this.#options.federation;
  }

  async #applyOne({ name, kind, sets }: NameChange): Promise<ChangeResult> {
    const objectName = boundedName(name);
    const there = this.#known.get(objectName);
    if (there !== undefined && !this.#isOurs(there)) return { kind: 'conflict' };
    try {
      if (kind === 'delete')
        await deleteIfPresent(this.#options.broker, dnsEndpointType, {
          namespace: this.#options.namespace,
          ...there?.metadata,
          name: objectName,
        });
      else if (there === undefined)
        await this.#options.broker.create<DnsEndpoint>(dnsEndpointType, this.#objectOf(objectName, sets));
      else await this.#options.broker.update<DnsEndpoint>(dnsEndpointType, { ...there, spec: this.#specOf(sets) });
      return { kind: 'done' };
    } catch (error) {
      return isConflict(error) ? { kind: 'conflict' } : { kind: 'failed', why: errorText(error) };
    }
  }

  #objectOf(name: string, sets: NameChange['sets']): DnsEndpoint {
    const { apiVersion, kind, metadata: { uid = '' } = {} } = { ...ownerReference, ...this.#options.present() };
    return {
      apiVersion: `${dnsEndpointType.group}/${dnsEndpointType.version}`,
      kind: dnsEndpointType.kind,
      metadata: {
        name,
        namespace: this.#options.namespace,
        labels: { [managedByLabel]: managerName, [federationLabel]: this.#options.federation },
        ...(uid === '' ? {} : { ownerReferences: [{ apiVersion, kind, name: this.#options.federation, uid }] }),
      },
      spec: this.#specOf(sets),
    };
  }

  #specOf(sets: NameChange['sets']): DnsEndpoint['spec'] {
    return { endpoints: sets.map((set) => endpointOf(set, this.#options.ttlSeconds)) };
  }
}

const ownerReference = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Federation' };
