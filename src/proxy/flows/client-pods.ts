// Which Pod of this cluster has an address, as its home says. Of each Pod only its addresses are kept. Pods of other clusters are never
// known here, so their names are in no flow.

import type { Log } from '../../base/log.ts';
import { formatIp, parseIp } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type Pod, podType } from '../../kube/objects/pod.ts';

export interface ClientPodsOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  /** Only the Pods of this node. */
  readonly node?: string;
}

interface Seat {
  /** `namespace/name`. */
  readonly pod: string;
  readonly addresses: readonly string[];
}

const ended: ReadonlySet<string | undefined> = new Set(['Succeeded', 'Failed']);

export class ClientPods {
  readonly #pods: Informer<Seat>;

  constructor({ node, ...options }: ClientPodsOptions) {
    this.#pods = createInformer<Pod, Seat>({
      ...options,
      type: podType,
      ...(node === undefined ? {} : { fieldSelector: `spec.nodeName=${node}` }),
      keep: seatOf,
      indexes: { address: ({ addresses }) => addresses },
    });
  }

  start(): void {
    this.#pods.start();
  }

  stop(): void {
    this.#pods.stop();
  }

  /** Undefined if no Pod has it, or several say so. */
  at(address: string): string | undefined {
    return this.#pods.countByIndex('address', address) === 1
      ? this.#pods.byIndex('address', address)[0]!.pod
      : undefined;
  }
}

/** Those in the network of their node share its address with all its processes. */
function seatOf({ metadata, spec, status }: Pod): Seat | undefined {
  if (spec?.hostNetwork === true || ended.has(status?.phase)) return undefined;
  const given = [status?.podIP, ...(status?.podIPs ?? []).map((one) => one?.ip)];
  const ips = given.map((text) => parseIp(text ?? '')).filter((ip) => ip !== undefined);
  if (ips.length === 0) return undefined;
  return { pod: `${metadata.namespace ?? ''}/${metadata.name}`, addresses: [...new Set(ips.map(formatIp))] };
}
