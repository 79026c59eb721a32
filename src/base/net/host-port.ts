// `host:port` as people write it, between text and values; an IPv6 address stands in brackets. Pure.

import { parseAddress } from './ip.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/**
 * `name:53`, `10.0.0.1:53`, `[fd00::1]:53`; with a default port also `name`, `10.0.0.1`, `[fd00::1]` and `fd00::1`. Undefined
 * for anything else. Whether the host is an address or a name is for the caller to check, and whether port 0 makes sense.
 */
export function parseHostPort(text: string, defaultPort?: number): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (match === null) {
    return defaultPort !== undefined && parseAddress(text) ? { host: text, port: defaultPort } : undefined;
  }
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  return port === undefined || port > 65_535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

export function formatHostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
