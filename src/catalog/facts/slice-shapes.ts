// The parts of a slice that most slices of a cluster share: whose it is, its ports and zones. Each is kept once, and a slice
// holds its number. A shape that is too long, or comes after too many others, is written out in the slice itself.

import { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import { hashBytes } from '../../base/dns/name.ts';
import { PackedMap } from '../packed/packed-map.ts';
import { type PortFacts, packPorts, repeat, unpackPorts } from './ports.ts';

export interface SliceShape {
  readonly isImported: boolean;
  /** Empty for the cluster's own slices. */
  readonly cluster: string;
  readonly ports: readonly PortFacts[];
  /** Those that its endpoints lie in, each once: endpoints name them by number. */
  readonly zones: readonly string[];
  /** Whether any of its endpoints has a hostname. */
  readonly hasHostnames: boolean;
  /** Its addresses are virtual: they lead through a gateway. */
  readonly isVirtual: boolean;
}

/** Shapes that no slice has any more are not forgotten, so their number and size have a bound. */
const shapesMax = 4096;
const shapeBytesMax = 128;
/** In place of a number: the shape follows. */
const writtenOut = 0;
const importedMark = 1;
const hostnamesMark = 2;
const virtualMark = 4;

export class SliceShapes {
  readonly #numbers = new PackedMap();
  /** By number. */
  readonly #shapes: SliceShape[] = [
    { isImported: false, cluster: '', ports: [], zones: [], hasHostnames: false, isVirtual: false },
  ];
  readonly #writer = new ByteWriter();

  write(target: ByteWriter, shape: SliceShape): ByteWriter {
    const bytes = packShape(this.#writer, shape);
    const number = this.#numberOf(bytes);
    target.u16(number);
    return number === writtenOut ? target.raw(bytes) : target;
  }

  read(reader: ByteReader): SliceShape {
    const number = reader.u16();
    return number === writtenOut ? unpackShape(reader) : this.#shapes[number]!;
  }

  #numberOf(bytes: Uint8Array): number {
    const numbers = this.#numbers;
    const entry = numbers.find(bytes, bytes.length, hashBytes(bytes, 0, bytes.length));
    if (entry >= 0) {
      const start = numbers.valueStart(entry);
      return (numbers.bytes[start]! << 8) | numbers.bytes[start + 1]!;
    }
    if (this.#shapes.length > shapesMax || bytes.length > shapeBytesMax) return writtenOut;
    const number = this.#shapes.length;
    this.#shapes.push(unpackShape(new ByteReader(bytes)));
    numbers.set(bytes, Uint8Array.of(number >> 8, number & 255));
    return number;
  }
}

function packShape(writer: ByteWriter, shape: SliceShape): Uint8Array {
  const { isImported, cluster, ports, zones, hasHostnames, isVirtual } = shape;
  writer
    .reset()
    .u8((isImported ? importedMark : 0) | (hasHostnames ? hostnamesMark : 0) | (isVirtual ? virtualMark : 0))
    .text(cluster);
  packPorts(writer, ports);
  writer.u8(zones.length);
  for (const zone of zones) writer.text(zone);
  return writer.view();
}

function unpackShape(reader: ByteReader): SliceShape {
  const marks = reader.u8();
  const cluster = reader.text();
  const ports = unpackPorts(reader);
  return {
    isImported: (marks & importedMark) !== 0,
    ...{ cluster, ports, zones: repeat(reader.u8(), () => reader.text()) },
    hasHostnames: (marks & hostnamesMark) !== 0,
    isVirtual: (marks & virtualMark) !== 0,
  };
}
