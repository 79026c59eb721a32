// A simulated clusterset: a broker, and for each cluster a home and an agent process that can be killed and started
// again. Agents reach both homes over the virtual network and use their own accounts at the broker.

import { createLog, type LogLevel, silentLog } from '../src/base/log.ts';
import { type Agent, createAgent } from '../src/clusterset/agent/agent.ts';
import { type ClusterSpec, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { type ClusterSetSpec, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import type { Attributes } from '../src/home/model/access.ts';
import type { Client } from '../src/kube/client/client.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { type MayDo, SimHome } from './home.ts';
import type { HttpHandler } from './virtual-network.ts';
import { Simulation, type VirtualWorld, type VirtualWorldOptions } from './virtual-world.ts';

export interface SimClusterSetOptions {
  readonly seed?: number;
  readonly clusters: readonly string[];
  readonly set?: ClusterSetSpec;
  readonly member?: (id: string) => Partial<ClusterSpec>;
  /** Clock options by process name: `agent-east`, `home-east`, `home-broker`. */
  readonly clock?: (name: string) => VirtualWorldOptions;
  readonly latencyMs?: { readonly min: number; readonly max: number };
  /** Between an agent's request and the home's answer. */
  readonly wrap?: (home: string, handler: HttpHandler) => HttpHandler;
  readonly onRequest?: (home: string, user: string, attributes: Attributes) => void;
  /** Whether kinds can come and go: see SimHomeOptions. */
  readonly hasDefinitions?: boolean;
  /** Homes that say that they are embedded; the others say that they are a Kubernetes. */
  readonly embedded?: readonly string[];
  readonly logLevel?: LogLevel;
  /** Gets the lines of all agents, from `info` on if no level is given; else they go to standard error. */
  readonly onLog?: (line: string) => void;
  /** Serves in place of the real agent: a deliberately broken one. */
  readonly createAgent?: typeof createAgent;
}

export type { SimHome };

const requestTimeoutMs = 10_000;
export const setName = 'prod';
/** Where agents of the older form keep their imports, in the scenarios that have any. */
export const legacyNamespace = 'older-broker';

export class SimClusterSet {
  readonly simulation: Simulation;
  readonly broker: SimHome;
  readonly homes = new Map<string, SimHome>();
  readonly #options: SimClusterSetOptions;
  readonly #links = new Map<string, 'up' | 'refused' | 'silent'>();
  readonly #agents = new Map<string, { agent: Agent; world: VirtualWorld }>();

  constructor(options: SimClusterSetOptions) {
    this.#options = options;
    this.simulation = new Simulation({ seed: options.seed ?? 1, latencyMs: options.latencyMs });
    this.broker = this.#home('broker', ['10.96.0.0/16'], brokerRights);
    for (const [index, id] of options.clusters.entries()) {
      const ranges = [`10.${100 + index}.0.0/16`, `fd00:${100 + index}::/112`];
      this.homes.set(
        id,
        this.#home(id, ranges, () => true),
      );
    }
  }

  get time() {
    return this.simulation.time;
  }

  /** Everything up, with the namespaces given in every cluster. Agents are started too by default. */
  async start(
    options: {
      readonly namespaces?: readonly string[];
      readonly agents?: readonly string[];
      readonly members?: readonly string[];
    } = {},
  ): Promise<this> {
    await this.broker.start();
    await this.#layOutBroker(options.members ?? [...this.homes.keys()]);
    for (const home of this.homes.values()) {
      await home.start();
      for (const name of options.namespaces ?? []) await createNamespace(home, name);
    }
    for (const id of options.agents ?? options.members ?? this.homes.keys()) this.startAgent(id);
    return this;
  }

  home(id: string): SimHome {
    const home = id === 'broker' ? this.broker : this.homes.get(id);
    if (home === undefined) throw new Error(`no cluster ${id}`);
    return home;
  }

  /** The real agent, or the one given. */
  startAgent(id: string, create = this.#options.createAgent ?? createAgent): void {
    const name = `agent-${id}`;
    const world = this.simulation.world(name, this.#options.clock?.(name));
    const { onLog, logLevel: level = onLog && 'info' } = this.#options;
    const write = onLog ?? ((line: string) => void process.stderr.write(line));
    const agent = create({
      world,
      log: level === undefined ? silentLog : createLog({ clock: world.clock, level, write }),
      hpke: world.hpke,
      home: this.home(id).clientOf(world, { requestTimeoutMs }),
      broker: this.broker.clientOf(world, { requestTimeoutMs }),
      membership: { clusterset: setName, clusterId: id, namespace: memberNamespace(id) },
    });
    this.#agents.set(id, { agent, world });
    agent.start();
  }

  /** At the broker, with the rights of this member and nothing more. */
  memberClient(id: string): Client {
    return this.broker.clientOf(this.simulation.world(`agent-${id}`), { requestTimeoutMs });
  }

  /** As kill -9. */
  killAgent(id: string): void {
    this.#agents.get(id)?.world.revoke();
    this.#agents.delete(id);
  }

  async stopAgent(id: string): Promise<void> {
    const running = this.#agents.get(id);
    if (running !== undefined) await this.time.settle(running.agent.stop());
    this.killAgent(id);
  }

  isAgentRunning(id: string): boolean {
    return this.#agents.has(id);
  }

  /** Whether the link from a cluster's agent to the broker is up. */
  isLinked(id: string): boolean {
    return (this.#links.get(id) ?? 'up') === 'up';
  }

  /** Sets the state of the link from a cluster's agent to the broker. */
  setBrokerLink(id: string, state: 'up' | 'refused' | 'silent'): void {
    this.#links.set(id, state);
    this.simulation.network.setLink(`agent-${id}`, this.broker.url, state);
  }

  #home(name: string, serviceRanges: readonly string[], mayDo: MayDo): SimHome {
    const { wrap, onRequest, clock, hasDefinitions } = this.#options;
    return new SimHome({
      simulation: this.simulation,
      name,
      serviceRanges,
      mayDo,
      hasDefinitions,
      isEmbedded: this.#options.embedded?.includes(name) ?? false,
      clock: clock?.(`home-${name}`),
      wrap: wrap === undefined ? undefined : (handler) => wrap(name, handler),
      onRequest: onRequest === undefined ? undefined : (user, attributes) => onRequest(name, user, attributes),
    });
  }

  async #layOutBroker(members: readonly string[]): Promise<void> {
    const { admin } = this.broker;
    await createNamespace(this.broker, setName);
    const metadata = { name: setName, namespace: setName };
    const { apiVersion, kind } = { apiVersion: 'portolan.dev/v1alpha1', kind: clusterSetType.kind };
    await admin.create(clusterSetType, {
      apiVersion,
      kind,
      metadata,
      spec: { ...this.#options.set },
    });
    for (const id of members) await this.join(id);
  }

  /** The admin takes a member out of the set, with all it has at the broker. */
  async leave(id: string): Promise<void> {
    await this.broker.admin.delete(clusterType, { namespace: setName, name: id });
    await this.broker.admin.delete(namespaceType, { name: memberNamespace(id) });
  }

  async join(id: string): Promise<void> {
    await createNamespace(this.broker, memberNamespace(id));
    await this.broker.admin.create(clusterType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'Cluster',
      metadata: { name: id, namespace: setName },
      spec: { namespace: memberNamespace(id), ...this.#options.member?.(id) },
    });
  }
}

export function memberNamespace(id: string): string {
  return `${setName}-m-${id.replaceAll('.', '-')}`;
}

export async function createNamespace(home: SimHome, name: string): Promise<void> {
  await home.admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

// All members read; each writes its own namespace and the merged view. A broker's own agent is at home there.
const brokerRights: MayDo = (user, { verb, namespace, resource, subresource, name, path }) => {
  if (user === 'agent-broker') return true;
  if (path !== undefined || ['get', 'list', 'watch'].includes(verb)) return true;
  if ((namespace === setName || namespace === legacyNamespace) && resource === 'serviceimports') return true;
  if (isPlacementStatus({ namespace, resource, subresource })) return true;
  if (isInventory({ namespace, resource, subresource })) return true;
  if (isOwnReport(user, { verb, namespace, resource, subresource, name })) return true;
  return memberNamespace(user.slice('agent-'.length)) === namespace;
};

/** The status of its own Cluster, where a member reports its version, its resolver and its gateways. */
export function isOwnReport(
  user: string,
  asked: Pick<Attributes, 'verb' | 'namespace' | 'resource' | 'subresource' | 'name'>,
): boolean {
  const isStatus = asked.resource === 'clusters' && asked.subresource === 'status' && asked.verb === 'patch';
  return isStatus && asked.namespace === setName && user === `agent-${asked.name}`;
}

/** The inventory of the set. Who is named for it is the admin's to say: these tests name any. */
function isInventory({
  namespace,
  resource,
  subresource,
}: Pick<Attributes, 'namespace' | 'resource' | 'subresource'>): boolean {
  if (namespace !== setName) return false;
  return resource === 'clusterprofiles' || (resource === 'clustersets' && subresource === 'status');
}

/** The status of a FederatedService: members write it beside the merged view. */
export function isPlacementStatus(asked: Pick<Attributes, 'namespace' | 'resource' | 'subresource'>): boolean {
  return asked.namespace === setName && asked.resource === 'federatedservices' && asked.subresource === 'status';
}
