// Notes that survive a restart, key by key, in one ConfigMap: places where something must be removed later. A note is
// written before what it is about is done, so that nothing is left behind without one.

import { getOrUndefined } from '../client/absent.ts';
import { apply } from '../client/apply.ts';
import type { Client } from '../client/client.ts';
import { type ConfigMap, configMapType } from '../objects/config-map.ts';
import { managedByLabel, managerName } from '../objects/ours.ts';

export class Notes<T> {
  readonly #client: Client;
  readonly #ref: { readonly namespace: string; readonly name: string };
  #known: Map<string, T> | undefined;
  /** As it was last read or written. */
  #present: ConfigMap | undefined;

  constructor(client: Client, configMap: { readonly namespace: string; readonly name: string }) {
    this.#client = client;
    this.#ref = configMap;
  }

  async all(): Promise<ReadonlyMap<string, T>> {
    if (this.#known) return this.#known;
    this.#present = await getOrUndefined<ConfigMap>(this.#client, configMapType, this.#ref);
    this.#known = new Map(Object.entries(this.#present?.data ?? {}).map(([key, text]) => [key, JSON.parse(text) as T]));
    return this.#known;
  }

  async remember(key: string, note: T): Promise<void> {
    const known = await this.all();
    const text = JSON.stringify(note);
    if (JSON.stringify(known.get(key)) === text) return;
    await this.#write(key, text);
    this.#known?.set(key, note);
  }

  async forget(key: string): Promise<void> {
    const known = await this.all();
    if (!known.has(key)) return;
    await this.#write(key, undefined);
    this.#known?.delete(key);
  }

  /** Key by key: nothing else in it is touched. */
  async #write(key: string, text: string | undefined): Promise<void> {
    const change = (there: ConfigMap | undefined): ConfigMap => {
      const { [key]: _before, ...others } = there?.data ?? {};
      const data = text === undefined ? others : { ...others, [key]: text };
      const metadata = { ...this.#ref, labels: { [managedByLabel]: managerName } };
      return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...there, data };
    };
    const request = { client: this.#client, type: configMapType, present: this.#present, change };
    ({ object: this.#present } = await apply<ConfigMap>({ ...request, onConflict: 'retry' }));
  }
}
