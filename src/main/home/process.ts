// The process of `portolan api`: from flags to a running home, and its end.

import { errorText } from '../../base/log.ts';
import { type IpRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { createRealHost } from '../../base/real/host.ts';
import type { World } from '../../base/world.ts';
import { brokerInit } from '../../cli/clusterset/broker-init.ts';
import { usageError } from '../../cli/exit-codes.ts';
import type { ApiFlags } from '../../cli/roles/api.ts';
import { parseAdvertise, parseListen } from '../../cli/roles/options.ts';
import { clusterSetNameProblem } from '../../clusterset/rules/broker-layout.ts';
import { createClient } from '../../kube/client/client.ts';
import { openRole, untilStopped } from '../process.ts';
import { readSnapshotKey } from '../snapshot/key-file.ts';
import { etcdOptionsOf, replicasOf } from './etcd-options.ts';
import { type Home, startHome } from './part.ts';

export async function runApi(flags: ApiFlags): Promise<void> {
  const advertise = flags.advertise === undefined ? undefined : parseAdvertise(flags.advertise);
  const listen = parseListen(flags.listen ?? (advertise === undefined ? '127.0.0.1:6443' : '0.0.0.0:6443'));
  const seconds = Number(flags.keepHistory);
  if (!(seconds > 0)) throw usageError(`--keep-history ${flags.keepHistory}: expected a number of seconds above 0`);
  const wrong = flags.clusterset === undefined ? undefined : clusterSetNameProblem(flags.clusterset);
  if (wrong !== undefined) throw usageError(`--clusterset ${JSON.stringify(flags.clusterset)}: ${wrong}`);
  if (flags.auditRequired === true && flags.audit === undefined)
    throw usageError('--audit-required: give the file of the audit log with --audit');
  const partRanges = flags.partsIn.map(checkedRange);
  const { world, log } = await openRole('api', flags.logLevel);
  const home = await startHome({
    world,
    log,
    directory: flags.data,
    listen,
    ...(flags.name === undefined ? {} : { name: flags.name }),
    ...(advertise === undefined ? {} : { advertise }),
    extraHosts: flags.san.map(checkedHost),
    serviceRanges: flags.serviceCidr.split(','),
    historyMs: seconds * 1000,
    audit: flags.audit === undefined ? undefined : { path: flags.audit, isRequired: flags.auditRequired === true },
    partRanges,
    snapshots: flags.snapshots,
    snapshotKey: await readSnapshotKey(createRealHost(), flags.snapshotKeyFile, '--snapshot-key-file'),
    replicas: replicasOf(flags),
    etcd: await etcdOptionsOf(createRealHost(), flags),
    // What is in memory may be old: nothing more is answered from it. Whoever restarts the process makes it wait its turn.
    onStoreLost: (error) => {
      log.error('the store is lost: ending', { error: errorText(error) });
      setTimeout(() => process.exit(1), 100);
    },
  });
  const stopped = untilStopped(log, () => home.stop());
  if (flags.clusterset !== undefined) await createClusterSet({ world, home, clusterset: flags.clusterset });
  process.stdout.write(`ready ${home.server}\nkubeconfig ${home.kubeconfig}\n`);
  await stopped;
}

/** The same as `portolan broker init`; an existing clusterset keeps its settings. */
async function createClusterSet({ world, home, clusterset }: { world: World; home: Home; clusterset: string }) {
  const client = createClient(home.transport, { world, userAgent: 'portolan-api' });
  try {
    await brokerInit({ client, deps: { world, host: createRealHost() }, clusterset, spec: {} });
  } catch (error) {
    await home.stop();
    throw error;
  }
}

const dnsName = /^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9]([-a-z0-9]*[a-z0-9])?$/i;

function checkedRange(text: string): IpRange {
  const range = parseRange(text);
  if (range === undefined) throw usageError(`--parts-in ${text}: want an address or a range such as 10.0.0.0/24`);
  return range;
}

function checkedHost(text: string): string {
  if (parseIp(text) !== undefined || (text.length <= 253 && dnsName.test(text))) return text;
  throw usageError(`--san ${JSON.stringify(text)}: neither an IP address nor a DNS name`);
}
