// Keeps what decides about calls into this cluster: the ClusterSet's mode and the members' source ranges from the broker,
// and what its own admin wrote at home.

import { compareText } from '../../base/compare-text.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { keyOf } from '../../kube/objects/object.ts';
import type { AccessMode } from '../kinds/cluster-set.ts';
import type { ServiceAccessPolicy } from '../kinds/service-access-policy.ts';
import type { MemberFollower } from '../members/follower.ts';
import { homeAccessName, readHomeAccess } from '../rules/access/home-access.ts';
import { openAccess, readAccess, type SetAccess, setAccessOf } from '../rules/access/set-access.ts';
import { callersData, ruleOf } from '../rules/exports/callers.ts';
import type { PolicyCopy } from './policy-copy.ts';

export interface AccessCopyOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  readonly members: MemberFollower;
  readonly policy: PolicyCopy;
  readonly callers: Informer<ServiceAccessPolicy>;
  /** This cluster. */
  readonly clusterId: string;
  readonly onChange: () => void;
}

export class AccessCopy {
  readonly #options: AccessCopyOptions;
  readonly #given: Informer<ConfigMap>;
  #mode: AccessMode | undefined;
  #closed: readonly string[] = [];
  #joinedPodRanges: readonly string[] = [];

  constructor(options: AccessCopyOptions) {
    this.#options = options;
    const { home: client, world, log, systemNamespace: namespace } = options;
    const fieldSelector = `metadata.name=${homeAccessName}`;
    this.#given = createInformer<ConfigMap>({ client, world, log, type: configMapType, namespace, fieldSelector });
    options.callers.on(() => options.onChange());
    this.#given.on((_key, next) => {
      for (const problem of readHomeAccess(next).problems) log.warn('access', { problem });
      options.onChange();
    });
  }

  start(): void {
    this.#given.start();
  }

  stop(): void {
    this.#given.stop();
  }

  setJoinedPodRanges(ranges: readonly string[]): void {
    if (ranges.join() === this.#joinedPodRanges.join()) return;
    this.#joinedPodRanges = ranges;
    this.#options.onChange();
  }

  /** `written` is what data planes have now: it holds while this home's own setting cannot be read. */
  read(written: ConfigMap | undefined): SetAccess {
    const { members, policy, clusterId: self, systemNamespace } = this.#options;
    const given = this.#given.get(`${systemNamespace}/${homeAccessName}`);
    const before = readAccess(written) ?? openAccess;
    const access = setAccessOf({
      mode: policy.current.access,
      home: this.#given.hasSynced ? readHomeAccess(given) : { ...before, problems: [] },
      members: [...members.clusters.values()],
      self,
      joinedPodRanges: this.#joinedPodRanges.length > 0 ? this.#joinedPodRanges : before.podRanges,
    });
    this.#mode = access.mode;
    return access;
  }

  /** What policies say about callers, as data planes read it; what they have stays while policies cannot be read. */
  readCallers(written: ConfigMap | undefined): string | undefined {
    const { callers: policies } = this.#options;
    if (!policies.hasSynced) return written?.data?.['callers'];
    const all = [...policies.values()].filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    all.sort((one, other) => compareText(keyOf(one), keyOf(other)));
    const { callers, closed } = callersData(all.map(ruleOf));
    this.#closed = closed;
    return callers;
  }

  /** Namespaces whose policies data planes have no room for. */
  get closed(): readonly string[] {
    return this.#closed;
  }

  /** The one that data planes were given last; undefined while that is not known. */
  get mode(): AccessMode | undefined {
    return this.#mode;
  }
}
