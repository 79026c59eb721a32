// Passes a request on to the admin endpoint of a part: GET or POST on
// `/api/v1/namespaces/portolan-system/services/LEASE:admin/proxy/PATH`, the path that a Kubernetes uses too. The
// caller needs the right to services/proxy. The address comes from the Lease of the part. A Lease can be written by
// others than the part, so only loopback addresses and those in ranges that were given to the home count, and only an
// endpoint that names the holder of that Lease gets the request. None of the caller's headers is passed on, but its
// ticket to a part on another machine, or for flows.

import { adminHolderHeader, adminTicketHeader, isHolderAmong } from '../../base/admin-headers.ts';
import type { HttpResponse, HttpTransport } from '../../base/http.ts';
import { type IpRange, isInRange, parseIp } from '../../base/net/ip.ts';
import { ticketKindOf } from '../../kube/objects/admin-ticket.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partAnnotations } from '../../kube/objects/part-lease.ts';
import type { ApiRequest } from '../model/access.ts';
import type { Engine } from '../model/call.ts';
import type { ResourceRoute } from '../model/route.ts';
import { StatusError } from '../model/status.ts';
import { methodNotAllowed, tooManyRequests } from '../model/status-errors.ts';
import { objectKey, parseStored } from '../model/stored.ts';

export interface PartProxy {
  /** The caller is already authorized. Throws StatusError. */
  pass(request: ApiRequest, route: ResourceRoute): Promise<HttpResponse>;
}

const runningMax = 8;
/** A connectivity test of many connections takes a while. */
const durationMsMax = 60_000;
const bodyBytesMax = 8 * 1024 * 1024;
const loopback = /^http:\/\/(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]):\d{1,5}$/;
const anyAddress = /^http:\/\/(?:\[([0-9a-f:]+)\]|(\d{1,3}(?:\.\d{1,3}){3})):\d{1,5}$/;

/** `ranges` are those of other machines whose parts may be asked. */
export function createPartProxy(
  engine: Pick<Engine, 'world' | 'store' | 'registry'>,
  ranges: readonly IpRange[] = [],
): PartProxy {
  const { world } = engine;
  let running = 0;
  return {
    pass: async (request, route) => {
      if (request.method !== 'GET' && request.method !== 'POST') throw methodNotAllowed();
      const part = leaseNameOf(route.name);
      const lease = route.namespace === systemNamespace ? await readLease(engine, part) : undefined;
      if (lease === undefined) throw noSuchPart(route.namespace, part);
      const { server, holder, isElsewhere } = targetOf(part, lease, ranges);
      if (running >= runningMax) throw tooManyRequests('too many requests to parts are under way; try again later');
      running += 1;
      const transport = world.network.http({ server });
      const deadline = withDeadline(world.timers, request.signal);
      try {
        const query = request.path.includes('?') ? request.path.slice(request.path.indexOf('?')) : '';
        const line = { method: request.method, path: `${route.proxyPath}${query}`, signal: deadline.signal };
        await checkHolder(transport, { part, holder, signal: deadline.signal });
        const isWanted = isElsewhere || ticketKindOf(route.proxyPath) === 'flows';
        const ticket = isWanted ? request.headers[adminTicketHeader] : undefined;
        return await exchange(transport, part, ticket === undefined ? line : { ...line, ticket });
      } finally {
        running -= 1;
        deadline.cancel();
        transport.close();
      }
    },
  };
}

/** `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`, as Kubernetes takes them. A part has one port only. */
function leaseNameOf(name: string): string {
  const pieces = name.split(':');
  return (pieces.length === 3 ? pieces[1] : pieces[0]) ?? '';
}

async function readLease({ store, registry }: Pick<Engine, 'store' | 'registry'>, name: string) {
  const served = registry.find(leaseType.group, leaseType.version, leaseType.plural);
  if (served === undefined) return undefined;
  const entry = await store.get(objectKey(served.keyPrefix, systemNamespace, name));
  return entry === undefined ? undefined : (parseStored(served, entry) as unknown as Lease);
}

