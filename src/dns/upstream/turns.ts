// Whose turn it is to stand first among the addresses of a cached answer, so that clients are spread over them. Counted by what
// the answer ends in, its last address: a refreshed answer goes on where the one before stopped. Two answers that share a
// counter move each other on, nothing worse.

const counters = 1024;

export class Turns {
  readonly #next = new Uint16Array(counters);

  next(text: string): number {
    let slot = 0;
    for (let i = Math.max(0, text.length - 4); i < text.length; i++) slot = (31 * slot + text.charCodeAt(i)) & 0xffff;
    slot &= counters - 1;
    const turn = this.#next[slot]!;
    this.#next[slot] = turn + 1;
    return turn;
  }
}
