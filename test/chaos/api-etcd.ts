// Two `portolan api` on an etcd of three members, to each of which bad things happen in turn: the process that serves is
// killed, stopped or frozen, etcd's leader is killed or frozen.

import { writeFileSync } from 'node:fs';
import { type ApiProcess, startApi } from '../support/api-process.ts';
import { type EtcdMember, startEtcdMembers } from '../support/etcd-members.ts';
import { DisturbedServer } from './disturbed-server.ts';

const faults = ['api frozen', 'etcd leader killed', 'api killed', 'etcd leader frozen', 'api stopped'] as const;
const frozenMs = 3_000;

export class EtcdServers extends DisturbedServer {
  readonly #data: string;
  readonly #say: (line: string) => void;
  readonly #members: EtcdMember[] = [];
  #serving: ApiProcess | undefined;
  #waiting: Promise<ApiProcess> | undefined;
  #started: ApiProcess[] = [];
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
    else await this.#takeOver(fault);
    this.#say(`${fault}: ${Math.round(performance.now() - startedAt)} ms`);
  }

  protected async stop(): Promise<void> {
    this.#waiting?.catch(() => {});
    for (const api of this.#started) await api.stop('SIGKILL');
    for (const member of this.#members) await member.stop();
    // It may have taken over just now, and ends without its etcd.
    await this.#waiting?.then((api) => api.stop('SIGKILL')).catch(() => {});
  }

  /** The one that waits serves; then another one waits. */
  async #takeOver(fault: 'api killed' | 'api frozen' | 'api stopped'): Promise<void> {
    const before = this.#serving!;
    this.leave();
    if (fault === 'api frozen') before.child.kill('SIGSTOP');
    else await before.stop(fault === 'api killed' ? 'SIGKILL' : 'SIGTERM');
    const next = await this.#waiting!;
    this.#serving = next;
    if (fault === 'api frozen') {
      // It wakes with requests in flight that it must not answer from what it remembers.
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

  async #api(): Promise<ApiProcess> {
    const urls = this.#members.map(({ url }) => url).join(',');
    const etcd = ['--etcd', urls, '--etcd-prefix', '/chaos/', '--etcd-keys-file', `${this.#data}/keys`];
    const args = ['--keep-history', '1', '--snapshots', 'none', ...etcd];
    const api = await startApi({ data: `${this.#data}/api-${this.#processes++}`, args });
    this.#started.push(api);
    return api;
  }
}
