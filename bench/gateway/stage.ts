// The stage of `bench:gateway`: a caller and a cluster with a gateway in network namespaces, each with a real Envoy and its discovery
// server, near to each other and far away; ways from one to the other that can be compared.

import { spawn } from 'node:child_process';
import { meshOf } from '../../src/peering/testing/edge/mesh.ts';
import { pathOf } from '../../test/support/counterparts.ts';
import { connectFarAway } from '../../test/support/distance.ts';
import {
  clusterSetRange,
  connect,
  exportService,
  type GatewayCluster,
  gatewayPorts,
  introduce,
  startCluster,
  startGateway,
  startNode,
} from '../../test/support/gateway-world.ts';
import { inNamespace } from '../../test/support/in-namespace.ts';
import { takeLoopbackPart } from '../../test/support/loopback-part.ts';
import { LineProcess } from '../../test/support/proxy-processes.ts';
import { endLater } from '../../test/support/started.ts';
import type { RunningProxy } from '../../test/support/xds-namespace.ts';
import type { Order, Target } from './inside.ts';

export type Way = 'direct' | 'one Envoy hop' | 'gateway' | 'direct TLS';

export const pod = '10.70.2.1';
const port = 8080;
const tlsPort = 8443;
const hopPort = 15_200;
/** The kernel sends connections to them to east, directly and through one Envoy. */
const [directIp, hopIp] = ['244.9.0.1', '244.9.0.2'];

export const nameOf = (index: number): string => `s${index}`;
export const ipOf = (index: number): string => `243.9.${index >> 8}.${index & 255}`;

export interface BenchStage {
  readonly east: GatewayCluster;
  readonly west: GatewayCluster;
  readonly envoys: Readonly<Record<'node' | 'gateway' | 'hop', RunningProxy>>;
  ask<T>(order: Order): Promise<T>;
  /** Where a way begins, for the distance that was chosen last. */
  target(way: Way): Target;
  choose(distance: 'near' | 'far'): Promise<void>;
}

export async function openStage(roundTripMs: number): Promise<BenchStage> {
  const east = await startCluster('east', { gateways: 1 });
  const west = await startCluster('west');
  const [near] = connect(east, west);
  const net = `10.188.${await takeLoopbackPart()}`;
  const [far] = await connectFarAway({ ends: [east.inside.name, west.inside.name], net, roundTripMs });
  for (const { inside } of [east, west])
    inNamespace(inside.name, ['sysctl', '-qw', 'net.ipv4.tcp_tw_reuse=1', 'net.ipv4.ip_local_port_range=1024 65000']);
  const server = startInside(east);
  const client = startInside(west);
  await server.ask({ do: 'serve', address: '0.0.0.0', port });
  const { certificate, key } = meshOf('bench');
  await server.ask({ do: 'serve', address: '0.0.0.0', port: tlsPort, certificate, key });
  await exportService(east, { name: nameOf(0), ip: ipOf(0), port, endpoint: pod });
  await introduce(east, [west], new Map([['west', near]]));
  const gateway = await startGateway(east);
  const node = await startNode(west);
  // As a node has it: with a local route the clusterset address itself would be the source of connections.
  inNamespace(west.inside.name, ['ip', 'route', 'del', 'local', clusterSetRange, 'dev', 'lo']);
  inNamespace(west.inside.name, ['ip', 'route', 'add', clusterSetRange, 'via', near]);
  const hop = west.inside.startEnvoy(west.xds[0]!.folder, 'hop', hopBootstrap([near, far]));
  let at = near;
  const [reach] = await Promise.all([east.roots(), lead(west, near)]);
  return {
    ...{ east, west, envoys: { node, gateway, hop } },
    ask: (order) => client.ask(order),
    target: (way) => {
      if (way === 'direct TLS') return { address: at, port: tlsPort, isTls: true };
      return { address: { direct: directIp, 'one Envoy hop': hopIp, gateway: ipOf(0) }[way]!, port };
    },
    choose: async (distance) => {
      at = distance === 'near' ? near : far;
      await lead(west, at);
      const gateways = [{ address: at, port: gatewayPorts[0] }];
      await west.networks({ east: { network: 'network-of-east', gateways, trustRoots: reach, listenerPort: 15_101 } });
      const { atMs } = await client.ask<{ atMs?: number }>({
        ...{ do: 'until', address: ipOf(0), port, answer: pod, withinMs: 20_000 },
      });
      if (atMs === undefined) throw new Error(`east is not reached through its gateway at ${at}`);
    },
  };
}

function startInside({ inside }: GatewayCluster): LineProcess {
  const script = new URL('./inside.ts', import.meta.url).pathname;
  const lines = new LineProcess(spawn(pathOf('ip')!, ['netns', 'exec', inside.name, process.execPath, script]));
  endLater(() => lines.stop());
  return lines;
}

/** The kernel's part of the two ways that know no gateway. */
async function lead({ inside }: GatewayCluster, address: string): Promise<void> {
  const direct = `ip daddr ${directIp} tcp dport ${port} dnat to ${address}:${port}`;
  const hop = `ip daddr ${hopIp} tcp dport ${port} redirect to :${hopPort + (address.startsWith('10.188.') ? 1 : 0)}`;
  const chain = `chain out {\ntype nat hook output priority -102; policy accept;\n${direct}\n${hop}\n}`;
  const empty = 'table ip bench {}\ndelete table ip bench\n';
  // By the same link back.
  inNamespace(inside.name, ['ip', 'route', 'replace', '244.0.0.0/8', 'via', address]);
  inNamespace(inside.name, [pathOf('nft')!, '-f', '-'], `${empty}table ip bench {\n${chain}\n}\n`);
}

/** One listener for each address of east: passes bytes on, and nothing more. */
function hopBootstrap(addresses: readonly string[]): object {
  const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  const endpoint = (address: string) => ({ lb_endpoints: [{ endpoint: { address: socket(address, port) } }] });
  const many = { max_connections: 100_000, max_pending_requests: 100_000 };
  const proxy = (cluster: string) => ({
    name: 'proxy',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
      ...{ stat_prefix: cluster, cluster },
    },
  });
  return {
    admin: { address: socket('127.0.0.1', 19_300) },
    static_resources: {
      listeners: addresses.map((address, index) => ({
        name: address,
        address: socket('0.0.0.0', hopPort + index),
        filter_chains: [{ filters: [proxy(address)] }],
      })),
      clusters: addresses.map((address) => ({
        name: address,
        circuit_breakers: { thresholds: [many] },
        load_assignment: { cluster_name: address, endpoints: [endpoint(address)] },
      })),
    },
  };
}
