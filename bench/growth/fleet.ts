// The light agents of the benchmark, in processes of a few dozen each.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { addMembers, type Broker, clusterset } from './broker.ts';
import type { Received } from './counting.ts';
import type { Order, Reply } from './orders.ts';

const script = fileURLToPath(new URL('light-agents.ts', import.meta.url));
const perProcess = 25;

export class Fleet {
  readonly ids: readonly string[];
  readonly #children: ChildProcess[] = [];
  readonly #owner = new Map<string, ChildProcess>();
  readonly #waiting = new Set<(reply: Reply) => void>();
  #change = 0;

  constructor(ids: readonly string[]) {
    this.ids = ids;
  }

  async start(broker: Broker): Promise<void> {
    const { server, certificateAuthority = '' } = broker.access;
    const tokens = await addMembers(broker, this.ids);
    for (let first = 0; first < this.ids.length; first += perProcess) {
      const ids = this.ids.slice(first, first + perProcess);
      const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      child.on('message', (reply: Reply) => {
        for (const handler of this.#waiting) handler(reply);
      });
      this.#children.push(child);
      for (const id of ids) this.#owner.set(id, child);
      tell(child, {
        kind: 'start',
        ids,
        clusterset,
        server,
        certificateAuthority: String(certificateAuthority),
        tokens,
      });
    }
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  /** Creates the records of a service. */
  async create(id: string, index: number): Promise<void> {
    const done = this.#wait((reply) =>
      reply.kind === 'published' && reply.id === id && reply.index === index ? true : undefined,
    );
    tell(this.#owner.get(id)!, { kind: 'publish', id, index, change: 0 });
    await done;
  }

  /** Changes one endpoint; resolves to the milliseconds until the last agent has it. */
  async change(id: string, index: number): Promise<number> {
    this.#change += 1;
    const change = this.#change;
    let left = this.#children.length;
    const done = this.#wait((reply) => {
      if (reply.kind === 'failed') return Number.POSITIVE_INFINITY;
      if (reply.kind !== 'arrived' || reply.change !== change) return undefined;
      left -= 1;
      return left === 0 ? Number(BigInt(reply.atNs) - beganNs) / 1e6 : undefined;
    });
    const beganNs = process.hrtime.bigint();
    tell(this.#owner.get(id)!, { kind: 'publish', id, index, change });
    return done;
  }

  /** By all agents together, since they began. */
  async received(): Promise<Received> {
    const sum = { bytes: 0, events: 0 };
    for (const child of this.#children) {
      const done = this.#wait((reply) => (reply.kind === 'received' ? reply : undefined));
      tell(child, { kind: 'received' });
      const { bytes, events } = await done;
      sum.bytes += bytes;
      sum.events += events;
    }
    return sum;
  }

  #wait<T>(pick: (reply: Reply) => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const handler = (reply: Reply) => {
        const picked = pick(reply);
        if (picked === undefined) return;
        this.#waiting.delete(handler);
        resolve(picked);
      };
      this.#waiting.add(handler);
    });
  }
}

function tell(child: ChildProcess, order: Order): void {
  child.send(order);
}
