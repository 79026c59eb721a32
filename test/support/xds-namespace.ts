// A network namespace for proxies: connected to the outside by one pair of devices, with redirects of virtual addresses to
// the proxy, and a process inside that serves and asks. Needs root.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathOf } from './counterparts.ts';
import { takeLoopbackPart } from './loopback-part.ts';
import type { Order } from './xds-inside.ts';

export interface XdsNamespace {
  /** As `ip netns` knows it. */
  readonly name: string;
  /** The address of the outside, as the inside reaches it. */
  readonly outside: string;
  ask(order: Order): Promise<unknown>;
  startEnvoy(folder: string, name: string, bootstrap: object, args?: readonly string[]): RunningProxy;
  stop(): void;
}

export interface RunningProxy {
  readonly pid: number;
  log(): string;
  stop(): void;
}

/** Envoy's own connections are not redirected. */
const envoyUid = 1337;
const virtualRanges = '{ 241.0.0.0/8, 242.0.0.0/8 }';

let opened = 0;
const part = await takeLoopbackPart();

export function startXdsNamespace(virtualPort: number): XdsNamespace {
  const ip = pathOf('ip')!;
  opened += 1;
  const name = `pxds${process.pid}-${opened}`;
  const inside = (...command: string[]) => execFileSync(ip, ['netns', 'exec', name, ...command]);
  const link = `px${process.pid}-${opened}`;
  const net = `10.${190 + (opened % 10)}.${part}`;
  execFileSync(ip, ['netns', 'add', name]);
  execFileSync(ip, ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name]);
  execFileSync(ip, ['addr', 'add', `${net}.1/30`, 'dev', link]);
  execFileSync(ip, ['link', 'set', link, 'up']);
  inside('ip', 'link', 'set', 'lo', 'up');
  inside('ip', 'addr', 'add', `${net}.2/30`, 'dev', 'eth0');
  inside('ip', 'link', 'set', 'eth0', 'up');
  for (const range of ['10.70.0.0/16', '241.0.0.0/8', '242.0.0.0/8'])
    inside('ip', 'route', 'add', 'local', range, 'dev', 'lo');
  const rule = `ip daddr ${virtualRanges} tcp flags & (fin | syn | rst | ack) == syn redirect to :${virtualPort}`;
  const chain = `type nat hook output priority -100; policy accept;\nmeta skuid ${envoyUid} return\n${rule}`;
  const input = `table inet portolan {\nchain out {\n${chain}\n}\n}\n`;
  execFileSync(ip, ['netns', 'exec', name, pathOf('nft')!, '-f', '-'], { input });
  const script = new URL('./xds-inside.ts', import.meta.url).pathname;
  const child = spawn(ip, ['netns', 'exec', name, process.execPath, script]);
  const waiting = new Map<number, (answer: unknown) => void>();
  let last = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, answer } = JSON.parse(line) as { id: number; answer: unknown };
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const proxies: ChildProcess[] = [];
  return {
    name,
    outside: `${net}.1`,
    ask: (order) =>
      new Promise((resolve) => {
        last += 1;
        waiting.set(last, resolve);
        child.stdin.write(`${JSON.stringify({ id: last, order })}\n`);
      }),
    startEnvoy: (folder, proxyName, bootstrap, args = []) => {
      const file = join(folder, `${proxyName}.json`);
      writeFileSync(file, JSON.stringify(bootstrap));
      const envoy = [
        pathOf('envoy')!,
        '-c',
        file,
        '--concurrency',
        '1',
        '-l',
        'warning',
        '--use-dynamic-base-id',
        ...args,
      ];
      const as = ['setpriv', '--reuid', String(envoyUid), '--clear-groups', '--'];
      const proxy = spawn(ip, ['netns', 'exec', name, ...as, ...envoy]);
      let log = '';
      for (const stream of [proxy.stdout, proxy.stderr])
        stream.on('data', (chunk) => (log = (log + chunk).slice(-20_000)));
      proxies.push(proxy);
      return { pid: proxy.pid!, log: () => log, stop: () => proxy.kill('SIGKILL') };
    },
    stop: () => {
      for (const proxy of proxies) proxy.kill('SIGKILL');
      child.kill('SIGKILL');
      // The namespace lives until the last process in it has ended; its device must be gone for the next one.
      execFileSync(ip, ['link', 'delete', link]);
      execFileSync(ip, ['netns', 'delete', name]);
    },
  };
}
