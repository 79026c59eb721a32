// dns-packet comes without types: as much of them as the tests use.

declare module 'dns-packet' {
  export type RecordType = string;
  export type RecordClass = string;
  export interface PacketOpt {
    code: number | string;
    data: Uint8Array;
  }
  // biome-ignore lint/suspicious/noExplicitAny: record data has as many shapes as there are types
  export type Answer = { type: RecordType; name: string; ttl?: number; class?: string; data: any; options?: any };
  export interface Packet {
    type?: 'query' | 'response';
    id?: number;
    flags?: number;
    flag_tc?: boolean;
    flag_ad?: boolean;
    flag_cd?: boolean;
    flag_aa?: boolean;
    flag_ra?: boolean;
    rcode?: string;
    questions?: { name: string; type: RecordType; class?: RecordClass }[];
    answers?: Answer[];
    authorities?: Answer[];
    additionals?: Answer[];
  }
  export type DecodedPacket = Packet;
  const packet: {
    encode(packet: Packet): Buffer;
    decode(bytes: Uint8Array): DecodedPacket;
    RECURSION_DESIRED: number;
  };
  export default packet;
}
