// `portolan xds bootstrap`: the configuration that a proxy starts with, certificates included.

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Credentials } from '../../base/x509/certificates.ts';
import { requireClusterId } from '../../clusterset/explain/cluster-id.ts';
import type { Client } from '../../kube/client/client.ts';
import { systemNamespace, xdsNamespace } from '../../kube/objects/ours.ts';
import { issueProxy, openAuthority, renewedCertificateMs } from '../../xds/identity/authority.ts';
import {
  type BootstrapOptions,
  envoyBootstrap,
  grpcBootstrap,
  type ServerAddress,
} from '../../xds/identity/bootstrap.ts';
import {
  bootstrapFile,
  grpcFile,
  identityFile,
  identityText,
  pemTexts,
  rootsText,
} from '../../xds/identity/proxy-files.ts';
import {
  formatNodeId,
  identityIn,
  type ProxyIdentity,
  type ProxyRole,
  parseNodeId,
  proxyRoles,
} from '../../xds/identity/proxy-identity.ts';
import { issuancePath } from '../../xds/identity/proxy-token.ts';
import { usageError } from '../exit-codes.ts';
import { parseAccount, parseListen } from '../roles/options.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, withHome } from '../with-home.ts';
import { requestCertificate } from './server-call.ts';

interface BootstrapFlags extends HomeFlags {
  readonly role: string;
  readonly name: string;
  readonly workload?: string;
  readonly clusterId?: string;
  readonly namespace: string;
  readonly server: string;
  readonly socket?: string;
  readonly zone: string;
  readonly region: string;
  readonly variant: string;
  readonly admin: string;
  readonly clustersetProxied?: boolean;
  readonly directory?: string;
  readonly tokenFile?: string;
  readonly authorityFile?: string;
}

export function addBootstrapCommand(xds: Command, deps: CliDeps): void {
  addHomeOptions(
    xds
      .command('bootstrap')
      .description('print the configuration that a proxy starts with: envoy -c FILE, or GRPC_XDS_BOOTSTRAP=FILE')
      .requiredOption('--role <role>', `one of ${proxyRoles.join(', ')}`)
      .requiredOption('--name <name>', 'distinguishes the proxy from others of its role'),
  )
    .option(
      '--workload <namespace/account>',
      'for role sidecar: the ServiceAccount in whose name it calls peers (default: its own name)',
    )
    .option('--cluster-id <id>', 'the cluster it runs in (default: the id that the cluster joined with)')
    .option(
      '--namespace <name>',
      `namespace of the Secret with the certificate authority; ${xdsNamespace} where portolan install runs xds`,
      systemNamespace,
    )
    .option('--server <host:port>', 'address of the xDS server, for the proxy', '127.0.0.1:15010')
    .option('--socket <path>', 'unix socket of the xDS server on this machine, instead of --server: for role grpc')
    .option('--zone <zone>', 'the zone it runs in', '')
    .option('--region <region>', 'the region it runs in', '')
    .option('--variant <variant>', 'variant of xDS: delta, or sotw (state of the world)', 'delta')
    .option('--admin <host:port>', "Envoy's own admin endpoint", '127.0.0.1:15000')
    .option(
      '--directory <path>',
      'write envoy.json (grpc.json) and the certificate there instead of printing; xds renew keeps it good',
    )
    .option('--clusterset-proxied', 'the sidecar proxies connections to clusterset IPs')
    .option(
      '--token-file <path>',
      'a ServiceAccount token for the audience portolan-xds: the xDS server issues the certificate, and no home is asked',
    )
    .option('--authority-file <path>', 'the roots of the xDS server in PEM, with --token-file')
    .action((flags: BootstrapFlags) =>
      flags.tokenFile === undefined
        ? withHome(deps, flags, ({ client }) => bootstrap(deps, client, flags))
        : bootstrapByToken(deps, flags, flags.tokenFile),
    );
}

/** The server says who the bearer of the token is. */
async function bootstrapByToken(deps: CliDeps, flags: BootstrapFlags, tokenFile: string): Promise<void> {
  const { directory, authorityFile } = flags;
  if (flags.workload !== undefined) throw usageError('--workload: the token says whose it is; leave it out');
  if (directory === undefined || authorityFile === undefined)
    throw usageError('--token-file: give --directory and --authority-file, too');
  const { host, port } = parseListen(flags.server, '--server');
  const authority = await readText(deps, authorityFile);
  const address = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const pair = await requestCertificate(deps, {
    ...{ command: 'xds bootstrap', failure: 'issued no certificate', path: issuancePath },
    server: { address, authority },
    proof: { token: (await readText(deps, tokenFile)).trim() },
  });
  const identity = identityIn(new X509Certificate(pair.certificate));
  if (identity?.role !== flags.role || identity.name !== flags.name) {
    const whose = identity === undefined ? 'no proxy' : formatNodeId(identity);
    throw usageError(`--token-file: the token is that of ${whose}, not of role ${flags.role} and name ${flags.name}`);
  }
  const written = await writeIdentity(deps, directory, { pair, identity, roots: authority });
  await writeBootstrap(deps, flags, identity, { kind: 'tls', host, port, authority, identity: written });
}

