// `portolan xds renew`: keeps the certificate of a proxy good, with no other right than that certificate. The key never
// leaves the machine; the discovery server certifies the public half of a new one. Beside a gateway in a Pod it is the
// process that ends first, so it drains the gateway when it is told to end.

import { join } from 'node:path';
import type { Command } from 'commander';
import { errorText } from '../../base/log.ts';
import { sleep } from '../../base/world.ts';
import type { Credentials } from '../../base/x509/certificates.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { adminIn, grpcServerIn, serverIn } from '../../xds/identity/bootstrap.ts';
import {
  bootstrapFile,
  grpcFile,
  identityFile,
  identityText,
  lifeOf,
  parseIdentity,
  pemTexts,
  renewAtMs,
  renewalPath,
} from '../../xds/identity/proxy-files.ts';
import { usageError } from '../exit-codes.ts';
import type { CliDeps } from '../with-home.ts';
import { drainedText, drainGateway, drainMs } from './drain.ts';
import { requestCertificate } from './server-call.ts';

interface RenewFlags {
  readonly directory: string;
  readonly once?: boolean;
  readonly drain?: string;
}

const retryMs = 60_000;
/** A timer takes no longer delay than 24 days; looking often costs nothing. */
const lookMsMax = 3_600_000;
const identityMode = 0o600;

export function addRenewCommand(xds: Command, deps: CliDeps): void {
  xds
    .command('renew')
    .description('renew the certificate of a proxy whenever two thirds of its life are over')
    .requiredOption('--directory <path>', 'the folder that xds bootstrap --directory has written')
    .option('--once', 'look once, renew if it is due, and end: for a timer of systemd or cron')
    .option(
      '--drain <seconds>',
      'when told to end, take the gateway of that folder out of use first and wait this long at most for its connections',
    )
    .action((flags: RenewFlags) => (flags.once ? lookOnce(deps, flags.directory) : renewUntilTold(deps, flags)));
}

/** The first process of a container gets no signal that it does not ask for. */
async function renewUntilTold(deps: CliDeps, { directory, drain }: RenewFlags): Promise<void> {
  const forMs = drain === undefined ? undefined : drainMs(drain, '--drain');
  const told = deps.untilTold?.();
  if (told === undefined) return keepGood(deps, directory);
  const ending = new AbortController();
  void keepGood(deps, directory, ending.signal);
  await told;
  ending.abort();
  if (forMs === undefined) return;
  const path = join(directory, bootstrapFile);
  const admin = adminIn(await readText(deps, path));
  if (admin === undefined) throw new Error(`xds renew: ${path} names no admin endpoint`);
  deps.print(drainedText(await drainGateway(deps.world, { admin, forMs, isAddressShared: true })));
}

async function lookOnce(deps: CliDeps, directory: string): Promise<void> {
  const dueMs = await renewIfDue(deps, directory);
  deps.print(`next renewal ${formatTime(dueMs)}`);
}

async function keepGood(deps: CliDeps, directory: string, signal?: AbortSignal): Promise<void> {
  const { world } = deps;
  while (!signal?.aborted) {
    const waitMs = await renewIfDue(deps, directory).then(
      (dueMs) => Math.min(lookMsMax, Math.max(1, dueMs - world.clock.wallMs())),
      (error: unknown) => {
        deps.warn?.(errorText(error));
        return retryMs;
      },
    );
    await sleep(world.timers, waitMs, signal).catch(() => {});
  }
}

/** When the next renewal is due. */
async function renewIfDue(deps: CliDeps, directory: string): Promise<number> {
  const { world, print } = deps;
  const present = await readIdentity(deps, directory);
  const nowMs = world.clock.wallMs();
  const life = lifeOf(present.certificate);
  if (nowMs < renewAtMs(life)) return renewAtMs(life);
  if (nowMs >= life.endMs)
    throw new Error(
      `xds renew: the certificate in ${directory} expired ${formatTime(life.endMs)}; run portolan xds bootstrap --directory again`,
    );
  const next = await renew(deps, directory, present);
  const isGrpc = (await world.disk.read(join(directory, grpcFile))) !== undefined;
  for (const { file, text } of [...(isGrpc ? pemTexts(next) : []), { file: identityFile, text: identityText(next) }])
    await world.disk.write(join(directory, file), Buffer.from(text), { mode: identityMode });
  const { endMs } = lifeOf(next.certificate);
  print(`renewed ${join(directory, identityFile)}: valid until ${formatTime(endMs)}`);
  return renewAtMs(lifeOf(next.certificate));
}

async function readIdentity(deps: CliDeps, directory: string): Promise<Credentials> {
  const identity = parseIdentity(await readText(deps, join(directory, identityFile)));
  if (identity === undefined)
    throw usageError(`xds renew: ${join(directory, identityFile)} holds no certificate; run portolan xds bootstrap`);
  return identity;
}

async function readText({ world }: CliDeps, path: string): Promise<string> {
  const bytes = await world.disk.read(path);
  if (bytes === undefined) throw usageError(`xds renew: there is no ${path}; write it with portolan xds bootstrap`);
  return Buffer.from(bytes).toString('utf8');
}

async function readServer(
  deps: CliDeps,
  directory: string,
): Promise<{ readonly address: string; readonly authority: string }> {
  const grpc = await deps.world.disk.read(join(directory, grpcFile));
  if (grpc !== undefined) {
    const found = grpcServerIn(Buffer.from(grpc).toString('utf8'));
    if (found !== undefined) return { address: found.address, authority: await readText(deps, found.rootsFile) };
  }
  const path = join(directory, grpc === undefined ? bootstrapFile : grpcFile);
  const server = grpc === undefined ? serverIn(await readText(deps, path)) : undefined;
  if (server === undefined) throw usageError(`xds renew: ${path} names no xDS server with TLS`);
  return server;
}

async function renew(deps: CliDeps, directory: string, present: Credentials): Promise<Credentials> {
  const server = await readServer(deps, directory);
  return requestCertificate(deps, {
    ...{ command: 'xds renew', failure: 'did not renew the certificate', path: renewalPath },
    ...{ server, proof: present },
  });
}
