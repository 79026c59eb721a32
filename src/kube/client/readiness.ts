// Asks a home whether it is ready, and how far its clock is off.

import { type HttpTransport, readBody } from '../../base/http.ts';
import type { Clock } from '../../base/world.ts';

export interface Readiness {
  /** Status of /readyz. */
  readonly status: number;
  readonly text: string;
  /** The home's clock minus ours; undefined if it sends no Date. */
  readonly clockOffMs: number | undefined;
}

export async function readReadiness(transport: HttpTransport, clock: Clock, signal?: AbortSignal): Promise<Readiness> {
  const beforeMs = clock.wallMs();
  const response = await transport.send({ method: 'GET', path: '/readyz?verbose', headers: {}, signal });
  const text = Buffer.from(await readBody(response.body)).toString('utf8');
  const dateMs = Date.parse(response.headers['date'] ?? '');
  const middleMs = (beforeMs + clock.wallMs()) / 2;
  return { status: response.status, text, clockOffMs: Number.isNaN(dateMs) ? undefined : dateMs - middleMs };
}
