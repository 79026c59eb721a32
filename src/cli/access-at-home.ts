// Whether calls of other clusters into this one are limited as asked, read at its own home.

import type { Clock } from '../base/world.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import { type ServiceAccessPolicy, serviceAccessPolicyType } from '../clusterset/kinds/service-access-policy.ts';
import { serviceExportType } from '../clusterset/kinds/service-export.ts';
import {
  describeProblems,
  describeRefusal,
  type Enforcement,
  enforcementOf,
} from '../clusterset/rules/access/enforcement.ts';
import { readAccess } from '../clusterset/rules/access/set-access.ts';
import { clusterSetDnsName } from '../clusterset/rules/clusterset-dns.ts';
import { ruleOf } from '../clusterset/rules/exports/callers.ts';
import { parseServiceKey } from '../clusterset/rules/names.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden, isNotFound } from '../kube/objects/api-error.ts';
import { conditionOf } from '../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { type Node, nodeType } from '../kube/objects/node.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partLabel } from '../kube/objects/part-lease.ts';
import { formatCount } from './table.ts';

/** Undefined while access is open. */
export async function readEnforcement(home: Client, clock: Pick<Clock, 'wallMs'>): Promise<Enforcement | undefined> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const options = await getOrUndefined<ConfigMap>(home, configMapType, ref);
  const mode = readAccess(options)?.mode ?? 'Open';
  if (mode === 'Open') return undefined;
  const query = { namespace: systemNamespace, labelSelector: `${partLabel}=proxy` };
  const leases = await listAll<Lease>(home, leaseType, query);
  const nodes = await listAll<Node>(home, nodeType).catch((error: unknown) => {
    if (isForbidden(error)) return undefined;
    throw error;
  });
  const names = nodes?.map(({ metadata }) => metadata.name);
  return enforcementOf({ mode, leases, nodes: names, nowMs: clock.wallMs() });
}

/** For a report; nothing if the caller may not read Leases. */
export async function enforcementAt(
  home: Client,
  clock: Pick<Clock, 'wallMs'>,
): Promise<{ readonly access?: Enforcement }> {
  const access = await readEnforcement(home, clock).catch((error: unknown) => {
    if (isForbidden(error)) return undefined;
    throw error;
  });
  return access === undefined ? {} : { access };
}

/** For the explanation of one service; nothing where calls are not limited. */
export async function accessOf(
  home: Client,
  { key, clock }: { readonly key: string; readonly clock: Pick<Clock, 'wallMs'> },
): Promise<{ readonly access?: readonly string[] }> {
  const policies = await policiesFor(home, key);
  const { access } = await enforcementAt(home, clock);
  if (access === undefined) return policies.length === 0 ? {} : { access: policies };
  const isExported = (await getOrUndefined(home, serviceExportType, parseServiceKey(key))) !== undefined;
  const refused = access.refused.filter(({ service }) => service === key);
  return { access: [...formatEnforcement({ ...access, refused }, () => isExported), ...policies] };
}

/** A line for each ServiceAccessPolicy that selects the service; none where they cannot be read. */
async function policiesFor(home: Client, key: string): Promise<string[]> {
  const { namespace, name } = parseServiceKey(key);
  const all = await listAll<ServiceAccessPolicy>(home, serviceAccessPolicyType, { namespace }).catch(
    (error: unknown) => {
      if (isForbidden(error) || isNotFound(error)) return [];
      throw error;
    },
  );
  return all
    .filter(({ spec }) => spec?.services?.includes(name) ?? true)
    .map((policy) => {
      const who = [...ruleOf(policy).from].map(([id, names]) => (names === 'all' ? id : `${id} (${names.join(', ')})`));
      const enforced = conditionOf(policy.status?.conditions, 'Enforced');
      const state =
        enforced === undefined
          ? 'not judged yet'
          : `Enforced=${enforced.status}${enforced.status === 'True' ? '' : `: ${enforced.message}`}`;
      return `access: policy ${policy.metadata.name} admits ${who.join(', ') || 'nobody'}; ${state}`;
    });
}

const refusedShown = 5;

/** None where access is open. */
export function formatEnforcement(
  enforcement: Enforcement | undefined,
  isExported: (service: string) => boolean,
): string[] {
  if (enforcement === undefined) return [];
  const { mode, nodes, problems, refused } = enforcement;
  const verb = mode === 'Audit' ? 'counted' : 'enforced';
  const on = `${verb} on ${formatCount(nodes, 'node')}`;
  return [
    `access: ${mode}, ${problems.length === 0 ? on : `${on}, not on others: ${describeProblems(problems)}`}`,
    ...refused
      .slice(0, refusedShown)
      .map(
        (one) =>
          `access: ${describeRefusal(one, { mode, isExported })} (${formatCount(one.packets, 'packet')}, last seen ${one.lastAt})`,
      ),
  ];
}
