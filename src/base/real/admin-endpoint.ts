// The admin endpoint of a role: metrics for Prometheus, and whether it lives and works, for who restarts it. Plain HTTP.
// Web pages of other origins are refused by admin-guard.ts. From other machines and Pods, everything but health and metrics
// needs a ticket, which the home of the part checks.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { adminHolderHeader, adminTicketHeader, formatHolders } from '../admin-headers.ts';
import type { Metrics } from '../metrics.ts';
import { formatHostPort } from '../net/host-port.ts';
import { adminRefusal } from './admin-guard.ts';
import { boundConnections } from './connection-bounds.ts';
import { createServer } from './node-http.ts';

export interface AdminEndpointOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics: Metrics;
  /** Empty while the role works; else why it does not. */
  readonly notReady: () => string;
  /** Added to the answer of /readyz while the role works, such as that it serves old data; empty if there is nothing to say. */
  readonly remark?: () => string;
  /** The role's state, for `GET /status` in JSON. */
  readonly status: () => unknown;
  /** More paths that only some roles have. */
  readonly routes?: Readonly<Record<string, AdminRoute>>;
  /** The Leases of the parts that answer here. Each gets the address, so that the home can pass on requests. */
  readonly registrations?: readonly AdminRegistration[];
}

export interface AdminRegistration {
  readonly part: string;
  readonly holder: string;
  announce(admin: { readonly url: string; readonly pod?: string }): void;
  /** Why the home did not take the last renewal; empty if it did. */
  problem(): string;
  /** Why a caller with this ticket gets no answer; undefined if it gets one. */
  refusalOf(ticket: string, kind: TicketKind): Promise<Refusal | undefined>;
}

/** A ticket for flows opens the paths that show connections; one for admins opens all others. */
type TicketKind = 'admin' | 'flows';

interface Refusal {
  readonly status: number;
  readonly why: string;
}

export interface AdminRoute {
  readonly methods: readonly string[];
  /** Needs a ticket for flows, from loopback too: other users of this machine have no right to see connections. */
  readonly isOfFlows?: boolean;
  /** Answers in JSON; an error it throws is the caller's mistake. */
  handle(request: { readonly method: string; readonly query: URLSearchParams }): Promise<unknown>;
}

export interface AdminEndpoint {
  readonly url: string;
  close(): Promise<void>;
}

export function startAdminEndpoint(options: AdminEndpointOptions): Promise<AdminEndpoint> {
  const registrations = options.registrations ?? [];
  measure(options);
  const holders = formatHolders(registrations.map(({ holder }) => holder));
  const limits = { requestTimeout: 10_000, headersTimeout: 10_000, connectionsCheckingInterval: 1000 };
  const server = createServer(limits, (request, response) => {
    if (holders !== '') response.setHeader(adminHolderHeader, holders);
    const refusal = adminRefusal(request.headers, options.listen.host);
    if (refusal !== undefined) return answer(response, 403, `${refusal}\n`);
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const serve = () => {
      const route = options.routes?.[path];
      if (route !== undefined) return follow(route, { method: request.method ?? '', query }, response);
      if (request.method !== 'GET') return answer(response, 405, 'only GET\n');
      respond(options, path, response).catch((error: unknown) => answer(response, 500, `${error}\n`));
    };
    const isOfFlows = options.routes?.[path]?.isOfFlows ?? false;
    if (!isOfFlows && isOpenTo(request, path)) return serve();
    refusalOf(request, { registrations, isOfFlows }).then((refused) => {
      if (refused === undefined) serve();
      else answer(response, refused.status, `${refused.why}\n`);
    });
  });
  boundConnections(server, { max: 200, perAddressMax: 100 });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.listen.port, options.listen.host, () => {
      const { address, port } = server.address() as AddressInfo;
      const pod = process.env['POD_NAME'];
      for (const registration of registrations)
        registration.announce({ url: `http://${formatHostPort(reachable(address), port)}`, pod });
      resolve({
        url: `http://${formatHostPort(address, port)}`,
        close: () => {
          server.closeAllConnections();
          return new Promise((done) => server.close(() => done()));
        },
      });
    });
  });
}

/** Kubelets ask for health and a Prometheus for metrics, both without a ticket. */
const openPaths: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics']);

/** No other addresses of loopback: the sidecars of service meshes pass on what comes from outside with those. */
const ownAddresses: ReadonlySet<string> = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);

function isOpenTo({ socket }: IncomingMessage, path: string): boolean {
  return openPaths.has(path) || ownAddresses.has(socket.remoteAddress ?? '');
}

/** All registrations of an endpoint are at one home. */
async function refusalOf(
  { headers }: IncomingMessage,
  { registrations, isOfFlows }: { readonly registrations: readonly AdminRegistration[]; readonly isOfFlows: boolean },
): Promise<Refusal | undefined> {
  const [registration] = registrations;
  const ticket = headers[adminTicketHeader];
  const instead = `from other machines only ${[...openPaths].join(', ')} are answered without a ticket; ask through the home, as portolan dig and doctor do, or on the machine itself by a loopback address`;
  if (typeof ticket !== 'string' || ticket === '') return { status: 401, why: isOfFlows ? flowsInstead : instead };
  if (registration === undefined) return { status: 403, why: 'this part has no home that could check tickets' };
  return registration.refusalOf(ticket, isOfFlows ? 'flows' : 'admin');
}

const flowsInstead =
  'connections are shown to those who have the right to flows; ask through the home, as portolan observe and top do';

function measure({ metrics, notReady, registrations = [] }: AdminEndpointOptions): void {
  metrics.gauge({
    name: 'part_ready',
    help: '1 while /readyz answers that the part works.',
    collect: (gauge) => gauge.set(notReady() === '' ? 1 : 0),
  });
  metrics.gauge({
    name: 'home_reachable',
    help: '1 while the API server took the last renewal of the Lease of this part.',
    labelNames: ['part'],
    collect: (gauge) => {
      for (const each of registrations) gauge.set({ part: each.part }, each.problem() === '' ? 1 : 0);
    },
  });
}

/** All addresses of this machine: from here, by loopback. */
function reachable(address: string): string {
  return address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
}

async function respond(options: AdminEndpointOptions, path: string, response: ServerResponse): Promise<void> {
  if (path === '/livez') return answer(response, 200, 'ok\n');
  if (path === '/readyz') {
    const why = options.notReady();
    if (why !== '') return answer(response, 503, `${why}\n`);
    const remark = options.remark?.() ?? '';
    return answer(response, 200, remark === '' ? 'ok\n' : `ok\n${remark}\n`);
  }
  if (path === '/status') return answer(response, 200, `${JSON.stringify(options.status())}\n`, 'application/json');
  const more = Object.keys(options.routes ?? {}).map((name) => `, ${name}`);
  if (path !== '/metrics')
    return answer(response, 404, `there are /livez, /readyz, /status, /metrics${more.join('')}\n`);
  answer(response, 200, await options.metrics.text(), options.metrics.contentType);
}

function follow(
  route: AdminRoute,
  { method, query }: { method: string; query: string },
  response: ServerResponse,
): void {
  if (!route.methods.includes(method)) return answer(response, 405, `only ${route.methods.join(' and ')}\n`);
  route.handle({ method, query: new URLSearchParams(query) }).then(
    (value) => answer(response, 200, `${JSON.stringify(value)}\n`, 'application/json'),
    (error: Error) => answer(response, 400, `${error.message}\n`),
  );
}

function answer(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { 'content-type': type }).end(text);
}
