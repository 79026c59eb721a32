// Real HTTP servers behind the demo's sample services. Each says who it is, so that a person sees where a request went.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Backend {
  readonly address: string;
  readonly port: number;
  stop(): Promise<void>;
}

export function startBackend({ address, says }: { readonly address: string; readonly says: string }): Promise<Backend> {
  const server: Server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/plain');
    response.end(`${says}\n`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, () => {
      const { port } = server.address() as AddressInfo;
      const stop = () =>
        new Promise<void>((done) => {
          server.close(() => done());
          server.closeAllConnections();
        });
      resolve({ address, port, stop });
    });
  });
}
