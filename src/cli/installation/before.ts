// Everything that would fail later, or surprise, is said before anything is changed: an old Kubernetes, missing kinds and
// rights, definitions of another implementation, a cluster that is a broker too.

import { errorText } from '../../base/log.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import type { Client } from '../../kube/client/client.ts';
import { isServed } from '../../kube/client/discovery.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { clusterRoleType, type PolicyRule } from '../../kube/objects/rbac.ts';
import { refuseForeignDefinitions } from '../definitions.ts';
import { CommandError } from '../exit-codes.ts';
import type { CliDeps } from '../with-home.ts';

const oldestMinor = 29;

/** Throws with what stands in the way; else returns what to know, in lines. */
export async function checkBefore(
  deps: CliDeps,
  client: Client,
  request: { readonly objects: readonly Manifest[]; readonly definitions: readonly string[] },
): Promise<string[]> {
  await refuseOldVersion(client);
  await refuseUnservedKinds(client, request.objects);
  await refuseMissingRights(client, request.objects);
  await refuseEscalation(client, request.objects);
  const notes = await refuseForeignDefinitions({ client, ...deps, names: request.definitions });
  return [...notes, ...(await brokerNotes(client))];
}

interface VersionAnswer {
  readonly major?: string;
  /** `29`, on some clouds `29+`. Empty for a build from a development tree. */
  readonly minor?: string;
}

async function refuseOldVersion(client: Client): Promise<void> {
  const { major = '1', minor = '' } = await client.getPath<VersionAnswer>('/version');
  const isOld = Number.parseInt(major, 10) === 1 && Number.parseInt(minor, 10) < oldestMinor;
  if (isOld) {
    throw new CommandError(
      'refused',
      `this cluster is Kubernetes 1.${minor}; 1.${oldestMinor} is the oldest that works; upgrade the cluster first`,
    );
  }
}

async function refuseUnservedKinds(client: Client, objects: readonly Manifest[]): Promise<void> {
  for (const type of typesOf(objects)) {
    if (type.group === '' || (await isServed(client, type))) continue;
    throw new CommandError('refused', `this home does not serve ${type.plural}.${type.group}: ${whatToDo(type)}`);
  }
}

function whatToDo({ kind }: ResourceType): string {
  return kind === 'ServiceMonitor'
    ? 'install the definitions of the Prometheus operator first, or leave serviceMonitor out'
    : 'it stores Pods and does not run them; give --rights-only and run the parts outside, or install on a Kubernetes';
}

async function refuseMissingRights(client: Client, objects: readonly Manifest[]): Promise<void> {
  const missing: string[] = [];
  for (const type of [...typesOf(objects), definitionReview]) {
    for (const verb of ['create', 'update'])
      if (!(await may(client, verb, type))) missing.push(`${verb} ${type.plural}`);
  }
  if (missing.length === 0) return;
  throw new CommandError(
    'refused',
    `installing needs rights that you lack: ${missing.join(', ')}; ask a cluster admin`,
  );
}

/** An account cannot grant rights that it does not hold: one role with all of them is tried out, and not written. */
async function refuseEscalation(client: Client, objects: readonly Manifest[]): Promise<void> {
  const rules = objects.flatMap(({ object }) => (object as { rules?: PolicyRule[] }).rules ?? []);
  const trial = manifest(clusterRoleType, { name: 'portolan:install-check' }, { rules });
  try {
    await client.create(trial.type, trial.object, { isDryRun: true });
  } catch (error) {
    if (!isForbidden(error)) throw error;
    throw new CommandError(
      'refused',
      `installing grants rights to the parts that you do not hold yourself; ask a cluster admin, or for the verb escalate on clusterroles and roles (${errorText(error)})`,
    );
  }
}

/** A cluster may be both. Its members' namespaces and its own parts then share one API server. */
async function brokerNotes(client: Client): Promise<string[]> {
  if (!(await isServed(client, clusterSetType))) return [];
  const { items } = await client.list<ClusterSet>(clusterSetType);
  return items.map(
    ({ metadata: { name } }) =>
      `this cluster is also the broker of clusterset ${name}: if its API server is away, members keep the last state and see no changes`,
  );
}

type Reviewed = Pick<ResourceType, 'group' | 'plural'>;

const definitionReview: Reviewed = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' };

function typesOf(objects: readonly Manifest[]): ResourceType[] {
  return [...new Map(objects.map(({ type }) => [`${type.group}/${type.plural}`, type])).values()];
}

const reviewType: ResourceType = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  isNamespaced: false,
};

async function may(client: Client, verb: string, { group, plural }: Reviewed): Promise<boolean> {
  const review = await client.create<KubernetesObject & { status?: { allowed?: boolean } }>(reviewType, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: { name: '' },
    spec: { resourceAttributes: { verb, group, resource: plural } },
  } as KubernetesObject);
  return review.status?.allowed === true;
}
