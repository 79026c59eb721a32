// The address of this node to which the kernel sends connections for its Envoy: that of the Node object, else the first of its
// interfaces that Pods can be forwarded to. Pure.

import { formatAddress, parseAddress, parseIp } from '../base/net/ip.ts';
import { refusedRange } from '../base/net/special-ranges.ts';
import type { Node } from '../kube/objects/node.ts';

export function internalAddresses(node: Node | undefined): string[] {
  const addresses = node?.status?.addresses ?? [];
  return addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
}

export interface NodeAddresses {
  readonly IPv4?: string;
  readonly IPv6?: string;
}

/** The first address of each family that can be used. */
export function nodeAddressesOf(texts: readonly string[]): NodeAddresses {
  const found: { IPv4?: string; IPv6?: string } = {};
  for (const text of texts) {
    const [ip, bytes] = [parseIp(text), parseAddress(text)];
    // The kernel forwards nothing to loopback; an address of one link alone is none of this node.
    if (ip === undefined || bytes === undefined || refusedRange(ip) !== undefined) continue;
    found[ip.family] ??= formatAddress(bytes);
  }
  return found;
}
