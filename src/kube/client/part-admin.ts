// Asks the admin endpoints of parts by way of their home, with the caller's credentials and rights: the embedded home passes
// requests on (services/proxy), and a Kubernetes does so for a part in a Pod (pods/proxy). A part that does not run beside its
// home asks for a ticket, which is made once for each part; one that is asked for connections always does. Nothing is asked directly.

import { adminTicketHeader } from '../../base/admin-headers.ts';
import {
  flowReaderRole,
  flowTicketAccount,
  type TicketKind,
  ticketAccountOf,
  ticketAudience,
  ticketKindOf,
  ticketLifetimeMs,
} from '../objects/admin-ticket.ts';
import { ApiError, isForbidden, isNotFound } from '../objects/api-error.ts';
import type { Lease } from '../objects/lease.ts';
import { systemNamespace } from '../objects/ours.ts';
import { partAnnotations } from '../objects/part-lease.ts';
import { requestToken } from './account-token.ts';
import type { Client, PathOptions, RequestOptions } from './client.ts';

/** For one piece of work: a ticket is good for ten minutes. */
export class PartAdmin {
  readonly #client: Client;
  readonly #tickets = new Map<string, Promise<Readonly<Record<string, string>>>>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** JSON that the part answers to GET of `path`, such as `/status` or `/explain?name=…`. Throws ApiError. */
  ask<T = unknown>(lease: Lease, path: string, options?: RequestOptions): Promise<T> {
    return this.#get<T>(lease, path, options);
  }

  /** The same for paths that answer text, such as `/metrics`. */
  askText(lease: Lease, path: string, options?: RequestOptions): Promise<string> {
    return this.#get(lease, path, { ...options, decode: (body) => Buffer.from(body).toString('utf8') });
  }

  async #get<T>(lease: Lease, path: string, options?: PathOptions<T>): Promise<T> {
    try {
      const kind = ticketKindOf(path);
      const headers = kind === 'flows' || needsTicket(lease, path) ? await this.#ticketFor(lease, kind) : {};
      return await this.#client.getPath<T>(`${partAdminPath(lease)}${path}`, { ...options, headers });
    } catch (error) {
      throw isNotFound(error) ? elsewhere(lease, error) : error;
    }
  }

  #ticketFor(lease: Lease, kind: TicketKind): Promise<Readonly<Record<string, string>>> {
    const place = podOf(lease) ?? urlOf(lease);
    const key = `${kind} ${place}`;
    const made = this.#tickets.get(key) ?? makeTicket(this.#client, { place, kind });
    this.#tickets.set(key, made);
    return made;
  }
}

async function makeTicket(
  client: Client,
  { place, kind }: { readonly place: string; readonly kind: TicketKind },
): Promise<Readonly<Record<string, string>>> {
  const request = { ...ticketAccountOf(kind), lifetimeMs: ticketLifetimeMs, audiences: [ticketAudience(place)] };
  try {
    const { token } = await requestToken(client, request);
    return { [adminTicketHeader]: token };
  } catch (error) {
    // Installed by a version whose parts asked for none; a part that asks for one says what to do.
    if (isNotFound(error)) return kind === 'flows' ? makeTicket(client, { place, kind: 'admin' }) : {};
    throw kind === 'flows' && isForbidden(error) ? noFlows(error) : error;
  }
}

function noFlows(cause: unknown): ApiError {
  const message = `you may not read connections: that is a right of its own, create of serviceaccounts/token for ${flowTicketAccount.name} in ${systemNamespace}, which the ClusterRole ${flowReaderRole} has`;
  return new ApiError(message, { code: 403, reason: 'Forbidden', cause });
}

/** Health and metrics are open to the kubelet and to Prometheus. */
function needsTicket(lease: Lease, path: string): boolean {
  const isBesideHome = /^(|http:\/\/(127\.|\[::1\]).*)$/.test(urlOf(lease));
  return (podOf(lease) !== undefined || !isBesideHome) && !/^\/(livez|readyz|metrics)$/.test(path);
}

function urlOf({ metadata }: Lease): string {
  return metadata.annotations?.[partAnnotations.admin] ?? '';
}

function podOf({ metadata }: Lease): string | undefined {
  return metadata.annotations?.[partAnnotations.pod];
}

/** The API server knows no such Service or Pod. An embedded home says itself why it does not pass on. */
function elsewhere(lease: Lease, cause: unknown): unknown {
  if (!(cause instanceof ApiError) || /keep a Lease/.test(cause.message)) return cause;
  const { name, annotations = {} } = lease.metadata;
  const { [partAnnotations.node]: node, [partAnnotations.admin]: url = 'its admin endpoint' } = annotations;
  const pod = podOf(lease);
  const place =
    pod === undefined
      ? `${node === undefined ? '' : `on ${node}, `}outside the Pods of this cluster`
      : `in Pod ${pod}, which is not in this cluster`;
  const instead =
    pod === undefined
      ? `ask it on that machine at ${url}, or run it in a Pod`
      : 'ask it through the cluster of that Pod';
  const message = `part ${name} runs ${place}, where this API server does not reach it; ${instead}`;
  return new ApiError(message, { code: 503, reason: 'ServiceUnavailable', cause });
}

/** Where the home has the admin endpoint of the part that keeps this Lease. */
export function partAdminPath(lease: Lease): string {
  const { namespace = systemNamespace, name, annotations = {} } = lease.metadata;
  const pod = podOf(lease);
  const port = /:(\d+)$/.exec(annotations[partAnnotations.admin] ?? '')?.[1] ?? '';
  const target = pod === undefined ? `services/${name}:admin` : `pods/${encodeURIComponent(pod)}:${port}`;
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${target}/proxy`;
}
