// Which addresses a peer may give as its mesh ingress: our proxies connect there in our name. Pure. Addresses that reach
// ourselves, our link or our own ranges, and names that only mean something inside a cluster, need the Peer's permission.

import { isDnsUnder } from '../../base/dns/labels.ts';
import { type Ip, type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { refusedRange, unmappedIp } from '../../base/net/special-ranges.ts';

export interface IngressBounds {
  /** `Peer.allowedIngress`: ranges, addresses and domains that are fine all the same. */
  readonly allowed: readonly string[];
  readonly ownZones: readonly string[];
  /** Ranges that this cluster gives addresses from. */
  readonly ownRanges: readonly IpRange[];
  /** Hosts of our own API and peering endpoint: addresses or names. */
  readonly ownHosts: readonly string[];
}

/** The bounds of one peer, with the zones, ranges and hosts of this cluster. */
export function ingressBoundsOf(
  allowed: readonly string[] | undefined,
  own: { readonly zones: readonly string[]; readonly ranges: readonly string[]; readonly hosts: readonly string[] },
): IngressBounds {
  return {
    allowed: allowed ?? [],
    ownZones: own.zones,
    ownRanges: own.ranges.map(parseRange).filter((range) => range !== undefined),
    ownHosts: own.hosts,
  };
}

/** RFC 6761 and later: names that mean another host to each machine that asks, or none. */
const localSuffixes = ['localhost', 'local', 'internal', 'svc', 'invalid', 'onion', 'arpa', 'lan', 'home'];

/** Why this address is refused; undefined if it may be used. */
export function whyNotIngress(address: string, bounds: IngressBounds): string | undefined {
  const ip = parseIp(address);
  return ip === undefined
    ? whyNotName(address.toLowerCase().replace(/\.$/, ''), bounds)
    : whyNotIp(ip, address, bounds);
}

/** The same for an address that was found under a name; a domain that the Peer allows may lead anywhere. */
export function whyNotFound(name: string, address: string, bounds: IngressBounds): string | undefined {
  if (bounds.allowed.some((domain) => isDnsUnder(name.toLowerCase().replace(/\.$/, ''), domain))) return undefined;
  return whyNotIngress(address, bounds);
}

function whyNotIp(ip: Ip, address: string, { allowed, ownRanges, ownHosts }: IngressBounds): string | undefined {
  const isAllowed = allowed.some((text) => {
    const range = parseRange(text);
    return range !== undefined && isInRange(ip, range);
  });
  if (isAllowed) return undefined;
  const hint = 'if it is right, name it in allowedIngress of the Peer';
  const special = refusedRange(ip);
  if (special !== undefined) return `${address} is a special address (${special.what}, ${special.text}); ${hint}`;
  // As a socket sees it: ::ffff:10.96.0.1 is 10.96.0.1.
  const reached = unmappedIp(ip);
  if (ownRanges.some((range) => isInRange(reached, range))) return `${address} is in a range of this cluster; ${hint}`;
  const isOwnHost = ownHosts.some((host) => parseIp(host)?.value === reached.value);
  return isOwnHost ? `${address} is an address of our own; ${hint}` : undefined;
}

function whyNotName(name: string, { allowed, ownZones, ownHosts }: IngressBounds): string | undefined {
  if (allowed.some((domain) => isDnsUnder(name, domain))) return undefined;
  const hint = 'if it is right, name it in allowedIngress of the Peer';
  const zone = ownZones.find((own) => isDnsUnder(name, own));
  if (zone !== undefined) return `${name} is inside our own zone ${zone}; ${hint}`;
  if (ownHosts.some((host) => host.toLowerCase() === name)) return `${name} is a host of our own; ${hint}`;
  const isLocal = !name.includes('.') || localSuffixes.some((suffix) => isDnsUnder(name, suffix));
  return isLocal ? `${name} means something only inside a cluster or a local network; ${hint}` : undefined;
}
