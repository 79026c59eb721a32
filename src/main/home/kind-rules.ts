// Rules of our own kinds that a schema cannot express, for the embedded home. A real Kubernetes has no such hook: there the
// same rules end in a condition.

import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { type Heartbeat, heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { memberLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { knowsNetworks, olderAgentsText } from '../../clusterset/rules/networks/known-by.ts';
import { networkOf } from '../../clusterset/rules/networks/reach.ts';
import { originOf } from '../../external/kinds/mesh-external-service.ts';
import { externalServiceErrors, externalServiceWarnings } from '../../external/rules/validation/external-service.ts';
import { hostnameGeneratorErrors } from '../../external/rules/validation/hostname-generator.ts';
import { type Admission, type DefinedKindRules, keyPrefixOf } from '../../home/model/kind.ts';
import { StatusError } from '../../home/model/status.ts';
import { objectKey, textOf } from '../../home/model/stored.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';

export const kindRules: DefinedKindRules = {
  'portolan.dev/MeshExternalService': {
    validatesAnyShape: true,
    validate: ownObjects(externalServiceErrors),
    warnings: externalServiceWarnings,
    admit: onlyInSystemNamespace,
  },
  'portolan.dev/HostnameGenerator': {
    validatesAnyShape: true,
    validate: ownObjects(hostnameGeneratorErrors),
    admit: onlyInSystemNamespace,
  },
  'portolan.dev/Cluster': { admit: onlyKnownNetworks },
};

/** A copy of a broker's object is accepted in any case: its condition shows its problems. */
function ownObjects(validate: (object: KubernetesObject) => FieldError[]) {
  return (object: KubernetesObject) => (originOf(object) === 'broker' ? [] : validate(object));
}

/** The system namespace of a home; at a broker, the namespace of a clusterset. */
async function onlyInSystemNamespace({ operation, object, store }: Admission): Promise<void> {
  const { namespace = '', name } = object.metadata;
  if (operation !== 'create' || namespace === systemNamespace) return;
  const { entries } = await store.range({ prefix: `${keyPrefixOf(clusterSetType)}${namespace}/`, limit: 1 });
  if (entries.length > 0) return;
  const where = `${systemNamespace}, or at a broker in the namespace of the clusterset`;
  throw new StatusError('Forbidden', `${object.kind} ${namespace}/${name}: only accepted in namespace ${where}`);
}

/** At a broker: while an agent is of a release that knows no networks, no cluster gets another one, whoever writes it. */
async function onlyKnownNetworks({ operation, object, previous, store }: Admission): Promise<void> {
  const network = networkOf(object as unknown as Cluster);
  if (operation === 'delete' || network === networkOf(previous as unknown as Cluster | undefined)) return;
  const { namespace = '', name } = object.metadata;
  const { entries } = await store.range({ prefix: `${keyPrefixOf(clusterType)}${namespace}/` });
  const older: string[] = [];
  for (const entry of entries) {
    const { metadata, spec } = JSON.parse(textOf(entry.value)) as Cluster;
    if (typeof spec?.namespace !== 'string') continue;
    const key = objectKey(keyPrefixOf(heartbeatType), spec.namespace, memberLeaseName);
    const heartbeat = await store.get(key);
    if (heartbeat !== undefined && !knowsNetworks(JSON.parse(textOf(heartbeat.value)) as Heartbeat))
      older.push(metadata.name);
  }
  if (older.length === 0) return;
  throw new StatusError('Forbidden', `Cluster ${namespace}/${name}: ${olderAgentsText(network, older)}`);
}
