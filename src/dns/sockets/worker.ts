// The inside of a worker thread: one DnsService with sockets of its own on the shared ports.

import { parentPort, workerData } from 'node:worker_threads';
import { createLog, type LogFields } from '../../base/log.ts';
import { collectGarbage } from '../../base/real/collect-garbage.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { Timer } from '../../base/world.ts';
import type { CatalogNews } from '../../catalog/names/name-table.ts';
import { DnsService } from '../chain/service.ts';
import { createTransport } from '../upstream/transport.ts';
import { type CloseOptions, openSockets } from './open-sockets.ts';
import type { FromWorker, ToWorker, WorkerSetup } from './server-workers.ts';

const setup = workerData as WorkerSetup;
const port = parentPort!;
const world = createRealWorld();
const send = (message: FromWorker) => port.postMessage(message);
const log = createLog({ clock: world.clock, level: 'warn', write: (line) => send({ kind: 'log', line }) });
const exchange = createTransport(world);
const writeLine = (fields: LogFields) => send({ kind: 'query', fields });
const service = new DnsService({ ...setup, world, log, exchange, writeLine });
// Start-up data is held for as long as the thread lives: only the reader has the old copy, and releases it.
Object.assign(setup.memory, { old: undefined });

// News may come while the sockets are being opened: the first thing is to listen to it.
port.on('message', (message: ToWorker) => {
  if (message.kind === 'news') takeNews(message.news);
  else if (message.kind === 'stubZones') service.stubZones.replace(message.zones);
  else if (message.kind === 'trust') service.trust.replace(message.trust);
  else if (message.kind === 'zones') service.changeZones(message.change);
  else if (message.kind === 'tls')
    void opening.then(
      (sockets) => sockets.setTls(message.material),
      () => {},
    );
  else void stop(message.how);
});

const opening = openSockets({
  world,
  log,
  listen: setup.listen,
  responder: service.responder,
  tally: service.tally,
  config: setup.config,
  reusePort: true,
});

opening.then(
  ({ addresses, udpPort, tlsPort }) => send({ kind: 'listening', addresses, udpPort, tlsPort }),
  (error: Error & { code?: string }) => {
    send({ kind: 'failed', message: error.message, code: error.code });
    void stop();
  },
);

/** Blocks that another took the place of come one after the other while a list is read: once for all of them. */
const collectMs = 1000;
let collecting: Timer | undefined;

function takeNews(news: CatalogNews): void {
  service.take(news);
  // An idle thread would not collect anything for hours, and memory is free only when no thread holds it.
  collecting?.cancel();
  collecting = world.timers.after(news.kind === 'no old copy' ? 0 : collectMs, collectGarbage);
}

async function stop(how?: CloseOptions): Promise<void> {
  collecting?.cancel();
  const sockets = await opening.catch(() => undefined);
  await sockets?.close(how);
  exchange.close();
  port.close();
}
