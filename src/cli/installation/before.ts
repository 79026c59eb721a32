// Everything that would fail later, or surprise, is said before anything is changed: an old Kubernetes, missing kinds and
// rights, an installation by Helm, definitions of another implementation, a cluster that is a broker too.

import { errorText } from '../../base/log.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { isWorkload } from '../../install/workload.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, mergeInto } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isEmbedded, isServed } from '../../kube/client/discovery.ts';
import { ticketAccount } from '../../kube/objects/admin-ticket.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { managedByLabel, systemNamespace } from '../../kube/objects/ours.ts';
import { clusterRoleType, type PolicyRule, serviceAccountType } from '../../kube/objects/rbac.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { refuseForeignDefinitions } from '../definitions.ts';
import { CommandError } from '../exit-codes.ts';
import type { CliDeps } from '../with-home.ts';
import { describe } from './describe.ts';
import { rightsToPlan } from './plan.ts';
import type { WrittenObject } from './record.ts';

const oldestMinor = 29;

/** Throws with what stands in the way; else returns what to know, in lines. */
export async function checkBefore(
  deps: CliDeps,
  client: Client,
  request: {
    readonly objects: readonly Manifest[];
    readonly obsolete: readonly WrittenObject[];
    readonly definitions: readonly string[];
  },
): Promise<string[]> {
  const { objects, obsolete } = request;
  await refuseOldVersion(client);
  await refuseWithoutPods(client, objects);
  await refuseUnservedKinds(client, objects);
  const written = [...typesOf(objects), definitionReview];
  await refuseMissingRights(client, 'installing', [
    ...written.flatMap((type) => ['create', 'update'].map((verb) => ({ verb, type }))),
    ...[...rightsToPlan, ...written].map((type) => ({ verb: 'get', type })),
    ...typesOf(obsolete).map((type) => ({ verb: 'delete', type })),
  ]);
  await refuseEscalation(client, objects);
  if (objects.length > 0) await refuseHelm(client, 'upgrade');
  await refuseUnchangeable(client, objects);
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

async function refuseWithoutPods(client: Client, objects: readonly Manifest[]): Promise<void> {
  const workload = objects.find(({ type }) => isWorkload(type));
  if (workload === undefined || !(await isEmbedded(client))) return;
  throw new CommandError('refused', `this home does not run ${workload.type.plural}: ${runsOutside}`);
}

async function refuseUnservedKinds(client: Client, objects: readonly Manifest[]): Promise<void> {
  for (const type of typesOf(objects)) {
    if (type.group === '' || (await isServed(client, type))) continue;
    throw new CommandError('refused', `this home does not serve ${type.plural}.${type.group}: ${whatToDo(type)}`);
  }
}

const runsOutside =
  'it stores Pods and does not run them; give --rights-only and run the parts outside, or install on a Kubernetes';

function whatToDo({ kind }: ResourceType): string {
  return kind === 'ServiceMonitor'
    ? 'install the definitions of the Prometheus operator first, or leave serviceMonitor out'
    : runsOutside;
}

export interface NeededRight {
  readonly verb: string;
  readonly type: Reviewed;
}

/** `what` begins the message. */
export async function refuseMissingRights(client: Client, what: string, needed: readonly NeededRight[]): Promise<void> {
  const missing: string[] = [];
  for (const { verb, type } of needed) if (!(await may(client, verb, type))) missing.push(`${verb} ${type.plural}`);
  if (missing.length === 0) return;
  throw new CommandError('refused', `${what} needs rights that you lack: ${missing.join(', ')}; ask a cluster admin`);
}

/** Helm would put back, at its next change, whatever is changed beside it. */
export async function refuseHelm(client: Client, verb: 'upgrade' | 'uninstall'): Promise<void> {
  const { metadata } = (await getOrUndefined(client, serviceAccountType, ticketAccount)) ?? {};
  if (metadata?.labels?.[managedByLabel] !== 'Helm') return;
  const release = metadata.annotations?.['meta.helm.sh/release-name'] ?? 'portolan';
  const namespace = metadata.annotations?.['meta.helm.sh/release-namespace'] ?? systemNamespace;
  throw new CommandError(
    'refused',
    `Helm installed Portolan in this cluster, as release ${release}; run helm ${verb} ${release} -n ${namespace}`,
  );
}

/** Fields that cannot change and addresses that cannot be had are found by a trial that writes nothing. */
async function refuseUnchangeable(client: Client, objects: readonly Manifest[]): Promise<void> {
  const options = { isDryRun: true };
  for (const { type, object } of objects) {
    const present = await getOrUndefined(client, type, object.metadata);
    const { clusterIP } = (object as { spec?: { clusterIP?: string } }).spec ?? {};
    try {
      if (present !== undefined)
        await apply({
          client,
          type,
          present,
          change: mergeInto<KubernetesObject>(object),
          onConflict: 'retry',
          options,
        });
      // Its own namespace may not be there yet.
      else if (type === serviceType && clusterIP !== undefined)
        await client.create(
          type,
          { ...object, metadata: { name: object.metadata.name, namespace: 'default' } },
          options,
        );
    } catch (error) {
      const change =
        present === undefined ? '; give another address' : '; delete the Service first, or keep its address';
      const hint = clusterIP === undefined ? '' : change;
      throw new CommandError('refused', `${describe(type, object.metadata)}: ${errorText(error)}${hint}`);
    }
  }
}

/** An account cannot grant rights that it does not hold: one role with all of them is tried out, and not written. */
async function refuseEscalation(client: Client, objects: readonly Manifest[]): Promise<void> {
  const rules = objects.flatMap(({ object }) => (object as { rules?: PolicyRule[] }).rules ?? []);
  if (rules.length === 0) return;
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

export function typesOf(objects: readonly { readonly type: ResourceType }[]): ResourceType[] {
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
