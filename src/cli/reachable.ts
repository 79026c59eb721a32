// Whether an address that goes into a token can be reached from other machines.

import { isIPv4 } from 'node:net';

/** Takes the host of a URL, or a plain one. A DNS name that begins with 127. is none. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || (host.startsWith('127.') && isIPv4(host));
}
