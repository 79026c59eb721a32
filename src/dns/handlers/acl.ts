// Only clients in the list are served, so that the resolver is no open forwarder.

import { rcode } from '../../base/dns/codes.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';
import { createAddressFilter } from '../source/address-filter.ts';

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
