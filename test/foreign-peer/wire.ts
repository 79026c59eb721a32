// The protobuf fields of the protocol's first draft, by hand, and gRPC's five bytes in front of each message.

export const path = '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream';
export const url = 'type.googleapis.com/federation.types.v1alpha1.FederatedService';

export interface ForeignService {
  readonly id: string;
  readonly fqdn?: string;
  readonly san?: string;
  readonly protocols?: readonly string[];
  readonly endpoints?: readonly { readonly address: string; readonly port: number }[];
  readonly description?: string;
}

export type Fields = Map<number, (Buffer | number)[]>;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

function field(number: number, value: Buffer | string | number): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  const bytes = Buffer.from(value as string);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function service(of: ForeignService): Buffer {
  const parts = [field(6, of.id)];
  if (of.description !== undefined) parts.push(field(2, of.description));
  if (of.fqdn !== undefined) parts.push(field(5, of.fqdn));
  if (of.san !== undefined) parts.push(field(7, of.san));
  for (const protocol of of.protocols ?? []) parts.push(field(8, protocol));
  for (const { address, port } of of.endpoints ?? [])
    parts.push(field(9, Buffer.concat([field(1, address), field(2, port)])));
  return Buffer.concat(parts);
}

/** A StreamResponse without a nonce. */
export function response(operation: 1 | 2 | 3, of: ForeignService): Buffer {
  const any = Buffer.concat([field(1, url), field(2, service(of))]);
  return Buffer.concat([field(2, url), field(3, any), field(4, operation)]);
}

export function registerConsumer(): Buffer {
  return field(1, url);
}

/** Without resource_url: the presence of the empty status makes it an ACK. */
export function ack(nonce: Buffer | string): Buffer {
  return Buffer.concat([field(2, nonce), field(3, Buffer.alloc(0))]);
}

export function nack(nonce: Buffer | string, code: number, message: string): Buffer {
  const status = Buffer.concat([field(1, code), field(2, message)]);
  return Buffer.concat([field(2, nonce), field(3, status)]);
}

export function fieldsOf(bytes: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++]!;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = read();
    const number = Math.floor(tag / 8);
    let value: Buffer | number;
    if (tag % 8 === 0) value = read();
    else {
      const length = read();
      value = bytes.subarray(at, at + length);
      at += length;
    }
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

export function text(fields: Fields, number: number): string {
  return String(fields.get(number)?.[0] ?? '');
}

export function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

/** Calls back with each whole message of a stream of bytes. */
export function deframe(onMessage: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const length = rest.readUInt32BE(1);
      onMessage(rest.subarray(5, 5 + length));
      rest = rest.subarray(5 + length);
    }
  };
}
