// `portolan install` and `portolan upgrade`: the definitions and the parts of `src/install` written to a cluster, after
// everything that can be checked beforehand has been checked.

import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { yaml } from '../../base/yaml.ts';
import { objectsOf } from '../../install/objects.ts';
import { defaultValues, partNames, type Values, valueProblems } from '../../install/values.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { install } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isServed } from '../../kube/client/discovery.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { installDefinitions } from '../definitions.ts';
import { CommandError, usageError } from '../exit-codes.ts';
import { verbs } from '../verbs.ts';
import {
  addHomeOptions,
  brokerDefinitions,
  type ClusterSetDeps,
  type HomeFlags,
  homeDefinitions,
  withHome,
} from '../with-home.ts';
import { untilReady } from './ready.ts';

export interface InstallFlags extends HomeFlags {
  readonly values?: string;
  readonly set: readonly string[];
  readonly print?: boolean;
  readonly wait?: boolean;
  readonly timeout: string;
}

const oldestMinor = 29;

export function addInstallCommand(program: Command, deps: ClusterSetDeps): void {
  for (const verb of ['install', 'upgrade'] as const) {
    const command = program
      .command(verb)
      .description(verbs[verb])
      .option('--values <file>', 'values in YAML, as for the Helm chart')
      .option('--set <path=value...>', 'single values, such as dns.clusterIP=10.96.0.20', [])
      .option('--print', 'print the objects for kubectl apply instead of writing them')
      .option('--wait', 'wait until all parts are ready')
      .option('--timeout <seconds>', 'how long to wait', '300')
      .addHelpText('after', examples);
    addHomeOptions(command).action((flags: InstallFlags) => installParts(deps, flags));
  }
}

async function installParts(deps: ClusterSetDeps, flags: InstallFlags): Promise<void> {
  const values = await readValues(deps, flags);
  const problems = valueProblems(values);
  if (problems.length > 0) throw usageError(`values: ${problems.join('; ')}`);
  const objects = objectsOf(values);
  if (flags.print) {
    for (const { object } of objects) deps.print(`---\n${yaml().stringify(object).trimEnd()}`);
    return;
  }
  await withHome(deps, flags, async ({ client }) => {
    await refuseBefore(client, objects);
    const names = [...new Set([...homeDefinitions, ...brokerDefinitions])];
    for (const name of await installDefinitions({ client, ...deps, names })) deps.print(`definition ${name}`);
    for (const wanted of objects.map(withDigest)) {
      if (await isInstalled(client, wanted)) continue;
      const { object, outcome } = await install(client, wanted);
      if (outcome !== 'unchanged') deps.print(`${outcome} ${describe(wanted.type, object)}`);
    }
    if (flags.wait) await untilReady(deps, client, { objects, timeoutMs: Number(flags.timeout) * 1000 });
    deps.print('installed; portolan join makes this cluster a member of a clusterset');
  });
}

async function readValues(deps: ClusterSetDeps, flags: InstallFlags): Promise<Values> {
  const text = flags.values === undefined ? undefined : await deps.host.readText(flags.values);
  if (flags.values !== undefined && text === undefined) throw usageError(`--values ${flags.values}: no such file`);
  const given = (text === undefined ? {} : (yaml().parse(text) ?? {})) as Record<string, unknown>;
  for (const entry of flags.set) setPath(given, entry);
  return mergeValues(defaultValues, given, []) as Values;
}

function setPath(into: Record<string, unknown>, entry: string): void {
  const at = entry.indexOf('=');
  if (at <= 0) throw usageError(`--set ${entry}: write PATH=VALUE, such as dns.clusterIP=10.96.0.20`);
  const path = entry.slice(0, at).split('.');
  let place = into;
  for (const key of path.slice(0, -1)) place = (place[key] ??= {}) as Record<string, unknown>;
  place[path.at(-1)!] = yaml().parse(entry.slice(at + 1)) ?? '';
}

/** The defaults with what was given over them; an unknown or wrongly typed value is refused with its path. */
function mergeValues(defaults: object, given: unknown, path: readonly string[]): object {
  const where = path.join('.') || 'values';
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw usageError(`${where}: expected a map`);
  const known = defaults as Record<string, unknown>;
  const merged: Record<string, unknown> = { ...known };
  for (const [key, value] of Object.entries(given)) {
    const own = [...path, key];
    if (!Object.hasOwn(known, key)) {
      throw usageError(`${own.join('.')}: no such value; there are ${Object.keys(known).join(', ')}`);
    }
    if (typeof known[key] === 'object') merged[key] = mergeValues(known[key] as object, value, own);
    else if (typeof value !== typeof known[key]) throw usageError(`${own.join('.')}: expected a ${typeof known[key]}`);
    else merged[key] = value;
  }
  return merged;
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

/** Everything that would fail later is reported now, before anything is changed. */
async function refuseBefore(client: Client, objects: readonly Manifest[]): Promise<void> {
  const { minor } = await client.getPath<{ minor: string }>('/version');
  if (Number.parseInt(minor, 10) < oldestMinor) {
    throw new CommandError(
      'refused',
      `this cluster is Kubernetes 1.${minor}; 1.${oldestMinor} is the oldest that works`,
    );
  }
  for (const { type } of objects) {
    if (type.group === '' || (await isServed(client, type))) continue;
    throw new CommandError(
      'refused',
      `this home does not serve ${type.plural}.${type.group}: it stores Pods and does not run them; install on a Kubernetes`,
    );
  }
  const types = new Map<string, Reviewed>(objects.map(({ type }) => [`${type.group}/${type.plural}`, type]));
  types.set('definitions', { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' });

  const missing: string[] = [];
  for (const type of types.values()) {
    for (const verb of ['create', 'update'])
      if (!(await may(client, verb, type))) missing.push(`${verb} ${type.plural}`);
  }
  if (missing.length > 0) {
    throw new CommandError(
      'refused',
      `installing needs rights that you lack: ${missing.join(', ')}; ask a cluster admin`,
    );
  }
}

type Reviewed = Pick<ResourceType, 'group' | 'plural'>;

const reviewType: ResourceType = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  isNamespaced: false,
};

async function may(client: Client, verb: string, { group, plural }: Reviewed) {
  const review = await client.create<KubernetesObject & { status?: { allowed?: boolean } }>(reviewType, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: { name: '' },
    spec: { resourceAttributes: { verb, group, resource: plural } },
  } as KubernetesObject);
  return review.status?.allowed === true;
}

export function describe({ kind }: ResourceType, { metadata }: KubernetesObject): string {
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
}

const examples = `
Parts: ${partNames.join(', ')}. Definitions are kept when Portolan is uninstalled.
Examples:
  portolan install --wait
  portolan install --set dns.clusterIP=10.96.0.20 --set dns.clusterId=east
  portolan install --values values.yaml --print | kubectl apply -f -`;
