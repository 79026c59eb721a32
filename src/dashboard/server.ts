// The dashboard's HTTP edge: the page and its files for everybody, rows and answers for bearers of a token. Checks Host and
// Origin, sets no cookie, and bounds what one client may hold open.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { errorText, type Log } from '../base/log.ts';
import { LogBudget } from '../base/log-budget.ts';
import { formatHostPort, type HostPort } from '../base/net/host-port.ts';
import { adminRefusal } from '../base/real/admin-guard.ts';
import { boundConnections } from '../base/real/connection-bounds.ts';
import { createServer } from '../base/real/node-http.ts';
import type { World } from '../base/world.ts';
import { type Api, createApi, isQuestionError } from './api.ts';
import type { Assets } from './edge/assets.ts';
import type { DashboardHome } from './homes/home-watch.ts';
import { cacheHeader, securityHeaders } from './security-headers.ts';
import { Refused, Sessions } from './sessions.ts';

export interface DashboardOptions {
  readonly world: World;
  readonly log: Log;
  readonly listen: HostPort;
  readonly homes: readonly DashboardHome[];
  readonly assets: Assets;
  /** PEM; plain HTTP without it. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Names under which a proxy in front of it is known. */
  readonly hosts?: readonly string[];
  /** Short words that stand for a sign-in. */
  readonly codes?: ReadonlyMap<string, string>;
  /** What to sign in with to record the past while no page is open. */
  readonly recordAs?: string;
  /** Cuts a cluster off or heals it; only a demo can. */
  readonly control?: (verb: 'break' | 'heal', cluster: string) => Promise<string>;
  readonly sessionsMax?: number;
}

export interface Dashboard {
  readonly url: string;
  readonly sessions: number;
  stop(): Promise<void>;
}

const headerBytesMax = 80_000;
const connectionBounds = { max: 500, perAddressMax: 250 };
/** A page that reads more slowly than this is told to start again. */
const unsentBytesMax = 16 * 1024 * 1024;

export function startDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { world, log, homes, listen, codes = new Map(), control, tls, sessionsMax } = options;
  const sessions = new Sessions({ world, log, homes, codes, isDemo: control !== undefined, sessionsMax });
  if (options.recordAs !== undefined) sessions.record(options.recordAs);
  const api = createApi({ control });
  const lines = new LogBudget(world.clock);
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    answer(options, { sessions, api }, request, response).catch((error: unknown) => {
      const more = lines.take();
      if (more !== undefined) log.warn('dashboard: a request failed', { error: errorText(error), ...more });
      reply(response, 500, { error: 'the dashboard failed on this request; its log has the reason' });
    });
  };
  const limits = {
    maxHeaderSize: headerBytesMax,
    requestTimeout: 20_000,
    headersTimeout: 10_000,
    connectionsCheckingInterval: 1000,
  };
  const server: Server =
    tls === undefined
      ? createServer(limits, handle)
      : createTlsServer({ ...limits, cert: tls.certificate, key: tls.key, minVersion: 'TLSv1.2' }, handle);
  boundConnections(server, connectionBounds);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        url: `${tls === undefined ? 'http' : 'https'}://${formatHostPort(listen.host, port)}`,
        get sessions() {
          return sessions.size;
        },
        stop: () => {
          sessions.stop();
          server.closeAllConnections();
          return new Promise((done) => server.close(() => done()));
        },
      });
    });
  });
}

interface Inside {
  readonly sessions: Sessions;
  readonly api: Api;
}

async function answer(
  options: DashboardOptions,
  { sessions, api }: Inside,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value);
  const refusal = refusalOf(options, request);
  if (refusal !== undefined) return reply(response, 403, { error: refusal });
  const url = URL.parse(request.url ?? '/', 'http://dashboard');
  if (url === null) return reply(response, 400, { error: 'the path cannot be read' });
  if (!url.pathname.startsWith('/api/')) return sendAsset(options.assets, url.pathname, request, response);
  const signIn = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (signIn === undefined) return reply(response, 401, { error: 'send a token as Authorization: Bearer' });
  const namespaces = (url.searchParams.get('namespaces') ?? '')
    .split(',')
    .filter((one) => /^[-a-z0-9]{1,63}$/.test(one));
  try {
    if (url.pathname === '/api/stream') return await stream(sessions, { signIn, namespaces }, request, response);
    const session = sessions.find(signIn, namespaces);
    const body = await api.answer({
      session,
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
    });
    reply(response, 200, body);
  } catch (error) {
    if (error instanceof Refused) return reply(response, error.status, { error: error.message });
    if (isQuestionError(error)) return reply(response, error.status, { error: error.message });
    throw error;
  }
}

function refusalOf({ listen, hosts = [], tls }: DashboardOptions, { headers }: IncomingMessage): string | undefined {
  const host = headers.host ?? '';
  const isNamed = hosts.some((name) => host === name || host.startsWith(`${name}:`));
  const isOwnOrigin = headers.origin === undefined || headers.origin === `https://${host}`;
  if ((isNamed || tls !== undefined) && isOwnOrigin) {
    const { origin: _origin, ...rest } = headers;
    return adminRefusal({ ...rest, host: isNamed ? listen.host : host }, listen.host);
  }
  return adminRefusal(headers, listen.host);
}

async function stream(
  sessions: Sessions,
  { signIn, namespaces }: { readonly signIn: string; readonly namespaces: readonly string[] },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const begin = () => {
    if (response.headersSent) return;
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
  };
  let isGone = false;
  const listener = {
    send: (line: string) => {
      begin();
      if (response.writableLength > unsentBytesMax) return void response.destroy();
      response.write(`${line}\n`);
    },
    end: (why: string) => {
      begin();
      response.end(`${JSON.stringify({ kind: 'end', why })}\n`);
    },
  };
  request.on('close', () => {
    isGone = true;
  });
  const address = request.socket.remoteAddress ?? '';
  const close = await sessions.open(signIn, namespaces, listener, address);
  if (isGone || response.destroyed) close();
  else response.on('close', close);
}

function sendAsset(assets: Assets, path: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') return reply(response, 405, { error: 'only GET' });
  // Every path that is no file is a view of the page.
  const isFile = /\.[a-z0-9]+$/.test(path);
  const asset = assets.get(path) ?? (isFile ? undefined : assets.get('/'));
  if (asset === undefined) return reply(response, 404, { error: 'there is no such file' });
  const isZipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  response.writeHead(200, {
    'content-type': asset.type,
    ...cacheHeader(path),
    vary: 'accept-encoding',
    ...(isZipped ? { 'content-encoding': 'gzip' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : isZipped ? asset.gzip() : asset.body);
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}
