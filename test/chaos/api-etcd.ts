// Two `portolan api` on an etcd of three members, to each of which bad things happen in turn: the process that serves is
// killed, stopped, frozen or cut off from etcd, etcd's leader is killed, frozen or full.

import { writeFileSync } from 'node:fs';
import { type ApiProcess, startApi } from '../support/api-process.ts';
import { type EtcdMember, startEtcdMembers } from '../support/etcd-members.ts';
import { Relay } from '../truth/relay.ts';
import { DisturbedServer } from './disturbed-server.ts';

const faults = [
  'api cut off',
  'etcd leader killed',
  'api killed',
  'etcd leader full',
  'api frozen',
  'etcd leader frozen',
  'api stopped',
] as const;
const frozenMs = 3_000;
const fullMs = 1_000;

export class EtcdServers extends DisturbedServer {
  readonly #data: string;
  readonly #say: (line: string) => void;
  readonly #members: EtcdMember[] = [];
  #serving: ApiProcess | undefined;
  #waiting: Promise<ApiProcess> | undefined;
  readonly #killed = new AbortController();
  readonly #relays = new Map<string, readonly Relay[]>();
  #processes = 0;
  #round = 0;

  constructor(data: string, say: (line: string) => void = () => {}) {
    super();
    this.#data = data;
    this.#say = say;
  }

  async start(): Promise<void> {
    writeFileSync(`${this.#data}/keys`, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
    this.#members.push(...(await startEtcdMembers(this.#data)));
    this.#serving = await this.#api();
    this.#waiting = this.#api();
    this.reach(this.#serving.kubeconfig);
  }

  async disturb(): Promise<void> {
    const fault = faults[this.#round++ % faults.length]!;
    const startedAt = performance.now();
    if (fault === 'etcd leader killed') await this.#loseLeader((leader) => leader.restart(frozenMs));
    else if (fault === 'etcd leader frozen') await this.#loseLeader((leader) => leader.freeze(frozenMs));
    else if (fault === 'etcd leader full') await this.#loseLeader((leader) => this.#fill(leader));
    else await this.#takeOver(fault);
    this.#say(`${fault}: ${Math.round(performance.now() - startedAt)} ms`);
  }

  protected async stop(): Promise<void> {
    // It may have begun to serve just now, or ends before.
    const waiting = this.#waiting?.then((api) => api.stop()).catch(() => {});
    this.#killed.abort();
    await this.#serving?.stop();
    await waiting;
    for (const member of this.#members) await member.stop();
    for (const relay of [...this.#relays.values()].flat()) relay.close();
  }

  /** The one that waits serves; then another one waits. */
  async #takeOver(fault: 'api killed' | 'api cut off' | 'api frozen' | 'api stopped'): Promise<void> {
    const before = this.#serving!;
    this.leave();
    const relays = this.#relays.get(before.kubeconfig)!;
    if (fault === 'api frozen') before.child.kill('SIGSTOP');
    else if (fault === 'api cut off') for (const relay of relays) relay.cut();
    else await before.stop(fault === 'api killed' ? 'SIGKILL' : 'SIGTERM');
    const next = await this.#waiting!;
    this.#serving = next;
    if (fault === 'api frozen' || fault === 'api cut off') {
      // It comes back with requests in flight that it must not answer from what it remembers.
      for (const relay of relays) relay.heal();
      before.child.kill('SIGCONT');
      const code = await before.stop('SIGCONT');
      if (code !== 1) this.problems.push(`a process that was replaced ended with ${code}`);
    }
    await this.hangUp();
    this.#waiting = this.#api();
    this.reach(next.kubeconfig);
  }

  async #loseLeader(fault: (leader: EtcdMember) => Promise<void>): Promise<void> {
    for (const member of this.#members) if (await member.isLeader()) return fault(member);
    this.problems.push('etcd has no leader');
  }

  /** Writes under way are refused; nothing of them may come back later. */
  async #fill(member: EtcdMember): Promise<void> {
    const { kubeconfig } = this.#serving!;
    await member.setFull(true);
    this.leave();
    await new Promise((resolve) => setTimeout(resolve, fullMs));
    await member.setFull(false);
    await this.hangUp();
    this.reach(kubeconfig);
  }

  /** Each process has ways of its own to the members, which can be cut. */
  async #api(): Promise<ApiProcess> {
    const data = `${this.#data}/api-${this.#processes++}`;
    const ports = this.#members.map(({ url }) => Number(new URL(url).port));
    const relays = await Promise.all(ports.map((port) => Relay.open(() => port)));
    this.#relays.set(`${data}/admin.kubeconfig`, relays);
    const urls = relays.map(({ port }) => `http://127.0.0.1:${port}`).join(',');
    const etcd = ['--etcd', urls, '--etcd-prefix', '/chaos/', '--etcd-keys-file', `${this.#data}/keys`];
    const args = ['--keep-history', '1', '--snapshots', 'none', ...etcd];
    return startApi({ data, args, signal: this.#killed.signal });
  }
}
