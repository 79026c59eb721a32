// Which workloads run on the node of a proxy, from the Pods of the namespaces that somebody asks about. Nothing is watched
// while nobody asks. Of each Pod only its node and its account are kept.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { WorkloadSelector } from '../../external/kinds/mesh-external-service.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type Pod, podType } from '../../kube/objects/pod.ts';
import type { ProxyIdentity } from '../identity/proxy-identity.ts';

export interface NodeWorkloadsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Namespace of the Pods of proxies. */
  readonly namespace: string;
  /** Other workloads run on this node than before, or another proxy. */
  readonly onChange: (node: string) => void;
}

interface Seat {
  readonly node: string;
  readonly account: string;
}

const ended: ReadonlySet<string | undefined> = new Set(['Succeeded', 'Failed']);

export class NodeWorkloads {
  readonly #options: NodeWorkloadsOptions;
  readonly #pods = new Map<string, Informer<Seat>>();
  /** By node, namespace and account: how many Pods. */
  readonly #counts = new Map<string, number>();

  constructor(options: NodeWorkloadsOptions) {
    this.#options = options;
  }

  /** Follows the Pods of these namespaces, and of no others but the one of proxies. */
  ask(namespaces: ReadonlySet<string>): void {
    const wanted = namespaces.size === 0 ? namespaces : new Set([...namespaces, this.#options.namespace]);
    for (const [namespace, informer] of [...this.#pods]) if (!wanted.has(namespace)) this.#leave(namespace, informer);
    for (const namespace of wanted) if (!this.#pods.has(namespace)) this.#follow(namespace);
  }

  /** Whether a workload that one of these selects runs on the node of the proxy, or is the only one that it serves. */
  runs({ name, workload }: ProxyIdentity, selectors: readonly WorkloadSelector[]): boolean {
    // Its name has its namespace in it, and could be that of a node.
    if (workload !== undefined)
      return selectors.some(
        ({ namespace, serviceAccount = workload.account }) =>
          namespace === workload.namespace && serviceAccount === workload.account,
      );
    const node = this.nodeOf(name);
    return selectors.some(({ namespace, serviceAccount = '' }) =>
      this.#counts.has(keyOf(node, namespace, serviceAccount)),
    );
  }

  async whenSynced(patienceMs: number): Promise<void> {
    const patience = new AbortController();
    const timer = this.#options.world.timers.after(patienceMs, () => patience.abort());
    await Promise.all([...this.#pods.values()].map((pods) => pods.whenSynced(patience.signal)))
      .catch(() => this.#options.log.warn('Pods cannot be listed: client keys for some workloads are served to none'))
      .finally(() => timer.cancel());
  }

  stop(): void {
    for (const informer of this.#pods.values()) informer.stop();
  }

  /** A proxy in a Pod has the name of its Pod, one on a machine that of the machine. */
  nodeOf(proxy: string): string {
    const { namespace } = this.#options;
    return this.#pods.get(namespace)?.get(`${namespace}/${proxy}`)?.node ?? proxy;
  }

  #follow(namespace: string): void {
    const { client, world, log, onChange } = this.#options;
    const informer = createInformer<Pod, Seat>({ client, world, log, namespace, type: podType, keep: seatOf });
    this.#pods.set(namespace, informer);
    informer.on((_key, next, previous) => {
      if (next?.node === previous?.node && next?.account === previous?.account) return;
      for (const [seat, by] of [[previous, -1] as const, [next, 1] as const]) {
        const isOther = this.#count(namespace, seat, by);
        if (seat !== undefined && (isOther || namespace === this.#options.namespace)) onChange(seat.node);
      }
    });
    informer.start();
  }

  #leave(namespace: string, informer: Informer<Seat>): void {
    this.#pods.delete(namespace);
    informer.stop();
    for (const seat of informer.values()) this.#count(namespace, seat, -1);
  }

  /** True if a workload is the first, or was the last, of its kind on its node. */
  #count(namespace: string, seat: Seat | undefined, by: 1 | -1): boolean {
    if (seat === undefined) return false;
    let isOther = false;
    for (const account of ['', seat.account]) {
      const key = keyOf(seat.node, namespace, account);
      const count = (this.#counts.get(key) ?? 0) + by;
      if (count > 0) this.#counts.set(key, count);
      else this.#counts.delete(key);
      isOther ||= count === 0 || (count === 1 && by === 1);
    }
    return isOther;
  }
}

function seatOf({ spec, status }: Pod): Seat | undefined {
  const node = spec?.nodeName ?? '';
  if (node === '' || ended.has(status?.phase)) return undefined;
  return { node, account: spec?.serviceAccountName ?? 'default' };
}

/** An empty account stands for all of the namespace. */
function keyOf(node: string, namespace: string, account: string): string {
  return `${node}/${namespace}/${account}`;
}
