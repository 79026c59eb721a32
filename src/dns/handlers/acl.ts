// Only those in the list are served, so that the resolver is no open forwarder. Verdicts are remembered by address text.

import { rcode } from '../../base/dns/codes.ts';
import { type IpRange, isInRange, parseIp, parseRange } from '../../base/ip.ts';
import type { Answer } from '../answer.ts';
import type { Handler, Step } from '../handler.ts';
import { extendedError, type Query } from '../wire.ts';

/** Loopback, private, shared, link-local and unique-local addresses: what a cluster's pods have. */
export const defaultClients: readonly string[] = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
];

const rememberedMax = 10_000;

/** A test of addresses against ranges that is cheap when the same ones come again. */
export function createAddressFilter(ranges: readonly string[]): (address: string) => boolean {
  const parsed = ranges.map((text): IpRange => {
    const range = parseRange(text);
    if (!range) throw new Error(`address range ${JSON.stringify(text)}: want an address or address/prefix`);
    return range;
  });
  const remembered = new Map<string, boolean>();
  return (address) => {
    const known = remembered.get(address);
    if (known !== undefined) return known;
    const isAllowed = isInAny(address, parsed);
    if (remembered.size >= rememberedMax) remembered.clear();
    remembered.set(address, isAllowed);
    return isAllowed;
  };
}

function isInAny(text: string, ranges: readonly IpRange[]): boolean {
  // A dual-stack socket shows IPv4 clients as ::ffff:10.0.0.1, a link-local one ends in %eth0.
  const plain = text.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  const ip = parseIp(plain);
  return ip !== undefined && ranges.some((range) => isInRange(ip, range));
}

export interface AclHandlerOptions {
  readonly clients: readonly string[];
  /** Whether those who are served may ask for any name: every answer says so (RFC 1035 section 4.1.1). */
  readonly isForwarding: boolean;
}

export function aclHandler(options: AclHandlerOptions): Handler {
  const { isForwarding } = options;
  const isAllowed = createAddressFilter(options.clients);
  return {
    name: 'acl',
    handle(query: Query, answer: Answer): Step {
      if (isAllowed(query.clientAddress)) {
        answer.isRecursionAvailable = isForwarding;
        return 'next';
      }
      answer.fail(rcode.REFUSED, extendedError.prohibited, 'this address is not among the clients served here');
      return 'done';
    },
  };
}