async function readText({ world }: CliDeps, path: string): Promise<string> {
  const bytes = await world.disk.read(path);
  if (bytes === undefined) throw usageError(`${path}: there is no such file`);
  return Buffer.from(bytes).toString('utf8');
}

async function bootstrap(deps: CliDeps, home: Client, flags: BootstrapFlags): Promise<void> {
  const cluster = flags.clusterId ?? (await requireClusterId(home));
  const identity: ProxyIdentity = { role: flags.role as ProxyRole, cluster, name: flags.name, ...workloadOf(flags) };
  if (parseNodeId(formatNodeId(identity)) === undefined)
    throw usageError(
      `--role ${flags.role} --name ${flags.name}: roles are ${proxyRoles.join(', ')}; a name has letters, digits, "-", "_" and "."`,
    );
  if (flags.directory !== undefined && flags.socket !== undefined)
    throw usageError('--directory: a client of the local socket has no certificate; leave one of both out');
  const server =
    flags.socket === undefined ? await tlsServer(deps, home, flags, identity) : socketServer(flags.socket, identity);
  await writeBootstrap(deps, flags, identity, server);
}

function workloadOf({ role, workload }: BootstrapFlags): Pick<ProxyIdentity, 'workload'> {
  if (workload === undefined) return {};
  if (role !== 'sidecar') throw usageError(`--workload: it is for role sidecar, this is ${role}`);
  return { workload: parseAccount(workload, '--workload') };
}

async function writeBootstrap(
  deps: CliDeps,
  flags: BootstrapFlags,
  identity: ProxyIdentity,
  server: ServerAddress,
): Promise<void> {
  const { variant } = flags;
  if (variant !== 'delta' && variant !== 'sotw') throw usageError(`--variant ${variant}: there are delta and sotw`);
  if (identity.role === 'gateway' && variant !== 'delta')
    throw usageError('--variant sotw: a gateway takes the services one by one, which needs delta');
  const { zone, region } = flags;
  const admin = parseListen(flags.admin, '--admin');
  const isClustersetProxied = flags.clustersetProxied === true;
  const options: BootstrapOptions = { identity, server, variant, zone, region, admin, isClustersetProxied };
  const made = identity.role === 'grpc' ? grpcBootstrap(options) : envoyBootstrap(options);
  const text = JSON.stringify(made, undefined, 2);
  if (flags.directory === undefined) return deps.print(text);
  const isGrpc = identity.role === 'grpc';
  const path = join(flags.directory, isGrpc ? grpcFile : bootstrapFile);
  await deps.world.disk.write(path, Buffer.from(`${text}\n`), { mode: 0o600 });
  deps.print(
    `written ${path}: start ${isGrpc ? `the client with GRPC_XDS_BOOTSTRAP=${path}` : `envoy -c ${path}`}, and portolan xds renew --directory ${flags.directory} beside it`,
  );
}

function socketServer(path: string, { role }: ProxyIdentity): ServerAddress {
  if (role !== 'grpc')
    throw usageError(`--socket: it is for role grpc; a proxy of role ${role} connects by mutual TLS, give --server`);
  return { kind: 'socket', path };
}

async function tlsServer(
  deps: CliDeps,
  home: Client,
  flags: BootstrapFlags,
  identity: ProxyIdentity,
): Promise<ServerAddress> {
  if (identity.role === 'grpc' && flags.directory === undefined)
    throw usageError(
      '--role grpc: give --socket for a server on this machine, or --directory and --server: over TLS the certificate lies in files',
    );
  const { host, port } = parseListen(flags.server, '--server');
  const { world } = deps;
  const options = { world, home, namespace: flags.namespace, cluster: identity.cluster };
  const authority = await openAuthority(options);
  const server = { kind: 'tls', host, port, authority: authority.certificate } as const;
  if (flags.directory === undefined) return { ...server, identity: issueProxy(options, authority, identity) };
  const pair = issueProxy(options, authority, identity, renewedCertificateMs);
  return {
    ...server,
    identity: await writeIdentity(deps, flags.directory, { pair, identity, roots: server.authority }),
  };
}

interface IssuedIdentity {
  readonly pair: Credentials;
  readonly identity: ProxyIdentity;
  readonly roots: string;
}

async function writeIdentity(
  { world }: CliDeps,
  directory: string,
  { pair, identity, roots }: IssuedIdentity,
): Promise<{ readonly file: string }> {
  const pem = identity.role === 'grpc' ? [...pemTexts(pair), rootsText(roots)] : [];
  for (const { file, text } of [...pem, { file: identityFile, text: identityText(pair) }])
    await world.disk.write(join(directory, file), Buffer.from(text), { mode: 0o600 });
  return { file: resolve(directory, identityFile) };
}
