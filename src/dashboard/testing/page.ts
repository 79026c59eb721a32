// For this folder's tests: a page of a session, without a browser.

import type { Changes, CollectionName, Collections, Message } from '../wire/rows.ts';

/** A page: the rows that it was sent, and how many messages that took. */
export class TestPage {
  readonly messages: Message[] = [];
  readonly rows = new Map<CollectionName, Map<string, unknown>>();

  readonly send = (line: string) => {
    const message = JSON.parse(line) as Message;
    this.messages.push(message);
    if (message.kind === 'change') this.#take(message.changes);
  };
  ended = '';
  readonly end = (why: string) => {
    this.ended = why;
  };

  get<Name extends CollectionName>(name: Name, key: string): Collections[Name] | undefined {
    return this.rows.get(name)?.get(key) as Collections[Name] | undefined;
  }

  #take(changes: Changes): void {
    for (const [name, rows] of Object.entries(changes) as [CollectionName, Record<string, unknown>][]) {
      const held = this.rows.get(name) ?? new Map<string, unknown>();
      for (const [key, row] of Object.entries(rows)) row === null ? held.delete(key) : held.set(key, row);
      this.rows.set(name, held);
    }
  }
}
