// The rules that a node's proxy would write for a service that is partly behind a gateway, in a network namespace.

import { execFileSync } from 'node:child_process';
import { parseRange } from '../../src/base/net/ip.ts';
import type { ServiceImport } from '../../src/clusterset/kinds/service-import.ts';
import type { ClusterReach } from '../../src/clusterset/rules/networks/networks.ts';
import type { Endpoint, EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { Ruleset } from '../../src/proxy/nft/ruleset.ts';
import { differenceScript, refillScript } from '../../src/proxy/nft/script.ts';
import type { NodeAddresses } from '../../src/proxy/node-addresses.ts';
import { ProxyState } from '../../src/proxy/state.ts';
import { emptyViewInput, viewOf } from '../../src/proxy/view.ts';
import { pathOf } from './counterparts.ts';
import { clusterSetRange } from './gateway-world.ts';

/** Beside the one of IPv4. */
const clusterSetRange6 = 'fd70:6f72:74f3::/64';
const ranges = [parseRange('243.0.0.0/8')!, parseRange(clusterSetRange6)!];

export class ProxyRules {
  readonly state: ProxyState;
  readonly #ruleset = new Ruleset({ isHairpin: () => false });
  readonly #namespace: string;
  readonly #nodeAddresses: NodeAddresses;
  readonly #clusters: readonly string[];

  constructor(namespace: string, clusters: Readonly<Record<string, ClusterReach>>, ...nodeAddresses: string[]) {
    const networks = { own: 'default', clusters: new Map(Object.entries(clusters)) };
    this.state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'west', networks }));
    this.#namespace = namespace;
    const isIpv6 = (address: string) => address.includes(':');
    const [IPv4, IPv6] = [nodeAddresses.find((each) => !isIpv6(each)), nodeAddresses.find(isIpv6)];
    this.#nodeAddresses = { ...(IPv4 && { IPv4 }), ...(IPv6 && { IPv6 }) };
    this.#clusters = Object.keys(clusters);
  }

  /** The node's Envoy has said this about all clusters. */
  nearSide(problem: string | undefined): void {
    const problems = new Map(this.#clusters.map((id) => [id, problem]));
    this.state.setNearSide({ addresses: this.#nodeAddresses, problems });
  }

  /** In place of the rules that the namespace was opened with. */
  write(): void {
    this.#take();
    // As the proxy has it: with a local route the clusterset IP itself would be the source of connections.
    this.#ip('route', 'del', 'local', clusterSetRange, 'dev', 'lo');
    for (const range of [clusterSetRange, clusterSetRange6]) this.#ip('route', 'add', range, 'dev', 'lo');
    this.#nft(`delete table inet gateways\n${refillScript(this.#ruleset, { ranges }, undefined)}`);
  }

  change(): void {
    this.#nft(differenceScript(this.#take()));
  }

  #take() {
    const keys = this.state.takeDirty();
    return this.#ruleset.change(keys.map((key) => [key, this.state.choiceOf(key).ports] as const));
  }

  #ip(...args: string[]): void {
    execFileSync(pathOf('ip')!, ['netns', 'exec', this.#namespace, 'ip', ...args]);
  }

  #nft(input: string): void {
    execFileSync(pathOf('ip')!, ['netns', 'exec', this.#namespace, pathOf('nft')!, '-f', '-'], { input });
  }
}

export function importOf({ name, ip, port }: { name: string; ip: string; port: number }): ServiceImport {
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name, namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ name: 'http', protocol: 'TCP', port }] },
  } as ServiceImport;
}

export function sliceOf(
  cluster: string,
  addressType: EndpointSlice['addressType'],
  endpoints: Endpoint[],
): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `web-${cluster}`,
      namespace: 'shop',
      labels: {
        'multicluster.kubernetes.io/service-name': 'web',
        'multicluster.kubernetes.io/source-cluster': cluster,
      },
    },
    addressType,
    endpoints,
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
}
