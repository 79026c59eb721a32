// Writers that fight over a few ConfigMaps through plain HTTP/2, and the record of their requests and responses.

import type { Connection } from '../support/api-process.ts';
import type { Content, Operation } from './linearizability.ts';

export interface Server {
  /** Resolves when a server answers; rejects when the run is over. */
  connection(): Promise<Connection>;
  readonly isOver: boolean;
}

export interface Acknowledged {
  readonly revision: number;
  readonly name: string;
  readonly value: Content;
}

interface Seen {
  readonly revision: string;
  readonly value: string;
}

const collection = '/api/v1/namespaces/chaos/configmaps';

export class History {
  readonly operations = new Map<string, Operation[]>();
  readonly acknowledged: Acknowledged[] = [];
  /** The highest revision any answer carried. */
  revisionMax = 0;
  /** Writes that were given a revision at or below one that had been acknowledged before they were called. */
  readonly wentBack: string[] = [];
  #values = 0;

  /** One client that reads, creates, replaces and deletes until the run is over. */
  async write(server: Server, names: readonly string[], random: () => number): Promise<void> {
    while (!server.isOver) {
      const name = names[Math.floor(random() * names.length)] as string;
      try {
        const connection = await server.connection();
        let seen = await this.#read(connection, name);
        // The last read may be old by now: then the write is refused, and that is recorded too.
        while (random() < 0.6) seen = await this.#change(connection, name, seen, random() < 0.2);
      } catch {
        // The server was killed: what was in flight is recorded as unanswered.
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  async #read(connection: Connection, name: string): Promise<Seen | undefined> {
    const calledAt = performance.now();
    const { status, body } = await connection.request('GET', `${collection}/${name}`);
    if (status !== 200 && status !== 404) throw new Error(`get ${name}: ${status} ${body}`);
    const seen = status === 200 ? this.#seenIn(body) : undefined;
    this.#record(name, { calledAt, returnedAt: performance.now(), action: { kind: 'read', saw: seen?.value } });
    return seen;
  }

  async #change(
    connection: Connection,
    name: string,
    seen: Seen | undefined,
    isDelete: boolean,
  ): Promise<Seen | undefined> {
    const wrote = isDelete && seen !== undefined ? undefined : `v${(this.#values += 1)}`;
    const calledAt = performance.now();
    const floor = this.revisionMax;
    const record = (returnedAt: number) =>
      this.#record(name, { calledAt, returnedAt, action: { kind: 'write', expected: seen?.value, wrote } });
    let reply: { status: number; body: Buffer };
    try {
      reply = await this.#send(connection, name, seen, wrote);
    } catch (error) {
      record(Number.POSITIVE_INFINITY);
      throw error;
    }
    if (reply.status === 200 || reply.status === 201) {
      record(performance.now());
      return this.#acknowledge(name, wrote, reply.body, floor);
    }
    if (reply.status === 409 || reply.status === 404) {
      this.#record(name, {
        calledAt,
        returnedAt: performance.now(),
        action: { kind: 'refused', expected: seen?.value },
      });
      return this.#read(connection, name);
    }
    record(Number.POSITIVE_INFINITY);
    throw new Error(`write ${name}: ${reply.status} ${reply.body}`);
  }

  #send(connection: Connection, name: string, seen: Seen | undefined, wrote: Content) {
    if (wrote === undefined) {
      const preconditions = { resourceVersion: seen?.revision };
      return connection.request('DELETE', `${collection}/${name}`, {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions,
      });
    }
    const metadata = { name, namespace: 'chaos', ...(seen === undefined ? {} : { resourceVersion: seen.revision }) };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value: wrote } };
    if (seen === undefined) return connection.request('POST', collection, object);
    return connection.request('PUT', `${collection}/${name}`, object);
  }

  #acknowledge(name: string, value: Content, body: Buffer, floor: number): Seen | undefined {
    if (value === undefined) return undefined;
    const seen = this.#seenIn(body) as Seen;
    const revision = Number(seen.revision);
    if (revision <= floor) this.wentBack.push(`${name}: given ${revision} after ${floor} had been seen`);
    this.acknowledged.push({ revision, name, value });
    return seen;
  }

  #seenIn(body: Buffer): Seen | undefined {
    const object = JSON.parse(body.toString());
    if (object.kind !== 'ConfigMap') return undefined;
    this.revisionMax = Math.max(this.revisionMax, Number(object.metadata.resourceVersion));
    return { revision: object.metadata.resourceVersion, value: object.data.value };
  }

  #record(name: string, operation: Operation): void {
    const list = this.operations.get(name);
    if (list === undefined) this.operations.set(name, [operation]);
    else list.push(operation);
  }
}
