// Previews ServiceImportPolicies: what each import of this cluster goes by now, and would go by. By the rules of the agents. Pure.

import type { ChoiceSpec, ServiceImportPolicy } from '../kinds/service-import-policy.ts';
import { parseServiceKey } from '../rules/names.ts';
import { nameHere, transparent } from '../rules/routing/import-as.ts';
import { type Exporter, policyOfImport, policyProblem, routingOf } from '../rules/routing/import-policies.ts';
import { describeRouting, type Routing } from '../rules/routing/routing.ts';
import { judgeTransparency, rewriteFor, type TransparencyFacts, withOwnFirst } from '../rules/routing/transparent.ts';

/** A service that the clusterset exports to this cluster. */
export interface ImportFacts {
  readonly service: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly exporters: readonly Exporter[];
  /** As it lies on the import; undefined if there is none. */
  readonly routing: Routing | undefined;
  /** Its name here. */
  readonly name: string;
  readonly transparency: Pick<TransparencyFacts, 'clusterId' | 'hasOwnService' | 'isExportedHere' | 'isCarried'>;
}

export interface PolicyFacts {
  readonly before: readonly ServiceImportPolicy[];
  readonly after: readonly ServiceImportPolicy[];
  readonly setChoice: ChoiceSpec;
  /** DNS zone of imports. */
  readonly zone: string;
}

export interface ImportPreview {
  readonly service: string;
  /** The policy that would decide. */
  readonly policy: string | undefined;
  readonly changes: readonly string[];
  /** Something that the policy asks for would not be done. */
  readonly isRefused: boolean;
}

/** Previews of those imports alone that would change. */
export function previewImports(imports: readonly ImportFacts[], policies: PolicyFacts): ImportPreview[] {
  return imports.map((facts) => previewImport(facts, policies)).filter(({ changes }) => changes.length > 0);
}

const alike = 'all clusters alike, or by locality';

function previewImport(facts: ImportFacts, { before, after, setChoice, zone }: PolicyFacts): ImportPreview {
  const service = parseServiceKey(facts.service);
  const { namespaceLabels, labels } = facts;
  const subject = { namespace: { name: service.namespace, labels: namespaceLabels }, name: service.name, labels };
  const [present, next] = [before, after].map((some) => policyOfImport(some, subject));
  const policy = next?.metadata.name;
  const result = (changes: readonly string[], isRefused = false) => ({
    ...{ service: facts.service, policy, isRefused },
    changes: changes.filter((change) => change !== ''),
  });
  const problem = policyProblem(next?.spec ?? {});
  if (problem !== undefined)
    return result([`policy ${policy} makes no sense (${problem}); it keeps what it has`], true);
  const accepted = [present, next].map((one) => one?.spec?.accept !== false);
  if (!accepted[1]) return result([accepted[0] ? 'would not be imported here any more' : '']);
  const routing = routingOf(next?.spec ?? setChoice, facts.exporters);
  const led = transparencyOf(facts, next, zone);
  const exporters = facts.exporters.map(({ id }) => id);
  const own = led.isOn ? withOwnFirst(routing, { self: facts.transparency.clusterId, exporters }) : routing;
  const { shift: _shift, ...now } = facts.routing ?? { ...routing, groups: [], excluded: [] };
  const [served, servedNext] = [now, own].map((one) => describeRouting(one) ?? alike);
  const { namespace, name } = nameHere(next?.spec?.importAs, service);
  return result(
    [
      accepted[0] ? '' : 'would be imported',
      `${namespace}/${name}` === facts.name ? '' : `would be imported as ${namespace}/${name}, now as ${facts.name}`,
      served === servedNext ? '' : `served by: ${servedNext}; now: ${served}`,
      ...led.lines,
    ],
    led.isRefused,
  );
}

function transparencyOf(
  { service: key, routing, transparency }: ImportFacts,
  next: ServiceImportPolicy | undefined,
  zone: string,
) {
  const service = parseServiceKey(key);
  const own = `${service.name}.${service.namespace}.svc.cluster.local`;
  const was = routing?.isTransparent === true;
  if (next?.spec?.importAs !== transparent)
    return {
      isOn: false,
      isRefused: false,
      lines: was ? [`${own} would lead to the Service of this cluster again`] : [],
    };
  const { isOn, refusal } = judgeTransparency({ service, was, ...transparency });
  const need = transparency.hasOwnService
    ? []
    : [
        `there is no Service ${key} here: DNS servers other than portolan dns need one, or "${rewriteFor(service, zone)}"`,
      ];
  const leads = isOn && !was ? [`${own} would lead to the clusterset`, ...need] : [];
  return {
    isOn,
    isRefused: refusal !== undefined,
    lines: [...leads, ...(refusal === undefined ? [] : [`not transparent: ${refusal}`])],
  };
}
