// A range of loopback addresses for this demo's virtual IPs that no other demo on the machine has.

import { createServer, type Server } from 'node:net';
import type { World } from '../../base/world.ts';

export interface DemoRange {
  /** Range of clusterset IPs: `127.100.0.0/17`. */
  readonly clusterSet: string;
  /** Range of addresses of peers' services. */
  readonly peers: string;
  readonly external: string;
  /** Where connections from outside reach the second company. */
  readonly ingress: string;
  release(): Promise<void>;
}

const first = 64;
const count = 190;
/** Held on the last address of the range while the demo runs. */
const lockPort = 10_243;

export async function takeRange({ random }: Pick<World, 'random'>): Promise<DemoRange> {
  const start = Math.floor(random.float() * count);
  for (let tries = 0; tries < count; tries += 1) {
    const part = first + ((start + tries) % count);
    const lock = await listen(`127.${part}.255.254`);
    if (lock === undefined) continue;
    return {
      clusterSet: `127.${part}.0.0/17`,
      peers: `127.${part}.128.0/18`,
      external: `127.${part}.192.0/19`,
      ingress: `127.${part}.255.1`,
      release: () => new Promise((done) => lock.close(() => done())),
    };
  }
  throw new Error('demo: no loopback range is free; stop another demo first');
}

function listen(host: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(lockPort, host, () => resolve(server));
  });
}
