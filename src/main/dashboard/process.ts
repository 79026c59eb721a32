// The process of `portolan dashboard`: from flags to a page over several homes, and tokens for them.

import { usageError } from '../../cli/exit-codes.ts';
import { isLoopbackHost } from '../../cli/reachable.ts';
import type { DashboardFlags, DashboardTokenFlags } from '../../cli/roles/dashboard.ts';
import { parseListen } from '../../cli/roles/options.ts';
import { type ClusterSetDeps, type HomesFlags, homesOf, withHome } from '../../cli/with-home.ts';
import type { DashboardHome } from '../../dashboard/homes/home-watch.ts';
import { parseSignIn } from '../../dashboard/sign-in.ts';
import { issueViewerToken } from '../../dashboard/viewer.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { processLog, untilStopped, withParts } from '../process.ts';
import { runDashboard } from './part.ts';

export async function runDashboardProcess(flags: DashboardFlags, deps: ClusterSetDeps): Promise<void> {
  const { world } = deps;
  const listen = parseListen(flags.listen);
  const tls = await readTls(flags, deps);
  if (tls === undefined && !isLoopbackHost(listen.host))
    throw usageError(
      `--listen ${flags.listen}: tokens would cross the network in clear text; give --tls-certificate and --tls-key, or listen on 127.0.0.1 behind a proxy with TLS`,
    );
  const recordAs = flags.recordAs === undefined ? undefined : (await deps.host.readText(flags.recordAs))?.trim();
  if (flags.recordAs !== undefined && parseSignIn(recordAs ?? '') === undefined)
    throw usageError(`--record-as ${flags.recordAs}: expected a file with the output of portolan dashboard token`);
  const log = processLog(world, flags.logLevel);
  const homes = await findHomes(flags, deps);
  await withParts(log, async (parts) => {
    const dashboard = await runDashboard({
      world,
      log,
      listen,
      homes,
      hosts: flags.host,
      recordAs,
      ...(tls ? { tls } : {}),
    });
    parts.add('dashboard', () => dashboard.stop());
    const stopped = untilStopped(log, () => parts.stop());
    process.stdout.write(`ready ${dashboard.url}\nhomes ${homes.map(({ name }) => name).join(', ')}\n`);
    await stopped;
  });
}

/** `NAME=TOKEN` for each home, or the token alone of a single one. */
export async function issueTokens(flags: DashboardTokenFlags, deps: ClusterSetDeps): Promise<string> {
  const hours = Number(flags.hours);
  if (!(hours > 0 && hours <= 8760)) throw usageError(`--hours ${flags.hours}: expected a number from 1 to 8760`);
  const names = (await findHomes(flags, deps)).map(({ name }) => name);
  const tokens: string[] = [];
  for (const [index, home] of homesOf(flags).entries()) {
    const token = await withHome(deps, home, ({ client }) => issueViewerToken(client, hours * 3_600_000));
    tokens.push(names.length === 1 ? token : `${names[index]}=${token}`);
  }
  return tokens.join(' ');
}

async function findHomes(flags: HomesFlags, { host, world }: ClusterSetDeps): Promise<DashboardHome[]> {
  const accesses = await Promise.all(
    homesOf(flags).map(async (home) => ({ home, access: await findHome({ host, clock: world.clock, ...home }) })),
  );
  const counts = new Map<string, number>();
  return accesses.map(({ home, access }) => {
    const { server, otherServers, certificateAuthority, serverName, insecureSkipVerify, contextName } = access;
    const base = nameOf(contextName, home.kubeconfig);
    const count = (counts.get(base) ?? 0) + 1;
    counts.set(base, count);
    const name = count === 1 ? base : `${base}-${count}`;
    return { name, access: { server, otherServers, certificateAuthority, serverName, insecureSkipVerify } };
  });
}

/** Every embedded home calls its context the same: then the file has the better name. */
function nameOf(context: string, file: string | undefined): string {
  const plain = (text: string) => text.replace(/[^A-Za-z0-9.@-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'home';
  if (!context.endsWith('@portolan') || file === undefined) return plain(context);
  const parts = file.split('/');
  const own = (parts.at(-1) ?? '').replace(/\.(kubeconfig|yaml|yml|conf)$/, '');
  return plain(own === 'admin' ? (parts.at(-2) ?? own) : own);
}

async function readTls({ tlsCertificate, tlsKey }: DashboardFlags, { host }: ClusterSetDeps) {
  if (tlsCertificate === undefined && tlsKey === undefined) return undefined;
  if (tlsCertificate === undefined || tlsKey === undefined)
    throw usageError('--tls-certificate and --tls-key: give both');
  const [certificate, key] = await Promise.all([host.readText(tlsCertificate), host.readText(tlsKey)]);
  if (certificate === undefined) throw usageError(`--tls-certificate ${tlsCertificate}: there is no such file`);
  if (key === undefined) throw usageError(`--tls-key ${tlsKey}: there is no such file`);
  return { certificate, key };
}
