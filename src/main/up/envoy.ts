// The Envoy that `portolan up` and the demo run beside a home: the discovery server, the Envoy's first configuration, and its
// process. A gateway is drained before it is stopped.

import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { errorText, type Log } from '../../base/log.ts';
import { parseHostPort } from '../../base/net/host-port.ts';
import { Parts } from '../../base/parts.ts';
import { createSystemLookUp } from '../../base/real/look-up.ts';
import { probeMutualTls } from '../../base/real/prober-mutual-tls.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep, type Timer, type World } from '../../base/world.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { drainGateway } from '../../cli/xds/drain.ts';
import { findClusterId } from '../../clusterset/explain/cluster-id.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import type { OutboundPorts } from '../../external/rules/redirects.ts';
import { argsOfRole } from '../../install/envoy-containers.ts';
import type { EnvoyRole } from '../../install/parts.ts';
import type { Client } from '../../kube/client/client.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { issueProxy, openAuthority, renewedCertificateMs } from '../../xds/identity/authority.ts';
import { envoyBootstrap } from '../../xds/identity/bootstrap.ts';
import { bootstrapFile, identityFile, identityText, lifeOf, renewAtMs } from '../../xds/identity/proxy-files.ts';
import { ingressPort } from '../../xds/ingress/generate.ts';
import { virtualPort } from '../../xds/virtual-listener.ts';
import { ownAddresses } from '../identity/own-names.ts';
import { startXdsAdmin } from '../xds/admin.ts';
import { startXdsRole } from '../xds/part.ts';

export interface UpEnvoyOptions {
  readonly world: World;
  readonly log: Log;
  readonly home: Client;
  readonly directory: string;
  /** Path of the program; looked for on PATH if empty. */
  readonly program: string;
  readonly role?: EnvoyRole;
  /** The only address that it listens on, beside those of peers' services; with it, nothing is redirected to it. */
  readonly boundTo?: string;
  /** Where an ingress listens. */
  readonly ingressPort?: number;
  /** Where a gateway listens; on all addresses if none is given. */
  readonly gateway?: { readonly port: number; readonly address: string | undefined };
  /** Where connections to external services arrive. */
  readonly outbound?: OutboundPorts;
  /** Plugins of external services; the built-in ones when absent. */
  readonly plugins?: Plugins;
  /** The Envoy ended by itself. */
  readonly onEnded?: (error: Error) => void;
}

export interface UpEnvoy {
  /** URL of the admin endpoint of its discovery server. */
  readonly admin: string;
  /** Resolves when it has taken its first configuration; rejects if it ends before. */
  whenConnected(): Promise<void>;
  stop(): Promise<void>;
}

const loopback = '127.0.0.1';
/** The name of a cluster that has joined nothing. */
const unjoinedCluster = 'local';
const lookMs = 50;
const retryMs = 60_000;

