// The machines of the clusters: network namespaces on one bridge, which lies in the namespace of this process. Pods of one are routed
// from the others.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const hubAddress = '10.88.0.1';

export interface NodeMachine {
  readonly name: string;
  /** A path of its network namespace, for nsenter; `ip netns exec` would hide the control groups. */
  readonly namespace: string;
  readonly address: string;
}

/** The bridge; call once, in a network namespace of one's own. */
export function openNetwork(): void {
  sh('mkdir -p /run/netns /run/containerd');
  for (const folder of ['/run/netns', '/run/containerd']) sh(`mount -t tmpfs tmpfs ${folder}`);
  sh('ip link set lo up; ip link add br0 type bridge; ip link set br0 up');
  sh(`ip addr add ${hubAddress}/24 dev br0`);
  forward();
}

export function addMachine(name: string, host: number): NodeMachine {
  const address = `10.88.0.${host}`;
  sh(`ip netns add ${name}; ip -n ${name} link set lo up`);
  sh(`ip -n ${name} link add eth0 type veth peer name ${name} netns ${process.pid}`);
  sh(`ip link set ${name} master br0 up`);
  sh(`ip -n ${name} addr add ${address}/24 dev eth0; ip -n ${name} link set eth0 up`);
  sh(`ip -n ${name} route add default via ${hubAddress}`);
  const machine = { name, namespace: `/run/netns/${name}`, address };
  sh(`${within(machine).join(' ')} sysctl -qw net.ipv4.ip_forward=1`);
  return machine;
}

/** Everybody else sends what is for this range to that machine. */
export function routeTo(range: string, machine: NodeMachine, others: readonly NodeMachine[]): void {
  sh(`ip route add ${range} via ${machine.address}`);
  for (const other of others) sh(`ip -n ${other.name} route add ${range} via ${machine.address}`);
}

export function within({ namespace }: NodeMachine): string[] {
  return ['nsenter', `--net=${namespace}`];
}

function forward(): void {
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

function sh(line: string): void {
  execFileSync('sh', ['-ec', line], { stdio: ['ignore', 'ignore', 'inherit'] });
}
