// The inside of a worker thread: one DnsService with sockets of its own on the shared ports.

import { parentPort, workerData } from 'node:worker_threads';
import { createLog, type LogFields } from '../../base/log.ts';
import { collectGarbage } from '../../base/real/collect-garbage.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { Timer } from '../../base/world.ts';
import type { CatalogNews } from '../../catalog/names/name-table.ts';
import { DnsService } from '../chain/service.ts';
import { createTransport } from '../upstream/transport.ts';
import { type CloseOptions, holdSockets } from './open-sockets.ts';
import type { FromWorker, SocketFault, ToWorker, WorkerSetup } from './server-workers.ts';

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

const sockets = holdSockets({
  world,
  log,
  listen: setup.listen,
  responder: service.responder,
  tally: service.tally,
  config: setup.config,
  reusePort: true,
});

// News may come while the sockets are being opened: the first thing is to listen to it.
port.on('message', (message: ToWorker) => {
  if (message.kind === 'news') takeNews(message.news, (news) => service.take(news));
  else if (message.kind === 'records') takeNews(message.news, (news) => service.takeRecords(news));
  else if (message.kind === 'stubZones') service.stubZones.replace(message.zones);
  else if (message.kind === 'trust') service.trust.replace(message.trust);
  else if (message.kind === 'zones') service.changeZones(message.change);
  else if (message.kind === 'tls') sockets.setTls(message.material);
  else if (message.kind === 'open') void open();
  else void stop(message.how);
});

async function open(): Promise<void> {
  try {
    const { addresses, udpPort, tlsPort, httpsPort } = await sockets.open();
    send({ kind: 'listening', addresses, udpPort, tlsPort, httpsPort });
  } catch (error) {
    const { message, code, syscall, address, port: taken } = error as Error & SocketFault;
    send({ kind: 'failed', message, fault: { code, syscall, address, port: taken } });
    await stop();
  }
}

if (!setup.listen.takesOver) void open();

/** Blocks that another took the place of come one after the other while a list is read: once for all of them. */
const collectMs = 1000;
let collecting: Timer | undefined;

function takeNews(news: CatalogNews, take: (news: CatalogNews) => void): void {
  take(news);
  // An idle thread would not collect anything for hours, and memory is free only when no thread holds it.
  collecting?.cancel();
  collecting = world.timers.after(news.kind === 'no old copy' ? 0 : collectMs, collectGarbage);
}

async function stop(how?: CloseOptions): Promise<void> {
  collecting?.cancel();
  await sockets.close(how);
  exchange.close();
  port.close();
}