function noSuchPart(namespace: string, part: string): StatusError {
  return new StatusError(
    'NotFound',
    `no part ${JSON.stringify(part)} in ${namespace}: requests are passed on to parts that keep a Lease in ${systemNamespace}`,
    { details: { name: part, kind: 'services' } },
  );
}

interface Target {
  readonly server: string;
  readonly holder: string;
  readonly isElsewhere: boolean;
}

function targetOf(part: string, { metadata, spec }: Lease, ranges: readonly IpRange[]): Target {
  const server = metadata.annotations?.[partAnnotations.admin] ?? '';
  if (server === '') throw unavailable(part, 'its Lease names no admin endpoint; start a version that writes one');
  const isElsewhere = !loopback.test(server);
  if (isElsewhere && !isIn(server, ranges)) {
    throw unavailable(
      part,
      `its admin endpoint ${JSON.stringify(server)} is not on loopback; ask it on its own machine with --admin, or start the home with --parts-in and a range that has this address`,
    );
  }
  return { server, holder: spec?.holderIdentity ?? '', isElsewhere };
}

function isIn(server: string, ranges: readonly IpRange[]): boolean {
  const [, v6, v4] = anyAddress.exec(server) ?? [];
  const ip = parseIp(v6 ?? v4 ?? '');
  return ip !== undefined && ranges.some((range) => isInRange(ip, range));
}

/** Nothing but this goes to an address that was not checked. */
async function checkHolder(
  transport: HttpTransport,
  { part, holder, signal }: { part: string; holder: string; signal: AbortSignal },
): Promise<void> {
  // One text for a closed port and for a stranger: who may write Leases must not learn here which ports are open.
  const elsewhere =
    'it does not answer on the machine of its home; it has stopped, or runs on another one: ask it there with --admin';
  const response = await send(transport, { method: 'GET', path: '/livez', signal }).catch(() => undefined);
  if (response === undefined) throw unavailable(part, elsewhere);
  await drain(response);
  if (!isHolderAmong(response.headers[adminHolderHeader], holder)) throw unavailable(part, elsewhere);
}

interface Line {
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly ticket?: string;
}

function send(transport: HttpTransport, { ticket, ...line }: Line): Promise<HttpResponse> {
  const headers = { accept: 'application/json, text/plain' };
  return transport.send({
    ...line,
    headers: ticket === undefined ? headers : { ...headers, [adminTicketHeader]: ticket },
  });
}

async function exchange(transport: HttpTransport, part: string, line: Line): Promise<HttpResponse> {
  try {
    const response = await send(transport, line);
    const body = await readAtMost(response.body);
    if (body === undefined) throw unavailable(part, `its answer has more than ${bodyBytesMax} bytes`);
    return { status: response.status, headers: { ...safeHeaders, 'content-type': typeOf(response) }, body };
  } catch (error) {
    if (error instanceof StatusError) throw error;
    if (line.signal.aborted) throw new StatusError('Timeout', `part ${part}: no answer within ${durationMsMax} ms`);
    throw unavailable(part, 'the connection broke');
  }
}

const safeHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** Never a type that a browser would run. */
function typeOf({ headers }: HttpResponse): string {
  const type = headers['content-type'] ?? '';
  return /^(application\/json|text\/plain)\b/.test(type) ? type : 'application/octet-stream';
}

async function readAtMost(body: HttpResponse['body']): Promise<Uint8Array | undefined> {
  if (body instanceof Uint8Array) return body.length > bodyBytesMax ? undefined : body;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function drain({ body }: HttpResponse): Promise<void> {
  await readAtMost(body).catch(() => undefined);
}

function unavailable(part: string, why: string): StatusError {
  return new StatusError('ServiceUnavailable', `part ${part}: ${why}`, { details: { name: part, kind: 'services' } });
}

function withDeadline(timers: Engine['world']['timers'], caller: AbortSignal | undefined) {
  const controller = new AbortController();
  const end = () => controller.abort();
  const timer = timers.after(durationMsMax, end);
  if (caller?.aborted) end();
  caller?.addEventListener('abort', end, { once: true });
  return {
    signal: controller.signal,
    cancel: () => {
      timer.cancel();
      caller?.removeEventListener('abort', end);
    },
  };
}
