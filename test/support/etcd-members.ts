// An etcd of three members, each a process that can be killed, frozen and started again.

import { type ChildProcess, spawn } from 'node:child_process';
import { pathOf } from './counterparts.ts';
import { freePort } from './free-port.ts';

/** One member of an etcd, as a process. */
export class EtcdMember {
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
      const { header, leader } = await this.#maintain<{ header: { member_id: string }; leader: string }>('status', {});
      return header.member_id === leader;
    } catch {
      return false;
    }
  }

  /** As when its disk space for keys is used up: all members refuse writes, until it is called with false. */
  async setFull(isFull: boolean): Promise<void> {
    const { header } = await this.#maintain<{ header: { member_id: string } }>('status', {});
    const action = isFull ? 'ACTIVATE' : 'DEACTIVATE';
    await this.#maintain('alarm', { action, memberID: header.member_id, alarm: 'NOSPACE' });
  }

  async freeze(ms: number): Promise<void> {
    this.#child?.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#child?.kill('SIGCONT');
  }

  async restart(downMs: number): Promise<void> {
    await this.stop();
    await new Promise((resolve) => setTimeout(resolve, downMs));
    this.#start();
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async #maintain<T>(call: string, body: object): Promise<T> {
    const reply = await fetch(`${this.url}/v3/maintenance/${call}`, { method: 'POST', body: JSON.stringify(body) });
    return (await reply.json()) as T;
  }

  #start(): void {
    this.#child = spawn(pathOf('etcd')!, [...this.#args], { stdio: 'ignore' });
  }
}

export async function startEtcdMembers(directory: string): Promise<EtcdMember[]> {
  const urls: { readonly client: string; readonly peer: string }[] = [];
  for (let index = 0; index < 3; index++)
    urls.push({ client: `http://127.0.0.1:${await freePort()}`, peer: `http://127.0.0.1:${await freePort()}` });
  const cluster = urls.map(({ peer }, index) => `m${index}=${peer}`).join(',');
  const members = urls.map(({ client, peer }, index) => {
    const args = ['--name', `m${index}`, '--data-dir', `${directory}/etcd-${index}`, '--initial-cluster', cluster];
    const clients = ['--listen-client-urls', client, '--advertise-client-urls', client];
    return new EtcdMember(client, [
      ...args,
      ...clients,
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
    ]);
  });
  for (let tries = 0; tries < 300; tries++) {
    for (const member of members) if (await member.isLeader()) return members;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('etcd of three members has no leader after 30 s');
}
