// Shared by the processes of both DNS servers, `portolan dns` and `portolan authority`: from a server that was started to an
// admin endpoint, `ready`, certificates that are renewed, and the end. A resolver is started again when its cluster has
// another id.

import { availableParallelism, hostname } from 'node:os';
import type { Log } from '../../base/log.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import { Parts } from '../../base/parts.ts';
import { followCertificateFiles } from '../../base/real/certificate-files.ts';
import { growFreely, stayCompact } from '../../base/real/collect-garbage.ts';
import { createRealHost } from '../../base/real/host.ts';
import { sleep, type World } from '../../base/world.ts';
import { findNamesCopy, type NamesCopy } from '../../catalog/copy/copy-keeper.ts';
import {
  type DnsServerFlags,
  listenOf,
  nameserversOf,
  numberIn,
  serverAddressesOf,
  tlsMaterialOf,
} from '../../cli/roles/dns-server-flags.ts';
import { parseListen } from '../../cli/roles/options.ts';
import type { TlsMaterial } from '../../dns/config/config.ts';
import type { DnsServer } from '../../dns/server.ts';
import type { FollowedClusterId } from '../identity/followed-cluster-id.ts';
import { nodeName, openRole, untilStopped, withParts } from '../process.ts';
import { startDnsAdmin } from './admin.ts';

/** The flags of a server, with those of a resolver that change while it runs. */
type ServedFlags = DnsServerFlags & { readonly clusterId?: string; readonly stubListen?: string };

export interface DnsServerRole<F extends ServedFlags> {
  readonly name: 'dns' | 'authority';
  start(flags: F, hands: Hands): Promise<Running>;
  /** The id of the cluster that it serves, where no flag gives it. */
  followId?(flags: F, hands: Omit<Hands, 'served'>): Promise<FollowedClusterId | undefined>;
}

