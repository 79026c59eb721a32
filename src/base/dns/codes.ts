// The numbers of DNS: types, classes, response codes, opcodes; and their names as people write them. The one table of the
// program. IANA, Domain Name System Parameters.

export const recordType = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  TLSA: 52,
  CDS: 59,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const;

export const classIn = 1;
export const classChaos = 3;
export const classNone = 254;
export const classAny = 255;

export const rcode = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADCOOKIE: 23,
} as const;

export const rcodeNames: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(rcode).map(([name, value]) => [value, name]),
);

const types: ReadonlyMap<string, number> = new Map(Object.entries(recordType));
const typeNames: ReadonlyMap<number, string> = new Map([...types].map(([name, type]) => [type, name]));

/** `A`, `https`, `TYPE65` (RFC 3597); undefined for anything else. */
export function parseType(text: string): number | undefined {
  const name = text.toUpperCase();
  const known = types.get(name);
  if (known !== undefined) return known;
  const number = Number(/^TYPE(\d{1,5})$/.exec(name)?.[1] ?? Number.NaN);
  return number <= 0xffff ? number : undefined;
}

export function typeText(type: number): string {
  return typeNames.get(type) ?? `TYPE${type}`;
}
