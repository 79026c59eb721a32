// Where MeshExternalServices and HostnameGenerators may be created, enforced by a real Kubernetes as the embedded home does:
// the system namespace of a home, or the namespace of a clusterset at a broker. Elsewhere nothing would read them. Pure.

import { clusterSetLabel } from '../clusterset/rules/broker-layout.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import type { ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';

const group = 'admissionregistration.k8s.io';

const policyType: ResourceType = {
  ...{ group, version: 'v1', isNamespaced: false },
  plural: 'validatingadmissionpolicies',
  kind: 'ValidatingAdmissionPolicy',
};

const bindingType: ResourceType = {
  ...{ group, version: 'v1', isNamespaced: false },
  plural: 'validatingadmissionpolicybindings',
  kind: 'ValidatingAdmissionPolicyBinding',
};

/** The first Kubernetes that serves these kinds. An older one is installed without them. */
export const admissionSince = '1.30';

export function isAdmission({ type }: Pick<Manifest, 'type'>): boolean {
  return type.group === group;
}

const name = 'portolan-external-namespaces';

const isOurNamespace = [
  `request.namespace == '${systemNamespace}'`,
  `(has(namespaceObject.metadata.labels) && '${clusterSetLabel}' in namespaceObject.metadata.labels && namespaceObject.metadata.labels['${clusterSetLabel}'] == request.namespace)`,
].join(' || ');

/** As a server would add them: what differs from the stored object is written at every run. */
const defaults = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

export function admissionObjects(): Manifest[] {
  const rule = {
    apiGroups: ['portolan.dev'],
    apiVersions: ['*'],
    operations: ['CREATE'],
    resources: ['meshexternalservices', 'hostnamegenerators'],
    scope: '*',
  };
  const message = `only accepted in namespace ${systemNamespace}, or at a broker in the namespace of the clusterset`;
  return [
    manifest(
      policyType,
      { name },
      {
        spec: {
          failurePolicy: 'Fail',
          matchConstraints: { ...defaults, resourceRules: [rule] },
          validations: [{ expression: isOurNamespace, message, reason: 'Forbidden' }],
        },
      },
    ),
    manifest(bindingType, { name }, { spec: { policyName: name, validationActions: ['Deny'] } }),
  ];
}
