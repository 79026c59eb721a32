// The node's own side: whether it forwards packets, whether its range is used by others, and the route by which its
// own processes find clusterset addresses. Without a route, connect() fails before any rule is asked.

import type { Host } from '../../base/host.ts';
import { doRangesOverlap, formatRange, type IpRange, parseRange } from '../../base/net/ip.ts';
import { MissingProgram, runProgram } from './edge/programs.ts';

/** Marks our routes, so that no other is ever removed. */
const routeProtocol = '112';

interface Route {
  readonly dst: string;
  readonly dev?: string;
  readonly protocol?: string;
}

const switches = [
  { family: 'IPv4', path: '/proc/sys/net/ipv4/ip_forward', setting: 'net.ipv4.ip_forward' },
  { family: 'IPv6', path: '/proc/sys/net/ipv6/conf/all/forwarding', setting: 'net.ipv6.conf.all.forwarding' },
] as const;

/** In words; empty if pods can be served. */
export async function forwardingProblem(host: Host, families: ReadonlySet<IpRange['family']>): Promise<string> {
  const off: string[] = [];
  for (const { family, path, setting } of switches) {
    // A kernel without this family has no such file.
    if (families.has(family) && (await host.readText(path))?.trim() === '0') off.push(`${setting}=1`);
  }
  return off.length === 0
    ? ''
    : `this node forwards no packets, so connections of its pods would time out: sysctl -w ${off.join(' ')}`;
}

/** Routes of other interfaces that lie inside our range, or hold it: not the default one. */
export async function rangeProblems(host: Host, ranges: readonly IpRange[]): Promise<string[]> {
  const problems: string[] = [];
  for (const range of ranges) {
    for (const { dst, dev, protocol } of await routesOf(host, flagOf(range))) {
      const other = parseRange(dst);
      if (protocol === routeProtocol || other === undefined) continue;
      if (doRangesOverlap(range, other))
        problems.push(
          `${formatRange(range)} overlaps ${dst}, which interface ${dev ?? '?'} uses: choose another addressRanges.clusterSet in the ClusterSet`,
        );
    }
  }
  return problems;
}

type FamilyFlag = '-4' | '-6';

function flagOf({ family }: IpRange): FamilyFlag {
  return family === 'IPv4' ? '-4' : '-6';
}

async function routesOf(host: Host, family: FamilyFlag): Promise<Route[]> {
  try {
    const { code, out } = await runProgram(host, 'ip', ['-j', family, 'route', 'show']);
    return code === 0 ? (JSON.parse(out === '' ? '[]' : out) as Route[]) : [];
  } catch (error) {
    if (error instanceof MissingProgram) return [];
    throw error;
  }
}

/** Ranges that this node has a route of ours for. */
export async function rangesWithRoutes(host: Host): Promise<IpRange[]> {
  const routes = [...(await routesOf(host, '-4')), ...(await routesOf(host, '-6'))];
  return routes
    .filter(({ protocol }) => protocol === routeProtocol)
    .map(({ dst }) => parseRange(dst))
    .filter((range) => range !== undefined);
}

/** Ours alone. */
export async function removeRoutes(host: Host, { except = [] }: { readonly except?: readonly IpRange[] } = {}) {
  const kept = new Set(except.map(formatRange));
  for (const range of await rangesWithRoutes(host)) {
    if (kept.has(formatRange(range))) continue;
    await runProgram(host, 'ip', [flagOf(range), 'route', 'del', formatRange(range), 'proto', routeProtocol]);
  }
}

/** Returns what could not be done; empty if all routes are there. */
export async function addRoutes(host: Host, ranges: readonly IpRange[]): Promise<string[]> {
  const problems: string[] = [];
  for (const range of ranges) {
    const args = [flagOf(range), 'route', 'replace', formatRange(range), 'dev', 'lo', 'proto', routeProtocol];
    try {
      const { code, err } = await runProgram(host, 'ip', args);
      if (code !== 0) problems.push(`ip ${args.join(' ')}: ${err.split('\n')[0]}`);
    } catch (error) {
      if (!(error instanceof MissingProgram)) throw error;
      problems.push(
        'ip is not installed: the node’s own processes reach clusterset addresses only over a default route',
      );
      break;
    }
  }
  return problems;
}
