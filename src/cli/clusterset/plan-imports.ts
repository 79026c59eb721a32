// Reads what previews of ServiceImportPolicies need: the services that the clusterset exports to this cluster, with their imports here.

import { predict } from '../../clusterset/explain/predict.ts';
import { type ImportFacts, type ImportPreview, previewImports } from '../../clusterset/explain/preview-imports.ts';
import {
  brokerFacts,
  byKey,
  homeFacts,
  listAll,
  listImportPolicies,
  readSetState,
} from '../../clusterset/explain/set-state.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { serviceImportPolicyType } from '../../clusterset/kinds/service-import-policy.ts';
import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { sourceOfImport } from '../../clusterset/rules/routing/import-as.ts';
import { readRouting, routingAnnotation } from '../../clusterset/rules/routing/routing.ts';
import { isStandIn } from '../../clusterset/rules/routing/transparent.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Namespace, namespaceType } from '../../kube/objects/namespace.ts';
import { keyOf } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { completePolicy, type PlanRequest } from './plan-file.ts';

export async function planImports(
  { world }: Pick<ClusterSetDeps, 'world'>,
  { home, broker, membership, objects }: PlanRequest,
): Promise<readonly ImportPreview[]> {
  if (objects.importPolicies.size === 0) return [];
  const present = byKey(await listImportPolicies(home));
  const next = new Map(present);
  for (const [name, policy] of objects.importPolicies)
    next.set(name, await completePolicy(home, serviceImportPolicyType, policy));
  const state = await readSetState({ home, broker, membership, clock: world.clock });
  const { clusterId: id } = membership;
  const keys = [...new Set(state.members.flatMap(({ shards }) => [...shards.keys()]))].sort();
  const own = await homeFacts(home, { state, id, keys, nowMs: world.clock.wallMs() });
  const prediction = predict([...brokerFacts(state, id), own], state.policy);
  const clusters = new Map(state.members.map((member) => [member.id, member.cluster]));
  const namespaces = byKey(await listAll<Namespace>(home, namespaceType));
  const services = byKey(await listAll<Service>(home, serviceType));
  const imports = new Map(
    (await listAll<ServiceImport>(home, serviceImportType)).map((one) => [sourceOfImport(one), one]),
  );
  const networkOf = (cluster: string) => clusters.get(cluster)?.spec.network ?? '';
  const facts = keys.flatMap((service): ImportFacts[] => {
    const namespace = namespaces.get(parseServiceKey(service).namespace);
    const counted = prediction.counted(service, id);
    if (namespace === undefined || counted.length === 0) return [];
    const there = imports.get(service);
    const ownService = services.get(service);
    return [
      {
        service,
        namespaceLabels: namespace.metadata.labels ?? {},
        labels: there?.metadata.labels ?? {},
        exporters: counted.map(({ cluster, record }) => ({
          id: cluster,
          cluster: clusters.get(cluster),
          isOtherNetwork: networkOf(cluster) !== networkOf(id),
          ...(record.spec.share === undefined ? {} : { share: record.spec.share }),
        })),
        routing: there && readRouting(there.metadata.annotations?.[routingAnnotation] ?? ''),
        name: there === undefined ? service : keyOf(there),
        transparency: {
          clusterId: id,
          hasOwnService: ownService !== undefined && !isStandIn(ownService),
          isExportedHere: counted.some(({ cluster }) => cluster === id),
          isCarried: conditionOf(there?.status?.conditions, 'Ready')?.status !== 'False',
        },
      },
    ];
  });
  const setChoice = state.set.spec?.choice ?? {};
  return previewImports(facts, {
    before: [...present.values()],
    after: [...next.values()],
    setChoice,
    zone: state.policy.zone,
  });
}

export function formatImports(imports: readonly ImportPreview[]): string[] {
  return imports.flatMap(({ service, policy, changes }) => [
    `import of ${service}${policy === undefined ? '' : `, by policy ${policy}`}`,
    ...changes.map((change) => `  ${change}`),
    '',
  ]);
}
