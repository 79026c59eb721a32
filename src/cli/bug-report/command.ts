// `portolan bug-report`: one archive over all clusters for whoever has to find out what is wrong. It holds no Secret, key or token:
// only listed fields of our kinds go in, texts are scrubbed, and it is searched for the credentials at hand before it is written.

import { gzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { version } from '../../base/version.ts';
import { findMembership } from '../../clusterset/explain/consult.ts';
import { allChecks } from '../../doctor/checks/index.ts';
import { diagnose } from '../../doctor/diagnosis.ts';
import { createClient } from '../../kube/client/client.ts';
import { findHome, type HomeAccess } from '../../kube/client/kubeconfig.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { readCluster } from '../health/read.ts';
import { verbs } from '../verbs.ts';
import { parseTimeout } from '../wait.ts';
import { addHomesOptions, type ClusterSetDeps, type HomesFlags, homesOf } from '../with-home.ts';
import { collectCluster } from './collect.ts';
import { holdsSecret, scrub } from './scrub.ts';
import { type ArchiveFile, tarOf } from './tar.ts';

interface BugReportFlags extends HomesFlags {
  readonly output?: string;
  readonly timeout: string;
}

export function addBugReportCommand(program: Command, deps: ClusterSetDeps): void {
  addHomesOptions(program.command('bug-report').description(verbs['bug-report']))
    .option('--output <file>', 'file to write (default: portolan-bug-report-TIME.tar.gz in this folder)')
    .option('--timeout <seconds>', 'time limit for each read of a cluster', '20')
    .addHelpText(
      'after',
      `
Left out: Secrets, ConfigMaps, Pods, keys, tokens, credentials of kubeconfigs, labels and annotations of others. Names of
services and namespaces, addresses and messages are in it: look through it before you give it away.
Exit code 8 if a cluster could not be read whole, 6 if none answers.
Examples:
  portolan bug-report
  portolan bug-report --kubeconfig broker.kubeconfig east.kubeconfig west.kubeconfig --output report.tar.gz`,
    )
    .action((flags: BugReportFlags) => writeReport(deps, flags));
}

interface Collected {
  readonly files: readonly ArchiveFile[];
  readonly secrets: readonly string[];
  readonly isReached: boolean;
}

async function writeReport(deps: ClusterSetDeps, flags: BugReportFlags): Promise<void> {
  const { world, host } = deps;
  const timeoutMs = parseTimeout(flags.timeout);
  const accesses = await Promise.all(homesOf(flags).map((home) => findHome({ host, clock: world.clock, ...home })));
  const clusters = await Promise.all(
    accesses.map((access, index) => collect(deps, access, { timeoutMs, folder: String(index + 1) })),
  );
  if (clusters.every(({ isReached }) => !isReached))
    throw new CommandError('unreachable', 'bug-report: no cluster answers; check the kubeconfigs and start the homes');
  const nowMs = world.clock.wallMs();
  const read = clusters.flatMap(({ files }) => files).map(({ path, text }) => ({ path, text: scrub(text) }));
  const files = [{ path: 'README.txt', text: readme(nowMs, read) }, ...read];
  const secrets = clusters.flatMap((one) => one.secrets);
  const found = files.find(({ text }) => holdsSecret(text, secrets));
  if (found !== undefined)
    throw new Error(
      `bug-report: ${found.path} holds a credential, so nothing was written; please report this as a bug`,
    );
  const path = flags.output ?? `portolan-bug-report-${formatTime(nowMs).replace(/[-:]/g, '')}.tar.gz`;
  await world.disk.write(path, gzipSync(tarOf(files, nowMs / 1000)), { mode: 0o600 });
  const isWhole = !files.some((file) => file.path.endsWith('/unread.txt')) && clusters.every((one) => one.isReached);
  deps.print(
    `${path}: ${files.length} files of ${clusters.length === 1 ? '1 cluster' : `${clusters.length} clusters`}`,
  );
  if (isWhole) return;
  deps.print('some things could not be read: see unread.txt and doctor.json of each cluster in it');
  deps.setExitCode(exitCodes.incomplete);
}

async function collect(
  { world }: ClusterSetDeps,
  access: HomeAccess,
  { timeoutMs, folder }: { readonly timeoutMs: number; readonly folder: string },
): Promise<Collected> {
  const http = world.network.http(access);
  const client = createClient(http, { world, userAgent: 'portolan-cli', requestTimeoutMs: timeoutMs });
  try {
    const facts = await readCluster({ world, access, timeoutMs });
    const diagnosis = diagnose([facts], allChecks);
    const isReached = 'value' in facts.health;
    const place = `${folder}-${facts.cluster.replace(/[^\w.-]+/g, '-')}`;
    const doctor = { path: `${place}/doctor.json`, text: `${JSON.stringify(diagnosis, null, 1)}\n` };
    const files = isReached ? await collectCluster(client, place) : [];
    const membership = isReached ? await findMembership(client).catch(() => undefined) : undefined;
    const secrets = [
      access.clientKey,
      await access.bearerToken?.().catch(() => undefined),
      (await access.clientCertificatePair?.().catch(() => undefined))?.key,
      membership?.token,
    ];
    return { files: [doctor, ...files], isReached, secrets: secrets.filter((one) => one !== undefined) };
  } finally {
    client.close();
  }
}

function readme(nowMs: number, files: readonly ArchiveFile[]): string {
  return [
    `Bug report of Portolan ${version}, written ${formatTime(nowMs)} on Node ${process.version}, ${process.platform} ${process.arch}`,
    '',
    'One folder for each cluster: doctor.json (findings and what could not be checked), objects/ (listed fields of the kinds that',
    'Portolan uses), home/ and parts/ (health, status and metrics), unread.txt (what could not be read).',
    'Left out: Secrets, ConfigMaps, Pods, keys, tokens, credentials, labels and annotations of others.',
    '',
    ...files.map(({ path }) => path),
    '',
  ].join('\n');
}
