// Names that are answered by every resolver itself and never sent to others: `localhost` and its addresses and `.invalid`
// (RFC 6761), `.onion` (RFC 7686), `.alt` (RFC 9476), and `resolver.arpa` (RFC 9462): there is no other resolver that this one
// would name. `.test` and `home.arpa` are left to the servers of those who use them.

import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { encodeName, isWithin, reverseName } from '../../base/dns/name.ts';
import { makeZone } from '../../catalog/names/zones.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { headerBytes, type Query } from '../message/wire.ts';
import type { StubZones } from '../stub-zones/stub-zones.ts';

const ttlSeconds = 86_400;
const serial = 1;
const ipv4 = Uint8Array.of(127, 0, 0, 1);
const ipv6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

interface Special {
  readonly bytes: Uint8Array;
  readonly soa: SoaTemplate;
  /** Only this name, or all below it too. */
  readonly hasBelow: boolean;
  readonly rcodeBelow: number;
  readonly rcode: number;
  readonly records: Readonly<Record<number, Uint8Array>>;
}

export function specialHandler({ stubZones }: { readonly stubZones: StubZones }): Handler {
  const { NOERROR, NXDOMAIN } = rcode;
  const pointer = { [recordType.PTR]: encodeName('localhost') };
  const addresses = { [recordType.A]: ipv4, [recordType.AAAA]: ipv6 };
  const all: readonly Special[] = [
    special('localhost', { records: addresses, rcodeBelow: NOERROR }),
    ...['onion', 'invalid', 'alt'].map((name) => special(name, { rcode: NXDOMAIN, rcodeBelow: NXDOMAIN })),
    special('_dns.resolver.arpa', { rcodeBelow: NOERROR }),
    special('resolver.arpa', { rcodeBelow: NXDOMAIN }),
    special(reverseName(ipv4), { records: pointer, hasBelow: false }),
    special(reverseName(ipv6), { records: pointer, hasBelow: false }),
  ];

  function handle(query: Query, answer: Answer): Step {
    const found = find(query);
    // A stub zone takes precedence, whatever its name.
    if (!found || query.class !== classIn || stubZones.find(query.name, query.nameLength)) return 'next';
    answer.isAuthoritative = true;
    const isApex = query.nameLength === found.bytes.length;
    answer.rcode = isApex ? found.rcode : found.rcodeBelow;
    const rdata = found.records[query.type];
    if (rdata) answer.recordAt('answer', query.type, ttlSeconds, rdata, 0, rdata.length, 0xc000 | headerBytes);
    else found.soa.write(answer, 'authority', query, serial, found.bytes.length);
    return 'done';
  }

  function find({ name, nameLength }: Query): Special | undefined {
    for (const each of all) {
      if (each.hasBelow ? isWithin(name, nameLength, each.bytes) : isSame(name, nameLength, each.bytes)) return each;
    }
    return undefined;
  }

  return { name: 'special', handle };
}

function special(name: string, rest: Partial<Omit<Special, 'bytes' | 'soa'>>): Special {
  const zone = makeZone(0, { name, source: 'peers', ttlSeconds });
  const soa = new SoaTemplate(zone);
  return { hasBelow: true, rcode: 0, rcodeBelow: 0, records: {}, ...rest, bytes: zone.bytes, soa };
}

function isSame(name: Uint8Array, length: number, other: Uint8Array): boolean {
  return length === other.length && isWithin(name, length, other);
}