/** A server that was started. */
export interface Running {
  readonly server: DnsServer;
  readonly admin: Omit<Parameters<typeof startDnsAdmin>[0], 'world' | 'listen' | 'server'>;
  /** Address of the endpoint for stub zones. */
  readonly stubAddress?: string | undefined;
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

export interface Hands {
  readonly world: World;
  readonly log: Log;
  readonly host: ReturnType<typeof createRealHost>;
  readonly parts: Parts;
  /** The certificate for DNS over TLS at present. */
  readonly served: { tls?: TlsMaterial | undefined };
}

/** As long as a query may wait for nameservers by default. */
const drainMs = 5000;
/** Default threads: more would seldom be busy, and each takes memory. */
const workersMax = 16;

export async function runDnsServer<F extends ServedFlags>(flags: F, role: DnsServerRole<F>): Promise<void> {
  parseListen(flags.adminListen, '--admin-listen');
  growFreely();
  const lameduckMs = 1000 * numberIn('--lameduck', flags.lameduck, { min: 0, max: 600 });
  const { world, log } = await openRole(role.name, flags.logLevel);
  const outer: Outer = { world, log, host: createRealHost(), isStopping: () => isStopping };
  let isStopping = false;
  await withParts(log, async (parts) => {
    const followed = await role.followId?.(flags, { ...outer, parts });
    let run = await startRun(withId(flags, followed?.current()), role, outer);
    // The last run, whichever that is then.
    parts.add('dns', () => run.parts.stop());
    let isReady = false;
    const sayReady = () => {
      if (!isReady && flags.takeOver) sayWhereItListens(run);
      if (!isReady) process.stdout.write('ready\n');
      isReady = true;
      stayCompact();
    };
    const failed = Promise.withResolvers<never>();
    const awaitServing = (started: Run<F>) =>
      started.whenServing().then(sayReady, (error: unknown) => {
        if (started === run && !isStopping) failed.reject(error);
      });
    let turn: Promise<void> = Promise.resolve();
    followed?.onChange((id) => {
      turn = turn.then(async () => {
        if (isStopping || run.flags.clusterId === id) return;
        log.info('the cluster has another id: serving it from now on', { id });
        await run.parts.stop();
        run = await startRun(withId(run.flags, id), role, outer);
        void awaitServing(run);
      });
      turn.catch(failed.reject);
    });
    const stopped = untilStopped(log, async (signal) => {
      isStopping = true;
      // Those who choose among several servers need a while to notice that this one is leaving.
      if (signal === 'SIGTERM') await sleep(world.timers, lameduckMs);
      await turn.catch(() => {});
      await run.server.close({ drainMs });
      await parts.stop();
    });
    if (flags.takeOver) process.stdout.write(`admin ${run.adminUrl}\n`);
    else sayWhereItListens(run);
    void awaitServing(run);
    await Promise.race([stopped, failed.promise]);
  });
}

interface Outer extends Omit<Hands, 'parts' | 'served'> {
  isStopping(): boolean;
}

/** One server: until its end, or until the cluster has another id. */
interface Run<F> extends Pick<Running, 'server' | 'stubAddress'> {
  /** Resolves when everything was read, and clients are answered from it. */
  whenServing(): Promise<void>;
  /** With the ports that it has taken. */
  readonly flags: F;
  readonly adminUrl: string;
  readonly parts: Parts;
}

async function startRun<F extends ServedFlags>(flags: F, role: DnsServerRole<F>, outer: Outer): Promise<Run<F>> {
  const { world, log } = outer;
  const parts = new Parts(log);
  const hands: Hands = { ...outer, parts, served: {} };
  try {
    const running = await role.start(flags, hands);
    parts.add('dns', () => running.stop());
    const { server, admin, stubAddress } = running;
    followTlsFiles(flags, hands, server);
    let isListening = !flags.takeOver;
    const notReady = () => {
      if (outer.isStopping()) return 'stopping';
      return admin.notReady() || (isListening ? '' : 'not listening yet');
    };
    const listen = parseListen(flags.adminListen, '--admin-listen');
    const endpoint = await startDnsAdmin({ ...admin, notReady, world, listen, server });
    parts.add('admin endpoint', () => endpoint.close());
    const whenServing = async () => {
      await running.whenSynced();
      if (isListening) return;
      await server.takeOver();
      isListening = true;
    };
    return {
      server,
      stubAddress,
      whenServing,
      adminUrl: endpoint.url,
      parts,
      flags: pinned(flags, running, endpoint.url),
    };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

/** Clients were given these ports. */
function pinned<F extends ServedFlags>(flags: F, { server, stubAddress }: Running, adminUrl: string): F {
  return {
    ...flags,
    listen: server.addresses.map(({ host, port }) => formatHostPort(host, port)),
    adminListen: new URL(adminUrl).host,
    ...(server.tlsPort === undefined ? {} : { tlsPort: String(server.tlsPort) }),
    ...(server.httpsPort === undefined ? {} : { httpsPort: String(server.httpsPort) }),
    ...(stubAddress === undefined ? {} : { stubListen: stubAddress }),
  };
}

function withId<F extends ServedFlags>(flags: F, clusterId: string | undefined): F {
  return clusterId === undefined ? flags : { ...flags, clusterId };
}

function followTlsFiles(flags: DnsServerFlags, { world, log, host, parts, served }: Hands, server: DnsServer): void {
  if (served.tls === undefined) return;
  const onChange = (next: TlsMaterial) => {
    served.tls = next;
    server.setTls(next);
  };
  const read = () => tlsMaterialOf(host, flags);
  parts.add('certificate files', followCertificateFiles({ world, log, first: served.tls, read, onChange }));
}

function sayWhereItListens({ server, stubAddress, adminUrl }: Run<unknown>): void {
  const { addresses } = server;
  const tlsHosts = addresses.filter(({ port }) => port === server.udpPort).map(({ host }) => host);
  const say = (text: string) => process.stdout.write(`${text}\n`);
  say(`admin ${adminUrl}`);
  if (server.tlsPort !== undefined)
    say(`tls ${tlsHosts.map((host) => formatHostPort(host, server.tlsPort!)).join(' ')}`);
  if (server.httpsPort !== undefined)
    say(`https ${tlsHosts.map((host) => formatHostPort(host, server.httpsPort!)).join(' ')}`);
  if (stubAddress !== undefined) say(`stub zones https://${stubAddress}`);
  say(`listening ${addresses.map(({ host, port }) => formatHostPort(host, port)).join(' ')}`);
}

/** What both servers are started with. */
export async function serverOptions(flags: DnsServerFlags, { world, log, host, served }: Hands) {
  const nameservers = await nameserversOf(host, '--forward', flags.forward);
  const listen = await listenOf(host, flags);
  served.tls = listen.tls?.material;
  return {
    world,
    log,
    listen,
    nameservers,
    serverAddresses: serverAddressesOf(flags),
    partId: hostname(),
    node: nodeName(),
    workers: flags.workers === undefined ? spareCores() : numberIn('--workers', flags.workers, { min: 0, max: 256 }),
    clients: flags.client.length === 0 ? undefined : flags.client,
  };
}

/** One stays for reading the home. */
function spareCores(): number {
  return Math.min(workersMax, availableParallelism() - 1);
}

/** `owner` is what the names of the copy belong to: those of another owner are not served. */
export async function namesCopyOf(
  flags: DnsServerFlags,
  owner: string,
  { world, log }: Pick<Hands, 'world' | 'log'>,
): Promise<NamesCopy | undefined> {
  const hours = numberIn('--state-max-age', flags.stateMaxAge, { min: 1, max: 100_000 });
  const { state: directory } = flags;
  if (directory === undefined) return undefined;
  return findNamesCopy({ world, log, directory, owner, maxAgeMs: hours * 3_600_000 });
}
