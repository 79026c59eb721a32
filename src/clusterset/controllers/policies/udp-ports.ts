// Which ports of the nodes' Envoys carry the UDP ports of which import, where a policy wants them carried between networks. The
// annotations of the imports are the state; what this process has decided counts before it is seen there.

import type { AgentContext } from '../../copies/context.ts';
import { importsWithUdp } from '../../copies/home-copies.ts';
import type { ServiceImport } from '../../kinds/service-import.ts';
import type { Merge } from '../../rules/merge/merged.ts';
import { assignUdpWays, type UdpWay } from '../../rules/networks/udp-ways.ts';
import { readRouting, routingAnnotation } from '../../rules/routing/routing.ts';

export interface UdpSubject {
  /** `namespace/name` of the import. */
  readonly key: string;
  readonly merge: Pick<Merge, 'type' | 'ports' | 'clusters'>;
  /** Clusters that are never used. */
  readonly excluded: readonly string[];
}

export class UdpPorts {
  readonly #context: AgentContext;
  readonly #given = new Map<string, readonly UdpWay[]>();

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /** In the order of clusters and ports. */
  waysOf({ key, merge, excluded }: UdpSubject): readonly UdpWay[] {
    const wanted = this.#wantedOf(merge).filter(({ cluster }) => !excluded.includes(cluster));
    if (wanted.length === 0) {
      this.forget(key);
      return [];
    }
    const present = this.#given.get(key) ?? udpWaysOf(this.#context.copies.imports.get(key));
    const ways = assignUdpWays({ key, wanted, present, taken: this.#takenBeside(key) });
    this.#given.set(key, ways);
    return ways;
  }

  /** What an import was given last; undefined where nothing is wanted. */
  given(key: string): readonly UdpWay[] | undefined {
    return this.#given.get(key);
  }

  forget(key: string): void {
    this.#given.delete(key);
  }

  #wantedOf({ type, ports, clusters }: UdpSubject['merge']): Omit<UdpWay, 'listenerPort'>[] {
    if (type === 'Headless' || this.#context.clusterSetIps() === 'derived') return [];
    const udp = ports.filter(({ protocol, isExposed }) => protocol === 'UDP' && isExposed).map(({ port }) => port);
    const networks = this.#context.networks().clusters;
    return clusters
      .filter((cluster) => networks.get(cluster)?.listenerPort !== undefined)
      .flatMap((cluster) => udp.map((port) => ({ cluster, port })));
  }

  #takenBeside(key: string): ReadonlySet<number> {
    const ways = [...this.#given].flatMap(([other, own]) => (other === key ? [] : own));
    for (const object of this.#context.copies.imports.byIndex(importsWithUdp, importsWithUdp)) {
      const other = `${object.metadata.namespace}/${object.metadata.name}`;
      if (other !== key && !this.#given.has(other)) ways.push(...udpWaysOf(object));
    }
    return new Set(ways.map(({ listenerPort }) => listenerPort));
  }
}

function udpWaysOf(object: Pick<ServiceImport, 'metadata'> | undefined): readonly UdpWay[] {
  return readRouting(object?.metadata.annotations?.[routingAnnotation] ?? '').udp ?? [];
}
