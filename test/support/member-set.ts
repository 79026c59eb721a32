// A broker and the members east, west.eu and north with their agents, as several test files need them. Each file brings its own
// set as far as its subject begins: laid out, joined, with agents, with a service that two of them export.

import { sliceLines } from '../../sim/look.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { brokerClient } from '../../src/clusterset/explain/consult.ts';
import {
  type MembershipRecord,
  membershipSecretName,
  readMembership,
} from '../../src/clusterset/membership/membership.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import {
  type AgentProcess,
  makeNamespace,
  TestClusterSet,
  type TestHome,
  type Typed,
  type,
  until,
} from './clusterset.ts';

/** The service that members export, and its record at the broker. */
export const key = 'shop/checkout';
export const record = 'checkout.shop';

export interface MemberHomes {
  readonly broker: TestHome;
  readonly east: TestHome;
  readonly west: TestHome;
  readonly north: TestHome;
}

const world = createRealWorld();

export class MemberSet {
  readonly set = new TestClusterSet();
  /** By the name of their home. */
  readonly agents = new Map<string, AgentProcess>();
  readonly agentKubeconfigs = new Map<string, string>();
  #homes: MemberHomes | undefined;

  async startHomes(): Promise<MemberHomes> {
    const [broker, east, west, north] = await Promise.all(
      ['broker', 'east', 'west', 'north'].map((name) => this.set.startHome(name)),
    );
    this.#homes = { broker: broker!, east: east!, west: west!, north: north! };
    return this.#homes;
  }

  /** All three are members; no agent runs. */
  async joinMembers(): Promise<MemberHomes> {
    const homes = await this.startHomes();
    const { east, west, north } = homes;
    await this.atBroker('init --ports union --lease-renew 1 --lease-duration 5 --staleness NotReady');
    const services = '--service-cidr 10.96.0.0/12';
    await this.at(east, `join ${await this.token('east', ' --region eu --zone a')} --pod-cidr 10.1.0.0/16 ${services}`);
    await this.at(west, `join ${await this.token('west.eu')} --pod-cidr 10.2.0.0/16 ${services}`);
    await this.at(north, `join ${await this.token('north')} --pod-cidr 10.3.0.0/16 ${services}`);
    return homes;
  }

  /** All three are members, and their agents lead. */
  async startMembers(): Promise<MemberHomes> {
    const homes = await this.joinMembers();
    await this.startAgents();
    return homes;
  }

  async startAgents(): Promise<void> {
    const { east, west, north } = this.#homes!;
    await Promise.all(
      [east, west, north].map(async (home) => {
        await makeNamespace(home.client, 'shop');
        await this.startAgent(home);
      }),
    );
    for (const agent of this.agents.values()) await until('leading', async () => (await stateOf(agent)) === 'leading');
  }

  async startAgent(home: TestHome): Promise<void> {
    const kubeconfig = this.agentKubeconfigs.get(home.name) ?? (await this.set.agentKubeconfig(home));
    this.agentKubeconfigs.set(home.name, kubeconfig);
    this.agents.set(home.name, await this.set.startAgent(kubeconfig));
  }

  /** East exports first, then west; all three have imported both. */
  async exportCheckout(): Promise<void> {
    const { east, west, north } = this.#homes!;
    await this.at(east, `register ${key} --address 10.1.0.5 --port http=80:8080`);
    await this.at(east, `export ${key} --wait`);
    await this.at(west, `register ${key} --address 10.2.0.5 --port http=80:8080`);
    await this.at(west, `export ${key} --wait`);
    for (const home of [east, west, north])
      await until('both are imported', async () => (await sliceLines(home.client, key)).length === 2);
  }

  atBroker(words: string): Promise<Typed> {
    return type(`broker ${words} --clusterset prod --kubeconfig ${this.#homes!.broker.kubeconfig}`);
  }

  async token(id: string, more = ''): Promise<string> {
    return (await this.atBroker(`token ${id}${more}`)).lines[0]!;
  }

  at(home: TestHome, words: string): Promise<Typed> {
    return type(`${words} --kubeconfig ${home.kubeconfig}`);
  }

  stop(): Promise<void> {
    return this.set.stop();
  }
}

export async function membershipOf(home: TestHome): Promise<MembershipRecord> {
  const ref = { namespace: systemNamespace, name: membershipSecretName };
  return readMembership(await home.client.get<Secret>(secretType, ref));
}

/** At the broker, with the rights of that member and nothing more. */
export async function memberAt(home: TestHome): Promise<Client> {
  return brokerClient(world, await membershipOf(home));
}

export async function stateOf(agent: AgentProcess): Promise<string> {
  const response = await fetch(`${agent.admin}/status`);
  return ((await response.json()) as { kind: string }).kind;
}
