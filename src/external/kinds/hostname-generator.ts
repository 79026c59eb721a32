// HostnameGenerator: hostnames from a template for the resources it selects. Made at the broker by the mesh's operator;
// members keep copies at home.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const hostnameGeneratorType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'hostnamegenerators',
  kind: 'HostnameGenerator',
  isNamespaced: true,
};

export interface HostnameGenerator extends KubernetesObject {
  spec: HostnameGeneratorSpec;
  status?: { conditions?: Condition[]; selected?: number };
}

interface HostnameGeneratorSpec {
  /** Which kind, and the labels that a resource must have. */
  targetRef?: { kind: string; tags?: Record<string, string> };
  selector?: { matchLabels?: Record<string, string> };
  /** Text with `{{ name }}` and `{{ label "x" }}`. */
  template: string;
}

/** `true` lets a generator name more than `selectedMax` resources. */
export const allowManyAnnotation = 'portolan.dev/allow-many';
export const selectedMax = 1000;
