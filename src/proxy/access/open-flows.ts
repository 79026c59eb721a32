// Which tracked connections no export allows any more, from the listing of conntrack. Pure.

import { formatIp, type Ip, parseIp } from '../../base/net/ip.ts';
import type { AccessPlan } from './plan.ts';

const line =
  /^(tcp|udp|sctp)\s.*?\bsrc=(\S+) dst=\S+ sport=\d+ dport=\d+.*?\bsrc=(\S+) dst=\S+ sport=(\d+) dport=\d+/gm;

/** Arguments of one removal each: caller, and the endpoint that answers it. Those that are allowed are never among them. */
export function flowsToEnd(listing: string, plan: AccessPlan): string[][] {
  const found = new Map<string, string[]>();
  for (const [, protocol, source, endpoint, port] of listing.matchAll(line)) {
    const [from, to] = [parseIp(source!), parseIp(endpoint!)];
    if (from === undefined || to === undefined) continue;
    const tuple = `${to.family === 'IPv4' ? 4 : 6} ${formatIp(to)} . ${protocol} . ${port}`;
    if (!plan.isGuarded(tuple)) continue;
    const cluster = clusterOf(from, plan);
    if (cluster === undefined || plan.mayCall(cluster, tuple)) continue;
    const ends = ['--orig-src', formatIp(from), '--reply-src', formatIp(to), '--reply-port-src', port!];
    found.set(`${source} ${tuple}`, ['-f', to.family === 'IPv4' ? 'ipv4' : 'ipv6', '-p', protocol!, ...ends]);
  }
  return [...found.values()];
}

/** Undefined for packets of no member; empty for those that several claim. */
export function clusterOf(ip: Ip, plan: AccessPlan): string | undefined {
  const { spans } = plan.config.judged;
  return spans.find(({ family, first, last }) => family === ip.family && first <= ip.value && ip.value <= last)
    ?.cluster;
}
