// A client that lists once, watches, and after every break goes on from the last revision it saw: it must miss nothing.

import type { Server } from './history.ts';

const collection = '/api/v1/namespaces/chaos/configmaps';

export interface WatchedEvent {
  readonly type: string;
  readonly name: string;
  readonly value: string;
  readonly revision: number;
}

export class Watcher {
  readonly events: WatchedEvent[] = [];
  /** The client's view, by name. */
  readonly state = new Map<string, string>();
  revision = 0;
  /** How often a watch went on from where it was after a break. */
  resumes = 0;
  /** States seen by listing: at first, and after "the revision is too old". */
  readonly lists: { readonly after: number; readonly upTo: number }[] = [];
  #mustList = true;

  async run(server: Server): Promise<void> {
    while (!server.isOver) {
      try {
        const connection = await server.connection();
        if (this.#mustList) await this.#list(connection);
        else this.resumes += 1;
        await this.#follow(connection, server);
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  async #list(connection: Awaited<ReturnType<Server['connection']>>): Promise<void> {
    const { status, body } = await connection.request('GET', collection);
    if (status !== 200) throw new Error(`list: ${status}`);
    const list = JSON.parse(body.toString());
    this.state.clear();
    for (const item of list.items) this.state.set(item.metadata.name, item.data.value);
    const upTo = Number(list.metadata.resourceVersion);
    this.lists.push({ after: this.revision, upTo });
    this.revision = upTo;
    this.#mustList = false;
  }

  #follow(connection: Awaited<ReturnType<Server['connection']>>, server: Server): Promise<void> {
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${this.revision}`;
    const stream = connection.stream(`${collection}?${query}`);
    let rest = '';
    return new Promise((resolve) => {
      const timer = setInterval(() => server.isOver && stream.close(), 50);
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() as string;
        for (const line of lines) this.#take(JSON.parse(line));
      });
      stream.on('error', () => {});
      stream.on('close', () => {
        clearInterval(timer);
        resolve();
      });
    });
  }

  #take({ type, object }: { type: string; object: Record<string, never> }): void {
    if (type === 'ERROR') {
      this.#mustList = true;
      return;
    }
    const { metadata, data } = object as unknown as {
      metadata: { name: string; resourceVersion: string };
      data: { value: string };
    };
    const revision = Number(metadata.resourceVersion);
    if (type !== 'BOOKMARK') {
      this.events.push({ type, name: metadata.name, value: data.value, revision });
      if (type === 'DELETED') this.state.delete(metadata.name);
      else this.state.set(metadata.name, data.value);
    }
    this.revision = revision;
  }
}
