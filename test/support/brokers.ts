// Brokers that lose a process while they are used: one on SQLite, which is started again, and one of two processes on an
// etcd of three members, of which one each is lost.

import { mkdirSync, writeFileSync } from 'node:fs';
import { type ApiProcess, startApi } from './api-process.ts';
import { type EtcdMember, startEtcdMembers } from './etcd-members.ts';
import { freePort } from './free-port.ts';

export interface LosingBroker {
  /** Its kubeconfig. */
  start(directory: string): Promise<string>;
  /** Kills the process that serves. Resolves when one serves again. */
  loseApi(): Promise<void>;
  /** Kills the leader of its etcd, if it has one. */
  loseMember(): Promise<void>;
  stop(): Promise<void>;
}

export class SqliteBroker implements LosingBroker {
  #data = '';
  #api: ApiProcess | undefined;

  async start(directory: string): Promise<string> {
    this.#data = directory;
    this.#api = await startApi({ data: directory });
    return this.#api.kubeconfig;
  }

  async loseApi(): Promise<void> {
    const { port } = this.#api!;
    await this.#api!.stop('SIGKILL');
    this.#api = await startApi({ data: this.#data, port });
  }

  async loseMember(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#api?.stop('SIGKILL');
  }
}

export class EtcdBroker implements LosingBroker {
  #members: EtcdMember[] = [];
  #serving: ApiProcess | undefined;
  #waiting: Promise<ApiProcess> | undefined;

  async start(directory: string): Promise<string> {
    mkdirSync(directory);
    const keys = `${directory}/keys`;
    writeFileSync(keys, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
    this.#members = await startEtcdMembers(directory);
    const urls = this.#members.map(({ url }) => url).join(',');
    const [one, other] = [await freePort(), await freePort()];
    const api = (port: number, replica: number) => {
      const flags = ['--etcd', urls, '--etcd-keys-file', keys, '--replica', `127.0.0.1:${replica}`];
      return startApi({ data: `${directory}/${port}`, port, args: [...flags, '--snapshots', 'none'], waitMs: 600_000 });
    };
    this.#serving = await api(one, other);
    this.#waiting = api(other, one);
    return this.#serving.kubeconfig;
  }

  async loseApi(): Promise<void> {
    await this.#serving!.stop('SIGKILL');
    this.#serving = await this.#waiting!;
    this.#waiting = undefined;
  }

  async loseMember(): Promise<void> {
    for (const member of this.#members) if (await member.isLeader()) return member.stop();
    throw new Error('etcd has no leader');
  }

  async stop(): Promise<void> {
    const ended = this.#waiting?.then((api) => api.stop('SIGKILL')).catch(() => {});
    await this.#serving?.stop('SIGKILL');
    // It takes over first, which needs its etcd.
    await ended;
    for (const member of this.#members) await member.stop();
  }
}
