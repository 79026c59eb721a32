// Two `portolan api` on an etcd of three members, to each of which bad things happen in turn: the process that serves is
// killed, stopped or frozen, etcd's leader is killed or frozen.

import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { type ApiProcess, startApi } from '../support/api-process.ts';
import { pathOf } from '../support/counterparts.ts';
import { freePort } from '../support/free-port.ts';
import { DisturbedServer } from './disturbed-server.ts';

const faults = ['api frozen', 'etcd leader killed', 'api killed', 'etcd leader frozen', 'api stopped'] as const;
const frozenMs = 3_000;

export class EtcdServers extends DisturbedServer {
  readonly #data: string;
  readonly #say: (line: string) => void;
  readonly #members: Member[] = [];
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
    this.#members.push(...(await startMembers(this.#data)));
    this.#serving = await this.#api();
    this.#waiting = this.#api();
    this.reach(this.#serving.kubeconfig);
  }

  async disturb(): Promise<void> {
    const fault = faults[this.#round++ % faults.length]!;
    const startedAt = performance.now();
    if (fault === 'etcd leader killed') await this.#loseLeader((leader) => leader.restart());
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

  async #loseLeader(fault: (leader: Member) => Promise<void>): Promise<void> {
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

class Member {
  readonly url: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  constructor(url: string, args: readonly string[]) {
    this.url = url;
    this.#args = args;
    this.#start();
  }

  async isLeader(): Promise<boolean> {
    try {
      const reply = await fetch(`${this.url}/v3/maintenance/status`, { method: 'POST', body: '{}' });
      const { header, leader } = (await reply.json()) as { header: { member_id: string }; leader: string };
      return header.member_id === leader;
    } catch {
      return false;
    }
  }

  async freeze(ms: number): Promise<void> {
    this.#child?.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#child?.kill('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.stop();
    await new Promise((resolve) => setTimeout(resolve, frozenMs));
    this.#start();
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  #start(): void {
    this.#child = spawn(pathOf('etcd')!, [...this.#args], { stdio: 'ignore' });
  }
}

async function startMembers(directory: string): Promise<Member[]> {
  const urls: { readonly client: string; readonly peer: string }[] = [];
  for (let index = 0; index < 3; index++)
    urls.push({ client: `http://127.0.0.1:${await freePort()}`, peer: `http://127.0.0.1:${await freePort()}` });
  const cluster = urls.map(({ peer }, index) => `m${index}=${peer}`).join(',');
  const members = urls.map(({ client, peer }, index) => {
    const args = ['--name', `m${index}`, '--data-dir', `${directory}/etcd-${index}`, '--initial-cluster', cluster];
    const clients = ['--listen-client-urls', client, '--advertise-client-urls', client];
    return new Member(client, [...args, ...clients, '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer]);
  });
  for (let tries = 0; tries < 300; tries++) {
    for (const member of members) if (await member.isLeader()) return members;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('etcd of three members has no leader after 30 s');
}
