// A real etcd on the same disk, to be compared with.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Etcd3 } from 'etcd3';
import { findCommand } from '../../scripts/counterparts.mjs';
import { EtcdClient } from '../../src/home/store/etcd/client.ts';
import { etcdEndpoint } from '../../src/home/store/etcd/transport-grpc.ts';
import { freePort } from '../../test/support/free-port.ts';
import { configMap } from './objects.ts';

export interface Etcd {
  /** Puts what a ConfigMap is, under a key of its own. */
  put(): Promise<unknown>;
  /** The same over node:http2, which is faster than the library. */
  quickPut(): Promise<unknown>;
  readonly url: string;
  stop(): Promise<void>;
}

export async function startEtcd(directory: string): Promise<Etcd> {
  const path = findCommand('etcd');
  if (path === undefined) throw new Error('bench: no etcd here to compare with; install etcd-server');
  mkdirSync(directory, { mode: 0o700 });
  const [client, peer] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  const args = ['--data-dir', directory, '--listen-client-urls', client, '--advertise-client-urls', client];
  const peerArgs = ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer];
  const child = spawn(path, [...args, ...peerArgs, '--initial-cluster', `default=${peer}`], { stdio: 'ignore' });
  const etcd = new Etcd3({ hosts: client });
  await untilAnswers(etcd, child);
  const value = JSON.stringify(configMap('x'.repeat(12)));
  let count = 0;
  const quick = new EtcdClient({ endpoints: [etcdEndpoint({ url: client })] });
  const bytes = Buffer.from(value);
  return {
    url: client,
    quickPut: () =>
      quick.txn({
        conditions: [],
        operations: [{ put: `/registry/configmaps/bench/quick-${(count += 1)}`, value: bytes }],
      }),
    put: () =>
      etcd
        .put(`/registry/configmaps/bench/many-${(count += 1)}`)
        .value(value)
        .exec(),
    stop: async () => {
      etcd.close();
      quick.close();
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
    },
  };
}

async function untilAnswers(etcd: Etcd3, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      await etcd.put('/ready').value('yes');
      return;
    } catch {
      if (child.exitCode !== null) throw new Error(`bench: etcd exited with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error('bench: etcd did not answer in 10 s');
}
