// What clients of a chaos run talk to: they wait while it is away, and find it again.

import { type Connection, connect } from '../support/api-process.ts';
import type { History, Server } from './history.ts';
import type { Watcher } from './watcher.ts';

/** A server that something happens to, and that clients find again afterwards. */
export abstract class DisturbedServer implements Server {
  isOver = false;
  readonly problems: string[] = [];
  #compactionsOfOthers = 0;
  #connections: Promise<Connection>[] = [];
  #turn = 0;
  #up = Promise.withResolvers<void>();
  #polling: NodeJS.Timeout | undefined;
  #compactionsOfThisOne = 0;

  abstract start(): Promise<void>;
  /** Resolves when it serves again. */
  abstract disturb(): Promise<void>;
  /** Ends its processes. */
  protected abstract stop(): Promise<void>;

  get compactions(): number {
    return this.#compactionsOfOthers + this.#compactionsOfThisOne;
  }

  protected reach(kubeconfig: string): void {
    this.#connections = Array.from({ length: 4 }, () => connect(kubeconfig));
    for (const connection of this.#connections) connection.catch(() => {});
    this.#up.resolve();
    this.#polling = setInterval(() => void this.#countCompactions(), 100);
  }

  /** Clients wait from now on. What is in flight stays so until `hangUp`. */
  protected leave(): void {
    clearInterval(this.#polling);
    this.#up = Promise.withResolvers<void>();
    this.#compactionsOfOthers += this.#compactionsOfThisOne;
    this.#compactionsOfThisOne = 0;
  }

  protected async hangUp(): Promise<void> {
    for (const connection of this.#connections) await connection.then((open) => open.close()).catch(() => {});
  }

  async connection(): Promise<Connection> {
    await this.#up.promise;
    this.#turn += 1;
    return this.#connections[this.#turn % this.#connections.length] as Promise<Connection>;
  }

  /** Stops the writers first, lets the watchers reach the last revision, then stops them too. */
  async quiesce(clients: readonly Promise<void>[], watchers: readonly Watcher[], history: History): Promise<void> {
    const connection = await this.connection();
    const marker = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'marker' }, data: { value: 'end' } };
    this.isOver = true;
    await Promise.all(clients);
    this.isOver = false;
    const again = watchers.map((watcher) => watcher.run(this));
    await connection.request('POST', '/api/v1/namespaces/chaos/configmaps', marker);
    for (let tries = 0; tries < 200 && watchers.some((watcher) => watcher.state.get('marker') !== 'end'); tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    // History of one second is forgotten a second after the last write at the latest.
    for (let tries = 0; tries < 100 && this.compactions === 0; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    this.isOver = true;
    await Promise.all(again);
    if (history.acknowledged.length === 0) this.problems.push('no write was acknowledged: nothing was tested');
  }

  async finalState(): Promise<Map<string, string>> {
    const { body } = await (await this.connection()).request('GET', '/api/v1/namespaces/chaos/configmaps');
    const list = JSON.parse(body.toString());
    return new Map(
      list.items.map((item: { metadata: { name: string }; data: { value: string } }) => [
        item.metadata.name,
        item.data.value,
      ]),
    );
  }

  async end(): Promise<void> {
    this.isOver = true;
    clearInterval(this.#polling);
    await this.hangUp();
    await this.stop();
  }

  // Asked again and again while it lives: it is not asked to say goodbye.
  async #countCompactions(): Promise<void> {
    try {
      const connection = await (this.#connections[0] as Promise<Connection>);
      const text = (await connection.request('GET', '/metrics')).body.toString();
      const count = Number(/^portolan_store_compactions_total (\d+)$/m.exec(text)?.[1] ?? 0);
      this.#compactionsOfThisOne = Math.max(this.#compactionsOfThisOne, count);
    } catch {
      // It was killed meanwhile.
    }
  }
}
