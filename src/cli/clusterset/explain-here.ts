// A service as the asking cluster sees it: by which ways, with which shares, and who decides that.

import type { ServiceExplanation } from '../../clusterset/explain/explain-service.ts';
import { listAll, listImportPolicies } from '../../clusterset/explain/set-state.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import type { ChoiceSpec } from '../../clusterset/kinds/service-import-policy.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { reachCondition } from '../../clusterset/rules/networks/reach-condition.ts';
import { answerCondition } from '../../clusterset/rules/routing/answer-condition.ts';
import { sourceOfImport } from '../../clusterset/rules/routing/import-as.ts';
import { precedenceOf } from '../../clusterset/rules/routing/precedence.ts';
import {
  describeRouting,
  readRouting,
  routedByAnnotation,
  routingAnnotation,
} from '../../clusterset/rules/routing/routing.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { keyOf } from '../../kube/objects/object.ts';

type SeenFromHere = Pick<ServiceExplanation, 'reached' | 'routed' | 'precedence' | 'importedAs' | 'unanswered'>;

/** As this cluster's agent wrote it on the import; nothing where all clusters are in one network and alike. */
export async function seenFromHere(home: Client, key: string, setChoice: ChoiceSpec): Promise<SeenFromHere> {
  const service = parseServiceKey(key);
  const object = (await listAll<ServiceImport>(home, serviceImportType)).find((one) => sourceOfImport(one) === key);
  const condition = conditionOf(object?.status?.conditions, reachCondition);
  const answer = conditionOf(object?.status?.conditions, answerCondition);
  const annotations = object?.metadata.annotations ?? {};
  const routing = readRouting(annotations[routingAnnotation] ?? '');
  const wishes = describeRouting(routing);
  const policy = annotations[routedByAnnotation];
  const by = policy === undefined ? 'by the clusterset or its exporters' : `by policy ${policy}`;
  const namespace = await getOrUndefined<Namespace>(home, namespaceType, { name: service.namespace });
  const labels = namespace?.metadata.labels;
  const precedence = precedenceOf({
    policies: await listImportPolicies(home),
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
    ...(answer === undefined || answer.reason === 'Answering' ? {} : { unanswered: answer.message }),
    ...(wishes === undefined ? {} : { routed: `${wishes} (${by})` }),
    ...(precedence.length === 0 ? {} : { precedence }),
    ...(object === undefined || keyOf(object) === key ? {} : { importedAs: keyOf(object) }),
  };
}

/** The service that an import of this name is of: people ask for what they see in their cluster. */
export async function serviceBehind(home: Client, key: string): Promise<string> {
  const object = await getOrUndefined<ServiceImport>(home, serviceImportType, parseServiceKey(key));
  return object === undefined ? key : sourceOfImport(object);
}
