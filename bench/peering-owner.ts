// The owner's half of the peering benchmark, a process of its own: a catalog made up in memory, served over mutual TLS.

import { X509Certificate } from 'node:crypto';
import { serveGrpc } from '../src/base/grpc/transport-server.ts';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import type { Service } from '../src/kube/objects/service.ts';
import type { PeerExport } from '../src/peering/kinds/peer-export.ts';
import { Owner } from '../src/peering/owner/owner.ts';
import { OwnerCatalog } from '../src/peering/owner/owner-catalog.ts';
import { judgeCertificate } from '../src/peering/trust/trust.ts';

export type Order =
  | {
      readonly kind: 'start';
      readonly certificate: string;
      readonly key: string;
      readonly roots: Record<string, string>;
    }
  | { readonly kind: 'fill'; readonly services: number; readonly window: number; readonly peers: string[] }
  | { readonly kind: 'burst'; readonly updates: number; readonly services: number }
  | { readonly kind: 'single'; readonly updates: number; readonly peer: string };

const { clock, timers, random } = createRealWorld();
const idle = new Set<() => void>();
let window = 1024;
let revision = 0;

const catalog = new OwnerCatalog({
  mesh: { trustDomain: 'owner.example', domain: 'owner.example', ingress: [{ address: '192.0.2.1', port: 15443 }] },
  onChanged: (peer, id) => owner.changed(peer, id),
});
const owner: Owner = new Owner({
  clock,
  timers,
  random,
  log: silentLog,
  catalog,
  peer: (name) => ({ name, epoch: 'bench', window, versions: ['v1alpha1', 'v1alpha2'] }),
  hasSynced: () => true,
  revision: () => revision,
  observer: {
    changed: () => {
      for (const done of idle) done();
    },
  },
});

function put(name: string, description: string): void {
  revision += 1;
  const annotations = { 'portolan.dev/description': description, 'portolan.dev/tags': 'bench,shop' };
  const metadata = { name, namespace: 'shop', annotations, resourceVersion: String(revision) };
  const spec = { ports: [{ port: 80, appProtocol: 'http' }] };
  catalog.setService('shop', name, { apiVersion: 'v1', kind: 'Service', metadata, spec } as Service);
}

let filled = 0;

async function obey(order: Order): Promise<unknown> {
  if (order.kind === 'start') return start(order);
  if (order.kind === 'fill') return fill(order);
  if (order.kind === 'burst') return burst(order);
  return single(order);
}

async function start({ certificate, key, roots }: Extract<Order, { kind: 'start' }>): Promise<number> {
  const trusted = Object.entries(roots).map(([domain, pem]) => ({
    peer: domain.split('.')[0] as string,
    domain,
    identities: [],
    roots: [new X509Certificate(pem)],
  }));
  const server = await serveGrpc({
    ...{ host: '127.0.0.1', port: 0, tls: { certificate, key }, log: silentLog },
    judge: (presented) => judgeCertificate(presented, trusted, clock.wallMs()),
    callerKey: ({ peer }) => peer,
    accept: (call) => owner.accept(call),
    messageBytesMax: 65_536,
    keepAliveMs: 10_000,
  });
  return server.port;
}

function fill(order: Extract<Order, { kind: 'fill' }>): void {
  window = order.window;
  revision += 1;
  for (let n = order.services; n < filled; n += 1) catalog.setService('shop', `s${n}`, undefined);
  const metadata = { name: 'all', namespace: 'shop', uid: 'u', generation: revision };
  const spec = { serviceSelector: {}, peers: order.peers };
  catalog.setExport('shop', 'all', { apiVersion: '', kind: '', metadata, spec } as PeerExport);
  for (let n = 0; n < order.services; n += 1) put(`s${n}`, 'a service of the benchmark');
  filled = order.services;
}

/** Twenty changes of each service, as fast as they come; a tick in between lets the streams work. */
async function burst({ updates, services }: Extract<Order, { kind: 'burst' }>): Promise<void> {
  for (let n = 0; n < updates; n += 1) {
    put(`s${n % services}`, `update ${n}`);
    if (n % 100 === 99) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** From the change at the owner to its acknowledgement, which is after it was stored. */
async function single({ updates, peer }: Extract<Order, { kind: 'single' }>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < updates; n += 1) {
    const startMs = performance.now();
    const acknowledged = new Promise<void>((resolve) => {
      const look = () => {
        if (owner.report(peer)?.state !== 'waiting') return;
        idle.delete(look);
        resolve();
      };
      put(`s${n % 100}`, `single ${n}`);
      // The change itself is looked at in the next microtask.
      queueMicrotask(() => queueMicrotask(() => idle.add(look)));
    });
    await acknowledged;
    times.push(performance.now() - startMs);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return times;
}

process.on('message', (order: Order) => {
  obey(order).then((result) => process.send?.({ result }));
});
process.on('disconnect', () => process.exit(0));
