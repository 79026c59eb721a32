// Which requests an admin endpoint answers. It has no login, so a web page must not be able to reach it through a
// browser on the same machine: neither under a name that its owner points here (Host), nor from its own origin (Origin,
// Sec-Fetch-Site). An address as Host is fine: no page gets an origin with our address unless we serve it.

import { hostname } from 'node:os';
import { parseIp } from '../net/ip.ts';

export interface GuardedHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}

/** Why the request is refused, or undefined. `listenHost` is the name or address that was given to listen on. */
export function adminRefusal(headers: GuardedHeaders, listenHost: string): string | undefined {
  const { host = '', origin } = headers;
  const name = nameOf(host);
  if (!isOwnName(name, listenHost)) {
    return `the Host header is ${JSON.stringify(host.slice(0, 100))}; use an address, localhost or ${listenHost}`;
  }
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    return `the Origin header is ${JSON.stringify(origin.slice(0, 100))}; pages of other origins are not answered`;
  }
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') return 'pages of other origins are not answered';
  return undefined;
}

/** `[::1]:80`, `127.0.0.1:80`, `localhost:80` without the port and the brackets. */
function nameOf(host: string): string {
  const [, inBrackets, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return (inBrackets ?? plain).toLowerCase();
}

function isOwnName(name: string, listenHost: string): boolean {
  if (name === '') return false;
  const own = ['localhost', listenHost.toLowerCase(), hostname().toLowerCase()];
  return own.includes(name) || parseIp(name) !== undefined;
}
