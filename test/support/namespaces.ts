// Network namespaces of one test, joined by a bridge in a hub, with names that no other test process has. Needs root.

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { pathOf } from './counterparts.ts';

/** Why namespaces cannot be had here; empty if they can. */
export function namespacesMissing(): string {
  if (process.getuid?.() !== 0) return ' (needs root)';
  const missing = (['ip', 'nft', 'conntrack'] as const).filter((name) => pathOf(name) === undefined);
  return missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;
}

export interface Place {
  readonly name: string;
  readonly address: string;
  readonly address6: string;
}

export class Namespaces {
  readonly #prefix: string;
  readonly #names: string[] = [];
  readonly hub: Place;

  constructor(tag: string) {
    this.#prefix = `${tag}${process.pid}`;
    this.hub = { name: `${this.#prefix}-hub`, address: '10.88.0.1', address6: 'fd88::1' };
    this.#add(this.hub.name);
    this.ip(this.hub, 'link add br0 type bridge');
    this.ip(this.hub, 'link set br0 up');
    this.ip(this.hub, `addr add ${this.hub.address}/24 dev br0`);
    this.ip(this.hub, `-6 addr add ${this.hub.address6}/64 dev br0 nodad`);
  }

  /** A machine on the hub's network: 10.88.0.<host>, fd88::<host>. */
  addMachine(id: string, host: number): Place {
    const place = { name: `${this.#prefix}-${id}`, address: `10.88.0.${host}`, address6: `fd88::${host}` };
    this.#add(place.name);
    sh(`ip -n ${place.name} link add eth0 type veth peer name ${id} netns ${this.hub.name}`);
    this.ip(this.hub, `link set ${id} master br0 up`);
    this.ip(place, `addr add ${place.address}/24 dev eth0`);
    this.ip(place, `-6 addr add ${place.address6}/64 dev eth0 nodad`);
    this.ip(place, 'link set eth0 up');
    return place;
  }

  /** A pod behind a machine that forwards for it. */
  addPod(machine: Place, id: string, subnet: string): Place {
    const pod = { name: `${this.#prefix}-${id}`, address: `${subnet}.2`, address6: '' };
    this.#add(pod.name);
    sh(`ip -n ${pod.name} link add eth0 type veth peer name ${id} netns ${machine.name}`);
    this.ip(machine, `addr add ${subnet}.1/24 dev ${id}`);
    this.ip(machine, `link set ${id} up`);
    this.ip(pod, `addr add ${pod.address}/24 dev eth0`);
    this.ip(pod, 'link set eth0 up');
    this.ip(pod, `route add default via ${subnet}.1`);
    return pod;
  }

  /** Its resolv.conf, for every program that is started there. */
  setResolver(place: Place, nameserver: string): void {
    mkdirSync(`/etc/netns/${place.name}`, { recursive: true });
    writeFileSync(`/etc/netns/${place.name}/resolv.conf`, `nameserver ${nameserver}\n`);
  }

  ip(place: { readonly name: string }, command: string): string {
    return sh(`ip -n ${place.name} ${command}`);
  }

  within(place: { readonly name: string }): string[] {
    return ['ip', 'netns', 'exec', place.name];
  }

  run(place: { readonly name: string }, command: string): string {
    return sh(`ip netns exec ${place.name} ${command}`);
  }

  async output(place: { readonly name: string }, program: string, args: readonly string[]): Promise<string> {
    const [first, ...rest] = [...this.within(place), program, ...args];
    const { stdout } = await promisify(execFile)(first!, rest, { timeout: 110_000, maxBuffer: 1 << 28 });
    return stdout;
  }

  start(place: { readonly name: string }, program: string, args: readonly string[]): ChildProcess {
    const [first, ...rest] = [...this.within(place), program, ...args];
    return spawn(first!, rest, { stdio: ['pipe', 'pipe', 'pipe'] });
  }

  remove(): void {
    for (const name of this.#names) {
      sh(`ip netns del ${name} || true`);
      rmSync(`/etc/netns/${name}`, { recursive: true, force: true });
    }
  }

  #add(name: string): void {
    sh(`ip netns add ${name} && ip -n ${name} link set lo up`);
    this.#names.push(name);
  }
}

function sh(line: string): string {
  return execFileSync('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', maxBuffer: 1 << 28 });
}
