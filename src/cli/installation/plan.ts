// Plans an installation on a cluster: the values from its record and from the person, the id that the cluster joined with, the
// objects to write and those to remove.

import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../../clusterset/kinds/cluster-property.ts';
import { isAdmission } from '../../install/admission.ts';
import { objectsOf } from '../../install/objects.ts';
import { type Values, valueProblems } from '../../install/values.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isServed } from '../../kube/client/discovery.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import type { ResourceType } from '../../kube/objects/object.ts';
import { usageError } from '../exit-codes.ts';
import type { CliDeps } from '../with-home.ts';
import { fillValues, readGiven, type ValueFlags } from './read-values.ts';
import { obsoleteObjects, readRecord, recordManifest, type WrittenObject } from './record.ts';

export interface InstallationPlan {
  readonly values: Values;
  readonly objects: readonly Manifest[];
  readonly obsolete: readonly WrittenObject[];
  readonly record: Manifest;
}

export async function planInstallation(
  deps: CliDeps,
  client: Client,
  request: { readonly flags: ValueFlags; readonly clusterId: string | undefined },
): Promise<InstallationPlan> {
  const record = await readRecord(client).catch(ifForbidden);
  const given = await readGiven(deps, request.flags, record?.values);
  const values = fillValues(given);
  checkClusterId(values, request.clusterId);
  const objects = await withoutUnserved(client, objectsFor(values));
  return { values, objects, obsolete: obsoleteObjects(record, objects), record: recordManifest(given, objects) };
}

/** Admission needs a later Kubernetes than the rest, and the embedded home has the same rules without it. */
async function withoutUnserved(client: Client, objects: readonly Manifest[]): Promise<Manifest[]> {
  const first = objects.find(isAdmission);
  const isKept = first === undefined || (await isServed(client, first.type));
  return objects.filter((one) => isKept || !isAdmission(one));
}

/** The id that the cluster joined with; undefined if it has not. */
export async function joinedClusterId(client: Client): Promise<string | undefined> {
  const ref = { name: clusterIdProperty };
  const property = await getOrUndefined<ClusterProperty>(client, clusterPropertyType, ref).catch(ifForbidden);
  return property?.spec.value;
}

/** `checkBefore` refuses for want of the right, together with all others that are missing. */
export const rightsToPlan: readonly ResourceType[] = [configMapType, clusterPropertyType];

function ifForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}

/** The resolver takes the id that the cluster joined with; another one is refused. */
function checkClusterId({ dns }: Values, joined: string | undefined): void {
  if (joined === undefined || !dns.enabled || dns.clusterId === '' || dns.clusterId === joined) return;
  throw usageError(
    `values: dns.clusterId: ${dns.clusterId}, but this cluster joined as ${joined}; leave it out, or leave and join again`,
  );
}

/** Refuses values that contradict each other. */
export function objectsFor(values: Values): Manifest[] {
  const problems = valueProblems(values);
  if (problems.length > 0) throw usageError(`values: ${problems.join('; ')}`);
  return objectsOf(values);
}
