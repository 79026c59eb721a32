// Where stub zones have been posted, in a ConfigMap beside the Federation: written before the first post, so that a member
// that leaves while nobody looks is still told to forget.

import { isAlreadyExists, isNotFound } from '../../client/api-error.ts';
import type { Client } from '../../client/client.ts';
import { type ConfigMap, configMapType } from '../../model/config-map.ts';
import type { ResolverEndpoint } from './plan.ts';

export class PostedStubZones {
  readonly #client: Client;
  readonly #ref: { readonly namespace: string; readonly name: string };
  #known: Map<string, ResolverEndpoint> | undefined;

  constructor(client: Client, options: { readonly namespace: string; readonly federation: string }) {
    this.#client = client;
    this.#ref = { namespace: options.namespace, name: `portolan-stub-zones.${options.federation}` };
  }

  /** By cluster. */
  async all(): Promise<ReadonlyMap<string, ResolverEndpoint>> {
    if (this.#known) return this.#known;
    const data = await this.#read();
    this.#known = new Map(
      Object.entries(data).map(([cluster, text]) => [cluster, JSON.parse(text) as ResolverEndpoint]),
    );
    return this.#known;
  }

  async remember(cluster: string, endpoint: ResolverEndpoint): Promise<void> {
    const known = await this.all();
    const text = JSON.stringify(endpoint);
    if (JSON.stringify(known.get(cluster)) === text) return;
    await this.#write({ [cluster]: text });
    this.#known?.set(cluster, endpoint);
  }

  async forget(cluster: string): Promise<void> {
    const known = await this.all();
    if (!known.has(cluster)) return;
    await this.#write({ [cluster]: null });
    this.#known?.delete(cluster);
  }

  async #read(): Promise<Record<string, string>> {
    try {
      return (await this.#client.get<ConfigMap>(configMapType, this.#ref)).data ?? {};
    } catch (error) {
      if (isNotFound(error)) return {};
      throw error;
    }
  }

  /** Key by key: nothing else in it is touched. */
  async #write(data: Record<string, string | null>): Promise<void> {
    const patch = () => this.#client.patch(configMapType, this.#ref, { kind: 'merge', body: { data } });
    try {
      await patch();
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await this.#create();
      await patch();
    }
  }

  async #create(): Promise<void> {
    const labels = { 'app.kubernetes.io/managed-by': 'portolan' };
    const metadata = { ...this.#ref, labels };
    try {
      await this.#client.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
