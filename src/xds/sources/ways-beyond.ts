// Says which imports have more ways by name than a node's Envoy takes: on the import, and once in the log.

import type { Log } from '../../base/log.ts';
import { type NamedWay, namedWays, namedWaysMax } from '../gateways/named-ways.ts';
import type { WithheldList } from '../withheld.ts';

export class WaysBeyond {
  readonly #withheld: WithheldList;
  readonly #log: Log;
  readonly #told = new Set<string>();

  constructor(withheld: WithheldList, log: Log) {
    this.#withheld = withheld;
    this.#log = log;
  }

  /** All ways to one cluster, now. */
  look(cluster: string, ways: readonly NamedWay[]): void {
    const beyond = ways.length > namedWaysMax ? namedWays(ways).beyond : [];
    const services = Map.groupBy(beyond, ({ service }) => service);
    const list = [...services].map(([service, { length }]) => {
      const [namespace = '', name = ''] = service.split('/');
      const what = `${length} of its addresses and ports in cluster ${cluster} are not reached`;
      const reason = `${what}: nodes ask the gateways of a cluster for ${namedWaysMax} by name, and there are more`;
      return { cause: { at: 'home', kind: 'ServiceImport', namespace, name } as const, reason };
    });
    this.#withheld.set(`gateway names ${cluster}`, list);
    if (beyond.length === 0) this.#told.delete(cluster);
    if (beyond.length === 0 || this.#told.has(cluster)) return;
    this.#told.add(cluster);
    const fields = { cluster, max: namedWaysMax, beyond: beyond.length, services: services.size };
    this.#log.warn('more is asked of gateways by name than an Envoy takes', fields);
  }
}
