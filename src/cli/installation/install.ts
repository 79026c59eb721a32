// `portolan install` and `portolan upgrade`: the definitions and the parts of `src/install` written to a cluster, after
// everything that can be checked beforehand has been checked. Objects of the last time that are not wanted any more go.

import { createHash } from 'node:crypto';
import { type Command, Option } from 'commander';
import { yaml } from '../../base/yaml.ts';
import { defaultZones, type StubKind, stubKinds, stubText } from '../../install/coredns/stub-blocks.ts';
import { defaultValues, partNames, type Values } from '../../install/values.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { definitionTexts, installDefinitions } from '../definitions.ts';
import { usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, parseTimeout, type WaitFlags } from '../wait.ts';
import { addHomeOptions, allDefinitions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { checkBefore } from './before.ts';
import { findOtherDns } from './cluster-dns.ts';
import { describe } from './describe.ts';
import { type InstallationPlan, joinedClusterId, objectsFor, planInstallation } from './plan.ts';
import { fillValues, readGiven, type ValueFlags } from './read-values.ts';
import { untilReady } from './ready.ts';
import { removeOurs } from './remove.ts';
import { runningLines } from './running.ts';

interface InstallFlags extends HomeFlags, ValueFlags, WaitFlags {
  readonly print?: boolean;
  readonly printValues?: boolean;
  readonly definitionsOnly?: boolean;
  readonly printStub?: StubKind;
}

export function addInstallCommand(program: Command, deps: ClusterSetDeps): void {
  for (const verb of ['install', 'upgrade'] as const) {
    const command = addValueOptions(program.command(verb).description(verbs[verb]))
      .option('--print-values', 'print all values with their defaults, to edit for --values')
      .option('--print', 'print definitions and objects for kubectl apply instead of writing them')
      .option('--definitions-only', 'only definitions, such as after helm upgrade, which leaves them as they are')
      .option('--rights-only', 'only definitions, accounts and rights, for parts that run outside this cluster')
      .addOption(
        new Option('--print-stub <for>', "print what the cluster's CoreDNS needs to ask portolan-dns").choices(
          stubKinds,
        ),
      )
      .addHelpText('after', examples);
    addWaitOptions(addHomeOptions(command), 'all parts are ready', 300).action(async (flags: InstallFlags) => {
      if (flags.print || flags.printValues || flags.printStub !== undefined) return printOnly(deps, flags);
      await withHome(deps, flags, async ({ client }) => {
        if (flags.definitionsOnly) return upgradeDefinitions(deps, client);
        const clusterId = await joinedClusterId(client);
        const plan = await planInstallation(deps, client, { flags, clusterId });
        await installParts(deps, client, plan);
        const { objects, values } = plan;
        if (flags.wait) await untilReady(deps, client, { objects, timeoutMs: parseTimeout(flags.timeout) });
        const next = 'portolan join makes this cluster a member of a clusterset';
        deps.print(
          `installed; ${clusterId === undefined ? next : `this cluster is ${clusterId}; see portolan status`}`,
        );
        if ((await findOtherDns(client)) !== undefined)
          deps.print('note: CoreDNS does not ask portolan-dns yet; portolan coredns shows the change that Pods need');
        const nowMs = deps.world.clock.wallMs();
        for (const line of await runningLines(client, { objects, image: values.image, nowMs })) deps.print(line);
      });
    });
  }
}

/** Needs no cluster. */
async function printOnly(deps: ClusterSetDeps, flags: InstallFlags): Promise<void> {
  const values = fillValues(await readGiven(deps, flags));
  if (flags.printValues) return deps.print(yaml().stringify(values).trimEnd());
  const objects = objectsFor(values);
  if (flags.printStub !== undefined) return deps.print(stubOf(values, flags.printStub));
  const definitions = await definitionTexts(deps.host, allDefinitions);
  for (const text of [...definitions, ...objects.map(({ object }) => yaml().stringify(object))])
    deps.print(`---\n${text.trimEnd()}`);
}

export function addValueOptions(command: Command): Command {
  return command
    .option('--values <file>', 'values in YAML, as for the Helm chart')
    .addOption(
      new Option('--set <path=value...>', 'single values, such as dns.clusterIP=10.96.0.20').default([], 'none'),
    );
}

function stubOf({ dns }: Values, kind: StubKind): string {
  if (dns.clusterIP === '')
    throw usageError('--print-stub: give the resolver a fixed address, such as --set dns.clusterIP=10.96.0.20');
  const request = { addresses: [dns.clusterIP], zones: defaultZones };
  return stubText(kind, request, (value) => yaml().stringify(value)).trimEnd();
}

/** Checks everything first, then writes what differs and prints it. */
export async function installParts(
  deps: ClusterSetDeps,
  client: Client,
  { objects, obsolete, record }: InstallationPlan,
): Promise<void> {
  const request = { objects: [...objects, record], obsolete, definitions: allDefinitions };
  for (const note of await checkBefore(deps, client, request)) deps.print(`note: ${note}`);
  await writeDefinitions(deps, client);
  for (const one of objects) await write(deps, client, withDigest(one));
  await removeOurs(deps, client, obsolete);
  await write(deps, client, record);
}

async function write(deps: ClusterSetDeps, client: Client, wanted: Manifest): Promise<void> {
  if (await isInstalled(client, wanted)) return;
  const { object, outcome } = await install(client, wanted);
  if (outcome !== 'unchanged') deps.print(`${outcome} ${describe(wanted.type, object.metadata)}`);
}

/** For installations by Helm, which leaves definitions as they are. */
async function upgradeDefinitions(deps: ClusterSetDeps, client: Client): Promise<void> {
  const request = { objects: [], obsolete: [], definitions: allDefinitions };
  for (const note of await checkBefore(deps, client, request)) deps.print(`note: ${note}`);
  await writeDefinitions(deps, client);
  deps.print('all definitions are up to date');
}

async function writeDefinitions(deps: ClusterSetDeps, client: Client): Promise<void> {
  for (const name of await installDefinitions({ client, ...deps, names: allDefinitions }))
    deps.print(`definition ${name}`);
}

/** An API server fills in defaults of Pods and ports, so that these never equal what was written: a digest tells instead. */
function withDigest(wanted: Manifest): Manifest {
  const { type, object } = wanted;
  if (type.group !== 'apps' && type !== serviceType) return wanted;
  const digest = createHash('sha256').update(JSON.stringify(object)).digest('hex');
  const annotations = { ...object.metadata.annotations, [digestAnnotation]: digest };
  return { type, object: { ...object, metadata: { ...object.metadata, annotations } } };
}

const digestAnnotation = 'portolan.dev/installed-digest';

async function isInstalled(client: Client, { type, object }: Manifest): Promise<boolean> {
  const digest = object.metadata.annotations?.[digestAnnotation];
  if (digest === undefined) return false;
  const present = await getOrUndefined(client, type, object.metadata);
  return present?.metadata.annotations?.[digestAnnotation] === digest;
}

function namesOf(isEnabled: boolean): string {
  return partNames.filter((name) => defaultValues[name].enabled === isEnabled).join(', ');
}

const examples = `
Parts: ${namesOf(true)}. Off unless you set PART.enabled=true: ${namesOf(false)}.
Values of the last time are kept: --set changes single ones, --values replaces all. The cluster keeps them in the
ConfigMap portolan-system/portolan-installation. Parts and rights that are no longer wanted are removed.
Definitions are kept when Portolan is uninstalled.
Examples:
  portolan install --wait
  portolan install --set dns.clusterIP=10.96.0.20
  portolan install --values values.yaml --print | kubectl apply -f -`;
