// Where a server is, if it has several addresses: the one that answered last comes first. A connection is made to the first
// that answers; the next is tried when one has failed, and beside it when it is silent.

import type { HttpAccess } from '../http.ts';
import { type Connection, openConnection } from './connect.ts';
import { ConnectionError } from './connection-error.ts';

export interface PlacedConnection {
  readonly place: HttpAccess;
  readonly connection: Connection;
}

/**
 * Silence of one of several before the next is tried. Together with the PING of an open connection, a client has moved on within
 * two seconds.
 */
const silentMs = 400;
const answerMsMax = 2_000;

export class Places {
  readonly #access: HttpAccess;
  #servers: readonly string[];

  constructor(access: HttpAccess) {
    this.#access = access;
    this.#servers = [access.server, ...(access.otherServers ?? [])];
  }

  get areSeveral(): boolean {
    return this.#servers.length > 1;
  }

  async connect(): Promise<PlacedConnection> {
    const places = (await this.#locate()).map((server) => this.#at(server));
    const opened = await firstThatAnswers(places);
    this.#prefer(opened.place.server);
    return opened;
  }

  /** It answers, and cannot serve: the next comes first. */
  leave(server: string): void {
    this.#servers = [...this.#servers.filter((other) => other !== server), server];
  }

  /** A client that does not know where the server is now asks where it was. */
  async #locate(): Promise<readonly string[]> {
    const now = await this.#access.currentServers?.().catch(() => undefined);
    if (now === undefined || now.length === 0) return this.#servers;
    const known = this.#servers.filter((server) => now.includes(server));
    this.#servers = [...known, ...now.filter((server) => !known.includes(server))];
    return this.#servers;
  }

  #prefer(server: string): void {
    this.#servers = [server, ...this.#servers.filter((other) => other !== server)];
  }

  #at(server: string): HttpAccess {
    return server === this.#access.server ? this.#access : { ...this.#access, server };
  }
}

async function firstThatAnswers(places: readonly HttpAccess[]): Promise<PlacedConnection> {
  const [only] = places;
  if (only !== undefined && places.length === 1) return { place: only, connection: await openConnection(only) };
  return new Promise((resolve, reject) => {
    const errors: Error[] = [];
    let started = 0;
    let isSettled = false;
    let timer: NodeJS.Timeout | undefined;
    const opened = (place: HttpAccess, connection: Connection) => {
      clearTimeout(timer);
      if (isSettled) return void connection.socket.destroy();
      isSettled = true;
      resolve({ place, connection });
    };
    const failed = (error: Error) => {
      errors.push(error);
      if (!isSettled && started < places.length) start();
      else if (errors.length === places.length) reject(allFailed(places, errors));
    };
    const start = () => {
      clearTimeout(timer);
      const place = places[started];
      if (place === undefined) return;
      started += 1;
      timer = setTimeout(start, silentMs);
      openConnection(place, answerMsMax).then((connection) => opened(place, connection), failed);
    };
    start();
  });
}

function allFailed(places: readonly HttpAccess[], errors: readonly Error[]): Error {
  const cause = errors.find((error) => error instanceof ConnectionError && error.code !== '') ?? errors[0];
  return new ConnectionError(`connect to ${places.map(({ server }) => server).join(', ')}`, cause);
}
