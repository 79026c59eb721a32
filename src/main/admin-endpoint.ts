// The admin endpoint of a role: metrics for Prometheus, and whether it lives and works, for who restarts it. Plain HTTP,
// meant for loopback.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from '../base/metrics.ts';

export interface AdminEndpointOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics: Metrics;
  /** Empty while the role works; else why it does not. */
  readonly notReady: () => string;
  /** What the role knows, for `GET /status` in JSON. */
  readonly status: () => unknown;
}

export interface AdminEndpoint {
  readonly url: string;
  close(): Promise<void>;
}

export function startAdminEndpoint(options: AdminEndpointOptions): Promise<AdminEndpoint> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (request.method !== 'GET') return answer(response, 405, 'only GET\n');
    respond(options, path, response).catch((error: unknown) => answer(response, 500, `${error}\n`));
  });
  server.requestTimeout = 10_000;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.listen.port, options.listen.host, () => {
      const { address, family, port } = server.address() as AddressInfo;
      resolve({
        url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
        close: () => {
          server.closeAllConnections();
          return new Promise((done) => server.close(() => done()));
        },
      });
    });
  });
}

async function respond(options: AdminEndpointOptions, path: string, response: ServerResponse): Promise<void> {
  if (path === '/livez') return answer(response, 200, 'ok\n');
  if (path === '/readyz') {
    const why = options.notReady();
    return why === '' ? answer(response, 200, 'ok\n') : answer(response, 503, `${why}\n`);
  }
  if (path === '/status') return answer(response, 200, `${JSON.stringify(options.status())}\n`, 'application/json');
  if (path !== '/metrics') return answer(response, 404, 'there are /livez, /readyz, /status and /metrics\n');
  answer(response, 200, await options.metrics.text(), options.metrics.contentType);
}

function answer(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, { 'content-type': type }).end(text);
}
