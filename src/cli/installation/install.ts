// `portolan install` and `portolan upgrade`: the definitions and the parts of `src/install` written to a cluster, after
// everything that can be checked beforehand has been checked.

import { createHash } from 'node:crypto';
import { type Command, Option } from 'commander';
import { yaml } from '../../base/yaml.ts';
import { objectsOf } from '../../install/objects.ts';
import { defaultZones, type StubKind, stubKinds, stubText } from '../../install/stub-blocks.ts';
import { defaultValues, partNames, type Values, valueProblems } from '../../install/values.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { installDefinitions } from '../definitions.ts';
import { usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, parseTimeout, type WaitFlags } from '../wait.ts';
import { addHomeOptions, allDefinitions, type ClusterSetDeps, type HomeFlags, withHome } from '../with-home.ts';
import { checkBefore } from './before.ts';
import { readValues, type ValueFlags } from './read-values.ts';
import { untilReady } from './ready.ts';

interface InstallFlags extends HomeFlags, ValueFlags, WaitFlags {
  readonly print?: boolean;
  readonly printValues?: boolean;
  readonly rightsOnly?: boolean;
  readonly printStub?: StubKind;
}

export function addInstallCommand(program: Command, deps: ClusterSetDeps): void {
  for (const verb of ['install', 'upgrade'] as const) {
    const command = addValueOptions(program.command(verb).description(verbs[verb]))
      .option('--print-values', 'print all values with their defaults, to edit for --values')
      .option('--print', 'print the objects for kubectl apply instead of writing them')
      .option('--rights-only', 'only definitions, accounts and rights, for parts that run outside this cluster')
      .addOption(
        new Option('--print-stub <for>', "print what the cluster's CoreDNS needs to ask portolan-dns").choices(
          stubKinds,
        ),
      )
      .addHelpText('after', examples);
    addWaitOptions(addHomeOptions(command), 'all parts are ready', 300).action(async (flags: InstallFlags) => {
      const given = await readValues(deps, flags);
      if (flags.printValues) return deps.print(yaml().stringify(given).trimEnd());
      const values = flags.rightsOnly ? { ...given, rightsOnly: true } : given;
      const objects = objectsFor(values);
      if (flags.printStub !== undefined) return deps.print(stubOf(values, flags.printStub));
      if (flags.print) {
        for (const { object } of objects) deps.print(`---\n${yaml().stringify(object).trimEnd()}`);
        return;
      }
      await withHome(deps, flags, async ({ client }) => {
        await installParts(deps, client, objects);
        if (flags.wait) await untilReady(deps, client, { objects, timeoutMs: parseTimeout(flags.timeout) });
        deps.print('installed; portolan join makes this cluster a member of a clusterset');
      });
    });
  }
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

/** Refuses values that contradict each other. */
export function objectsFor(values: Values): Manifest[] {
  const problems = valueProblems(values);
  if (problems.length > 0) throw usageError(`values: ${problems.join('; ')}`);
  return objectsOf(values);
}

/** Checks everything first, then writes what differs and prints it. */
export async function installParts(deps: ClusterSetDeps, client: Client, objects: readonly Manifest[]): Promise<void> {
  for (const note of await checkBefore(deps, client, { objects, definitions: allDefinitions }))
    deps.print(`note: ${note}`);
  for (const name of await installDefinitions({ client, ...deps, names: allDefinitions }))
    deps.print(`definition ${name}`);
  for (const wanted of objects.map(withDigest)) {
    if (await isInstalled(client, wanted)) continue;
    const { object, outcome } = await install(client, wanted);
    if (outcome !== 'unchanged') deps.print(`${outcome} ${describe(wanted.type, object)}`);
  }
}

/** An API server fills in defaults of Pods, so that a workload never equals what was written: its digest tells instead. */
function withDigest(wanted: Manifest): Manifest {
  const { type, object } = wanted;
  if (type.group !== 'apps') return wanted;
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

export function describe({ kind }: ResourceType, { metadata }: KubernetesObject): string {
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
}

function namesOf(isEnabled: boolean): string {
  return partNames.filter((name) => defaultValues[name].enabled === isEnabled).join(', ');
}

const examples = `
Parts: ${namesOf(true)}. Off unless you set PART.enabled=true: ${namesOf(false)}.
Definitions are kept when Portolan is uninstalled.
Examples:
  portolan install --wait
  portolan install --set dns.clusterIP=10.96.0.20 --set dns.clusterId=east
  portolan install --values values.yaml --print | kubectl apply -f -`;
