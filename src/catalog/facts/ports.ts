// Ports of services and slices, and how they are packed into bytes. Pure.

import type { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import type { Protocol } from '../../kube/objects/service.ts';

export interface PortFacts {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

/** Leaves out what is no port. */
export function portsOf(
  ports: readonly { name?: string; protocol?: string; port?: number }[] | undefined,
): PortFacts[] {
  const facts: PortFacts[] = [];
  for (const { name, protocol, port } of ports ?? []) {
    if (port === undefined || port < 0 || port > 65_535) continue;
    facts.push({ name: (name ?? '').toLowerCase(), protocol: (protocol ?? 'TCP') as Protocol, port });
  }
  return facts;
}

export function packPorts(writer: ByteWriter, ports: readonly PortFacts[]): void {
  const count = Math.min(255, ports.length);
  writer.u8(count);
  for (let i = 0; i < count; i++) {
    const { name, protocol, port } = ports[i]!;
    writer
      .text(name)
      .u8(Math.max(0, protocols.indexOf(protocol)))
      .u16(port);
  }
}

export function unpackPorts(reader: ByteReader): PortFacts[] {
  return repeat(reader.u8(), () => ({ name: reader.text(), protocol: protocols[reader.u8()]!, port: reader.u16() }));
}

export function repeat<T>(count: number, make: () => T): T[] {
  const items = new Array<T>(count);
  for (let i = 0; i < count; i++) items[i] = make();
  return items;
}