export async function startUpEnvoy(options: UpEnvoyOptions): Promise<UpEnvoy> {
  const { world, log, home, directory } = options;
  const program = options.program === '' ? await requireOnPath('envoy') : options.program;
  const cluster = (await findClusterId(home)) ?? unjoinedCluster;
  const parts = new Parts(log);
  const metrics = createPartMetrics('xds');
  const role = await startXdsRole({
    ...{ world, log, metrics, home, cluster, namespace: systemNamespace },
    listen: { host: loopback, port: 0 },
    hosts: [],
    // For gRPC clients of this machine.
    ...(options.role === 'ingress' || options.role === 'gateway'
      ? {}
      : { socket: { path: join(directory, 'xds.sock'), mode: 0o660 } }),
    ports: {
      virtual: virtualPort,
      ingress: options.ingressPort ?? ingressPort,
      ...(options.gateway && { gateway: options.gateway.port }),
      ...(options.outbound && { outbound: options.outbound }),
    },
    boundTo: options.boundTo,
    gatewayAddress: options.gateway?.address,
    lookUp: createSystemLookUp(),
    probeGateway: probeMutualTls,
    own: { ranges: [], hosts: ownAddresses() },
    plugins: options.plugins,
  });
  parts.add('xds', () => role.stop());
  const admin = await startXdsAdmin({ listen: { host: loopback, port: 0 }, metrics, role, cluster });
  parts.add('admin endpoint of xds', () => admin.close());
  const at = { world, home, namespace: systemNamespace, cluster };
  const authority = await openAuthority(at);
  const identity = { role: options.role ?? 'sidecar', cluster, name: 'up' } as const;
  const bootstrap = envoyBootstrap({
    ...{ identity, zone: '', region: '', variant: 'delta', isClustersetProxied: false },
    admin: { host: loopback, port: 0 },
    server: {
      ...{ kind: 'tls', host: loopback, port: role.port, authority: authority.certificate },
      identity: { file: resolve(directory, identityFile) },
    },
  });
  const renewal = await keepIdentity(options, () => issueProxy(at, authority, identity, renewedCertificateMs));
  parts.add('identity', () => renewal.stop());
  const file = join(directory, bootstrapFile);
  await world.disk.write(file, Buffer.from(JSON.stringify(bootstrap)), { mode: 0o600 });
  await role.whenSynced();
  const own = argsOfRole[identity.role];
  const adminFile = join(directory, 'admin-address');
  const ofAdmin = ['--admin-address-path', adminFile];
  const args = ['-c', file, '-l', 'warning', '--concurrency', '1', '--use-dynamic-base-id', ...ofAdmin, ...own];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  let ended: string | undefined;
  child.once('error', (error) => (ended = error.message));
  child.once('exit', (code, signal) => {
    ended = `it ended with ${code ?? signal}`;
    if (isStopping) return;
    log.warn('the Envoy beside this home has ended', { program, code, signal });
    options.onEnded?.(new Error(`${program}: ${ended}; start portolan up again`));
  });
  let isStopping = false;
  parts.add('envoy', async () => {
    isStopping = true;
    if (identity.role === 'gateway' && ended === undefined) await drain(options, adminFile);
    child.kill('SIGTERM');
  });
  return {
    admin: admin.url,
    whenConnected: async () => {
      while (role.service.proxies.connected === 0) {
        if (ended !== undefined)
          throw new Error(`${program}: ${ended} before it was configured; start it alone with -c ${file}`);
        await sleep(world.timers, lookMs);
      }
    },
    stop: () => parts.stop(),
  };
}

/** Connections that are open for longer end with it. */
const drainForMs = 15_000;

async function drain({ world, log }: UpEnvoyOptions, adminFile: string): Promise<void> {
  try {
    const written = await world.disk.read(adminFile);
    const admin = parseHostPort(
      Buffer.from(written ?? [])
        .toString('utf8')
        .trim(),
    );
    if (admin === undefined) return;
    const open = await drainGateway(world, { admin, forMs: drainForMs, isAddressShared: false });
    log.info('the gateway is out of use', { open });
  } catch (error) {
    log.warn('the gateway was not drained', { error: errorText(error) });
  }
}

/** Writes the certificate of the Envoy, and another one whenever two thirds of its life are over. */
async function keepIdentity(
  { world, log, directory }: UpEnvoyOptions,
  issue: () => Credentials,
): Promise<{ stop(): void }> {
  let timer: Timer | undefined;
  const write = async () => {
    const pair = issue();
    const inMs = renewAtMs(lifeOf(pair.certificate)) - world.clock.wallMs();
    timer = world.timers.after(inMs, () => {
      void write().catch((error: unknown) => {
        log.warn('the certificate of the Envoy was not renewed', { error: errorText(error) });
        timer = world.timers.after(retryMs, () => void write().catch(() => {}));
      });
    });
    await world.disk.write(join(directory, identityFile), Buffer.from(identityText(pair)), { mode: 0o600 });
  };
  await write();
  return { stop: () => timer?.cancel() };
}

async function requireOnPath(name: string): Promise<string> {
  const path = await findOnPath(name);
  if (path === undefined) throw new Error(`there is no ${name} on PATH; give its path, --envoy /path/to/envoy`);
  return path;
}

export async function findOnPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}
