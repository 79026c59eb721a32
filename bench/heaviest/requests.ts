// How a heavy request is written down and sent.

import type { Connection } from '../../test/support/api-process.ts';

export interface Place {
  readonly connection: Connection;
  /** A revision before most of what was made, still kept. */
  floor: number;
}

export interface Heavy {
  readonly verb: string;
  readonly what: string;
  run(place: Place, round: number): Promise<unknown>;
  after?(place: Place, round: number): Promise<unknown>;
}

/** The status; whether the request is taken or refused is for the server to say, as long as it does so soon. */
export async function sent(
  place: Place,
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const { status } = await place.connection.request(method, path, body && Buffer.from(body), headers);
  if (status === 0 || status >= 500) throw new Error(`${method} ${path.slice(0, 100)}: ${status}`);
  return status;
}

export function dump(object: object): string {
  return JSON.stringify(object);
}

export function repeat(text: string, count: number): string {
  return text.repeat(count);
}
