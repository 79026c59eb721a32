// A service as the asking cluster sees it: by which ways, with which shares, and who decides that.

import type { ServiceExplanation } from '../../clusterset/explain/explain-service.ts';
import { listAll } from '../../clusterset/explain/set-state.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import {
  type ChoiceSpec,
  type ServiceImportPolicy,
  serviceImportPolicyType,
} from '../../clusterset/kinds/service-import-policy.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { reachCondition } from '../../clusterset/rules/networks/reach-condition.ts';
import { precedenceOf } from '../../clusterset/rules/routing/precedence.ts';
import {
  describeRouting,
  readRouting,
  routedByAnnotation,
  routingAnnotation,
} from '../../clusterset/rules/routing/routing.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';

type SeenFromHere = Pick<ServiceExplanation, 'reached' | 'routed' | 'precedence'>;

/** As this cluster's agent wrote it on the import; nothing where all clusters are in one network and alike. */
export async function seenFromHere(home: Client, key: string, setChoice: ChoiceSpec): Promise<SeenFromHere> {
  const service = parseServiceKey(key);
  const object = await getOrUndefined<ServiceImport>(home, serviceImportType, service);
  const condition = conditionOf(object?.status?.conditions, reachCondition);
  const annotations = object?.metadata.annotations ?? {};
  const routing = readRouting(annotations[routingAnnotation] ?? '');
  const wishes = describeRouting(routing);
  const policy = annotations[routedByAnnotation];
  const by = policy === undefined ? 'by the clusterset or its exporters' : `by policy ${policy}`;
  const namespace = await getOrUndefined<Namespace>(home, namespaceType, { name: service.namespace });
  const labels = namespace?.metadata.labels;
  const precedence = precedenceOf({
    policies: await policiesOf(home),
    subject: {
      namespace: { name: service.namespace, ...(labels ? { labels } : {}) },
      name: service.name,
      labels: object?.metadata.labels ?? {},
    },
    hasSetChoice: Object.keys(setChoice).length > 0,
    routing,
  });
  return {
    ...(condition === undefined ? {} : { reached: condition.message }),
    ...(wishes === undefined ? {} : { routed: `${wishes} (${by})` }),
    ...(precedence.length === 0 ? {} : { precedence }),
  };
}

/** None where the reader may not list them, or an older home does not serve them. */
async function policiesOf(home: Client): Promise<ServiceImportPolicy[]> {
  try {
    return await listAll<ServiceImportPolicy>(home, serviceImportPolicyType);
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return [];
    throw error;
  }
}
