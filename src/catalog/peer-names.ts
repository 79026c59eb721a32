// What one name of a PeerService answers: its own virtual addresses, and SRV with the ports of the peer's ingress,
// which are all that the protocol says of ports. Pure.
//
// SRV lies under the bare name, and under `_<protocol>._tcp` for each protocol that can be a label: what travels
// between meshes is TLS over TCP, whatever is inside. `tcp` and its like say nothing more than that and have no name
// of their own.

import { encodeName } from '../base/dns/name.ts';
import { order, plainRecord, recordType, srvData } from './answers.ts';
import { addAddresses, OwnerNames } from './owner-names.ts';
import type { PeerFacts } from './peer-facts.ts';

export interface PeerNameOptions {
  /** A name outside our zones is one of its own, and says who serves it. */
  readonly nameserver?: string;
}

export function namesOfPeer(name: string, facts: PeerFacts, options: PeerNameOptions = {}): OwnerNames {
  const names = new OwnerNames(name);
  // It exists before it has an address: nobody else is asked meanwhile.
  names.exist(name);
  addAddresses(
    names,
    name,
    facts.ips.map((address) => ({ address, cluster: 0 })),
    order.fixed,
  );
  const ports = facts.ports.map((port) => plainRecord(srvData({ port })));
  const labels = new Set(facts.protocols.flatMap(labelOf));
  for (const at of [name, ...[...labels].map((label) => `_${label}._tcp.${name}`)])
    names.add(at, { type: recordType.SRV, order: order.fixed, records: ports });
  if (options.nameserver !== undefined) {
    const records = [plainRecord(encodeName(options.nameserver))];
    names.add(name, { type: recordType.NS, order: order.fixed, records });
  }
  return names;
}

const transports: readonly string[] = ['tcp', 'udp', 'sctp', 'tls'];

/** `kubernetes.io/h2c` is `h2c`. RFC 6335 section 5.1: letters, digits and dashes, at least one letter. */
function labelOf(protocol: string): string[] {
  const label = protocol.toLowerCase().replace(/^[a-z0-9-]+(\.[a-z0-9-]+)+\//, '');
  const isLabel = /^[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?$/.test(label) && /[a-z]/.test(label);
  return isLabel && !transports.includes(label) ? [label] : [];
}
