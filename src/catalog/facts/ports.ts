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

/** More of one object are not kept. */
const portsMax = 1000;

/** Leaves out what is no port. */
export function portsOf(ports: readonly unknown[] | null | undefined): PortFacts[] {
  const facts: PortFacts[] = [];
  for (const each of listOf(ports)) {
    const port = portOf(each);
    if (port !== undefined && facts.length < portsMax) facts.push(port);
  }
  return facts;
}

/** Undefined for what is no port: a foreign writer may have put anything there. */
export function portOf(value: unknown): PortFacts | undefined {
  const { name, protocol = 'TCP', port } = (value ?? {}) as { name?: unknown; protocol?: unknown; port?: unknown };
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined;
  if (!protocols.includes(protocol as Protocol)) return undefined;
  return { name: typeof name === 'string' ? name : '', protocol: protocol as Protocol, port };
}

export function listOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(list) ? list : [];
}

export function packPorts(writer: ByteWriter, ports: readonly PortFacts[]): void {
  const count = Math.min(portsMax, ports.length);
  writer.u16(count);
  for (let i = 0; i < count; i++) {
    const { name, protocol, port } = ports[i]!;
    writer
      .text(name)
      .u8(Math.max(0, protocols.indexOf(protocol)))
      .u16(port);
  }
}

export function unpackPorts(reader: ByteReader): PortFacts[] {
  return repeat(reader.u16(), () => ({ name: reader.text(), protocol: protocols[reader.u8()]!, port: reader.u16() }));
}

export function repeat<T>(count: number, make: () => T): T[] {
  const items = new Array<T>(count);
  for (let i = 0; i < count; i++) items[i] = make();
  return items;
}
