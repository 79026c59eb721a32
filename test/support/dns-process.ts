// Starts `portolan dns` or `portolan authority` as a process of its own, and a real etcd, and ends both by their ids.

import { type ChildProcess, spawn } from 'node:child_process';
import { pathOf } from './counterparts.ts';
import { freePort } from './free-port.ts';
import { portolan } from './portolan.ts';

export interface DnsProcess {
  readonly child: ChildProcess;
  readonly port: number;
  readonly target: { readonly host: string; readonly port: number };
  /** URL of its admin endpoint. */
  readonly admin: string;
  /** Port of DNS over TLS, 0 without. */
  readonly tlsPort: number;
  /** URL of the stub-zone endpoint, empty without. */
  readonly stubs: string;
  /** Its standard error. */
  log(): string;
  /** Whether it has said so. */
  isReady(): boolean;
  whenReady(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface DnsProcessOptions {
  /** A command that runs it, such as `ip netns exec NAME`. */
  readonly within?: readonly string[];
  readonly listen?: string;
}

export function startDnsProcess(args: readonly string[], options: DnsProcessOptions = {}): Promise<DnsProcess> {
  const listen = options.listen ?? '127.0.0.1:0';
  // A flag of authorities alone.
  const role = args.includes('--federation') ? 'authority' : 'dns';
  const all = [...(options.within ?? []), portolan, role, '--listen', listen, ...args];
  const child = spawn(all[0]!, all.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const line = (pattern: RegExp) => pattern.exec(out)?.[1] ?? '';
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`portolan ${role} ended with ${code}: ${out}${log}`)));
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
      const where = line(/^listening (\S+)/m);
      if (where === '') return;
      const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(where) ?? [];
      resolve({
        child,
        port: Number(port),
        target: { host, port: Number(port) },
        admin: line(/^admin (\S+)$/m),
        tlsPort: Number(line(/^tls \S+:(\d+)/m)),
        stubs: line(/^stub zones (\S+)$/m),
        log: () => log,
        isReady: () => /^ready$/m.test(out),
        whenReady: () => until('ready', () => /^ready$/m.test(out)),
        stop: async (signal = 'SIGTERM') => {
          if (child.exitCode === null && child.signalCode === null) child.kill(signal);
          await ended;
        },
      });
    });
  });
}

export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  for (let round = 0; round < 600; round += 1) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`after 60 s still not: ${what}`);
}

export interface EtcdProcess {
  readonly url: string;
  /** Freezes it, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

export async function startEtcd(directory: string, more: readonly string[] = []): Promise<EtcdProcess> {
  const [url, peerUrl] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  const args = {
    'data-dir': directory,
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
  };
  const words = Object.entries(args).flatMap(([flag, value]) => [`--${flag}`, value]);
  const child = spawn(pathOf('etcd')!, [...words, ...more], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const isHealthy = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('etcd answers', isHealthy);
  return {
    url,
    signal: (signal) => void child.kill(signal),
    stop: () => {
      child.kill('SIGKILL');
      return ended;
    },
  };
}
