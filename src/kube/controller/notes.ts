// What must be remembered beyond a restart, key by key, in one ConfigMap: where something was left that has to be taken back
// some day. A note is written before what it is about is done, so that nothing is left behind without one.

import type { Client } from '../client/client.ts';
import { isAlreadyExists, isNotFound } from '../objects/api-error.ts';
import { type ConfigMap, configMapType } from '../objects/config-map.ts';

export class Notes<T> {
  readonly #client: Client;
  readonly #ref: { readonly namespace: string; readonly name: string };
  #known: Map<string, T> | undefined;

  constructor(client: Client, configMap: { readonly namespace: string; readonly name: string }) {
    this.#client = client;
    this.#ref = configMap;
  }

  async all(): Promise<ReadonlyMap<string, T>> {
    if (this.#known) return this.#known;
    const data = await this.#read();
    this.#known = new Map(Object.entries(data).map(([key, text]) => [key, JSON.parse(text) as T]));
    return this.#known;
  }

  async remember(key: string, note: T): Promise<void> {
    const known = await this.all();
    const text = JSON.stringify(note);
    if (JSON.stringify(known.get(key)) === text) return;
    await this.#write({ [key]: text });
    this.#known?.set(key, note);
  }

  async forget(key: string): Promise<void> {
    const known = await this.all();
    if (!known.has(key)) return;
    await this.#write({ [key]: null });
    this.#known?.delete(key);
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
