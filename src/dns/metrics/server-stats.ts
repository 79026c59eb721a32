// Statistics of each upstream server, in memory that another thread can read: how often it was asked, how often it
// did not answer or answered with a failure, and whether it is silent at present. Rows carry the server's name, so that a
// reader needs nothing but the memory; servers beyond the last row share it.

import { formatHostPort } from '../../base/net/host-port.ts';
import type { ServerAddress } from '../config/config.ts';

const rowsMax = 32;
/** The longest name is an IPv6 address in brackets with a port: 47 bytes, and one that ends it. */
const nameCells = 6;
const cell = { asked: nameCells, unanswered: nameCells + 1, failed: nameCells + 2, silent: nameCells + 3 } as const;
const rowCells = nameCells + 4;
export const serverStatsCells = rowsMax * rowCells;
const othersName = 'others';

export class ServerStats {
  readonly #cells: Float64Array;
  readonly #rows = new WeakMap<ServerAddress, number>();

  constructor(cells: Float64Array) {
    this.#cells = cells;
  }

  count(server: ServerAddress, what: 'asked' | 'unanswered' | 'failed'): void {
    this.#cells[this.#rowOf(server) + cell[what]]! += 1;
  }

  setSilent(server: ServerAddress, isSilent: boolean): void {
    this.#cells[this.#rowOf(server) + cell.silent] = isSilent ? 1 : 0;
  }

  #rowOf(server: ServerAddress): number {
    let at = this.#rows.get(server);
    if (at === undefined) {
      at = this.#take(nameOf(server));
      this.#rows.set(server, at);
    }
    return at;
  }

  #take(name: string): number {
    for (let row = 0; row < rowsMax; row++) {
      const at = row * rowCells;
      const wanted = row === rowsMax - 1 ? othersName : name;
      const written = readName(this.#cells, at);
      if (written === '') writeName(this.#cells, at, wanted);
      if (written === '' || written === wanted) return at;
    }
    return (rowsMax - 1) * rowCells;
  }
}

export interface ServerTotals {
  readonly server: string;
  asked: number;
  unanswered: number;
  failed: number;
  /** In every thread that asks it. */
  isSilent: boolean;
}

/** Sums over all threads. */
export function readServerStats(all: readonly Float64Array[]): ServerTotals[] {
  const totals = new Map<string, ServerTotals>();
  for (const cells of all) {
    for (let at = 0; at < serverStatsCells; at += rowCells) {
      const server = readName(cells, at);
      if (server === '') break;
      const sum = totals.get(server) ?? { server, asked: 0, unanswered: 0, failed: 0, isSilent: true };
      totals.set(server, sum);
      sum.asked += cells[at + cell.asked]!;
      sum.unanswered += cells[at + cell.unanswered]!;
      sum.failed += cells[at + cell.failed]!;
      sum.isSilent &&= cells[at + cell.silent] === 1;
    }
  }
  return [...totals.values()];
}

function nameOf({ host, port }: ServerAddress): string {
  return formatHostPort(host, port);
}

function bytesAt(cells: Float64Array, at: number): Uint8Array {
  return new Uint8Array(cells.buffer, cells.byteOffset + 8 * at, 8 * nameCells);
}

function readName(cells: Float64Array, at: number): string {
  const bytes = bytesAt(cells, at);
  const end = bytes.indexOf(0);
  return Buffer.from(bytes.subarray(0, end)).toString('latin1');
}

function writeName(cells: Float64Array, at: number, name: string): void {
  bytesAt(cells, at).set(Buffer.from(name, 'latin1').subarray(0, 8 * nameCells - 1));
}
