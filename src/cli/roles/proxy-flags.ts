// Reads the texts of the proxy's flags; an error names the flag and says what it wants.

import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { modeProblem } from '../../proxy/ranges.ts';
import { usageError } from '../exit-codes.ts';
import type { ProxyFlags } from './proxy.ts';

export interface RedirectFlag {
  readonly range: IpRange;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  readonly toPort: number;
}

export function rangesOf(flag: string, texts: readonly string[]): IpRange[] {
  return texts.map((text) => {
    const range = parseRange(text);
    if (range === undefined) throw usageError(`${flag} ${text}: want a range such as 10.1.0.0/24 or fd00:1::/64`);
    return range;
  });
}

/** Undefined if none are given: then those of the clusterset are used, as the home has them. */
export function clustersetRangesOf({ range, mode }: Pick<ProxyFlags, 'range' | 'mode'>): IpRange[] | undefined {
  if (range.length === 0) return undefined;
  const ranges = rangesOf('--range', range);
  const problem = modeProblem(ranges, mode);
  if (problem !== undefined) throw usageError(`--range ${range.join(' ')}: ${problem}`);
  return ranges;
}

const redirectPattern = /^(\[[0-9a-fA-F:./]+\]|[0-9./]+):(\d{1,5})\/(tcp|udp)=(\d{1,5})$/;

export function redirectsOf(texts: readonly string[]): RedirectFlag[] {
  return texts.map((text) => {
    const parts = redirectPattern.exec(text);
    const range = parts ? parseRange(parts[1]!.replace(/^\[|\]$/g, '')) : undefined;
    const [port, toPort] = [Number(parts?.[2]), Number(parts?.[4])];
    if (parts === null || range === undefined || !isPort(port) || !isPort(toPort))
      throw usageError(`--redirect ${text}: want CIDR:PORT/PROTOCOL=LOCALPORT, such as 242.0.0.0/8:443/tcp=15001`);
    return { range, protocol: parts[3] as 'tcp' | 'udp', port, toPort };
  });
}

export function uidOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw usageError(`--envoy-uid ${text}: want the number of a user`);
  return Number(text);
}

export function verifyMsOf(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw usageError(`--verify-minutes ${text}: want a number of minutes, or 0`);
  return Number(text) * 60_000;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}
