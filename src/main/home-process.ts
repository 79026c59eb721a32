// The processes of `portolan api` and `portolan up`: from flags to a running home, and its end.

import { resolve } from 'node:path';
import { parseIp } from '../base/ip.ts';
import { Parts } from '../base/parts.ts';
import { createRealWorld } from '../base/real/world.ts';
import { usageError } from '../cli/exit-codes.ts';
import type { ApiFlags, RotationStep } from '../cli/roles/api.ts';
import { parseListen } from '../cli/roles/options.ts';
import type { UpFlags } from '../cli/roles/up.ts';
import { rotateAuthority } from '../home/security/authority.ts';
import { createClient } from '../kube/client/client.ts';
import { startHome } from './home.ts';
import { portolanPath, processLog, untilStopped } from './process.ts';

export async function runApi(flags: ApiFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const seconds = Number(flags.keepHistory);
  if (!(seconds > 0)) throw usageError(`--keep-history ${flags.keepHistory}: expected a number of seconds above 0`);
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const home = await startHome({
    world,
    log,
    directory: flags.data,
    listen,
    extraHosts: flags.san.map(checkedHost),
    serviceRanges: flags.serviceCidr.split(','),
    historyMs: seconds * 1000,
    auditFile: flags.audit,
  });
  const stopped = untilStopped(log, () => home.stop());
  process.stdout.write(`ready ${home.server}\nkubeconfig ${home.kubeconfig}\n`);
  await stopped;
}

const dnsName = /^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9]([-a-z0-9]*[a-z0-9])?$/i;

function checkedHost(text: string): string {
  if (parseIp(text) !== undefined || (text.length <= 253 && dnsName.test(text))) return text;
  throw usageError(`--san ${JSON.stringify(text)}: neither an IP address nor a DNS name`);
}

const rotationNext = {
  begin: 'the new authority is trusted beside the old one; when all clients have both: portolan api rotate-ca switch',
  switch: 'certificates come from the new authority; when no client has an old one left: portolan api rotate-ca finish',
  finish: 'the old authority is no longer trusted',
};

export async function rotateCa(data: string, step: RotationStep): Promise<void> {
  const world = createRealWorld();
  await rotateAuthority({ world, directory: resolve(data), log: processLog(world, 'warn') }, step);
  process.stdout.write(`${rotationNext[step]}\n`);
}

export async function runUp(flags: UpFlags): Promise<void> {
  const listen = parseListen(flags.listen);
  const world = createRealWorld();
  const log = processLog(world, flags.logLevel);
  const directory = resolve(flags.data);
  const home = await startHome({ world, log, directory, listen });
  const parts = new Parts(log);
  parts.add('home', () => home.stop());
  const stopped = untilStopped(log, () => parts.stop());
  process.stdout.write(screen(home.server, home.kubeconfig));
  if (flags.envoy !== undefined) {
    const client = createClient(home.transport, { world, userAgent: 'portolan-up' });
    const program = flags.envoy === true ? '' : flags.envoy;
    const { startUpEnvoy } = await import('./up-envoy.ts');
    const envoy = await startUpEnvoy({ world, log, home: client, directory, program });
    parts.add('envoy', () => envoy.stop());
    await envoy.whenConnected();
    process.stdout.write(`Envoy runs beside it, configured by ${resolve(directory, 'envoy.json')}\n`);
  }
  await stopped;
}

function screen(server: string, kubeconfig: string): string {
  return `
Portolan: one cluster's home is ready at ${server}

In another terminal:
  export KUBECONFIG=${kubeconfig}
  kubectl get namespaces
  ${portolanPath()} register default/web --address 127.0.0.1 --port 8080 --check tcp
  kubectl get services,endpointslices
  kubectl explain serviceexport.status
  kubectl api-resources

Everything it knows is in the folder of that kubeconfig. Ctrl-C stops it; the facts stay.
`;
}
