// Asks the resolver of a cluster why a name gets its answer, through that cluster's home and as the bearer; a name that is
// passed on to a federation's authority is asked there too.

import { errorText } from '../../base/log.ts';
import type { Explanation } from '../../dns/explain/explanation.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { partLabel, partState } from '../../kube/objects/part-lease.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { brokerOf, homeOf, type Landscape } from '../rows/landscape.ts';
import type { NameStep, NameView } from '../wire/views.ts';
import { QuestionError } from './errors.ts';

export interface NameQuestion {
  readonly cluster: string;
  readonly name: string;
  readonly type: string;
}

const answerMs = 5_000;

export async function askName(landscape: Landscape, question: NameQuestion): Promise<NameView> {
  const { cluster, name, type } = question;
  if (!/^[\x21-\x7e]{1,253}$/.test(name))
    throw new QuestionError(400, 'name: expected a domain name of at most 253 characters');
  if (!/^[A-Za-z0-9]{1,10}$/.test(type))
    throw new QuestionError(400, 'type: expected A, AAAA, SRV, PTR, TXT or another one');
  const watch = homeOf(landscape, cluster);
  if (watch === undefined)
    throw new QuestionError(404, `cluster ${cluster}: its home is not among those of this dashboard`);
  const lease = resolverOf(watch, landscape.nowMs);
  if (lease === undefined) throw new QuestionError(404, whyNoResolver(watch));
  const query = new URLSearchParams({ name, type });
  const first = await explain(watch, lease, query);
  const steps = [stepOf(first, `resolver of ${cluster}`)];
  const broker = brokerOf(landscape);
  const authority = broker?.broker?.parts.values().find(({ metadata }) => metadata.labels?.[partLabel] === 'authority');
  if (first.handler === 'stub' && broker !== undefined && authority !== undefined) {
    query.set('from', cluster);
    steps.push(stepOf(await explain(broker, authority, query), 'authority of the federation'));
  }
  return { cluster, steps };
}

/** One that reports; any if none does or the time is not known. */
export function resolverOf({ member }: HomeWatch, nowMs?: number): Lease | undefined {
  const all = (member?.leases.values() ?? []).filter(({ metadata }) => metadata.labels?.[partLabel] === 'dns');
  const reporting = nowMs === undefined ? [] : all.filter((lease) => partState(lease, nowMs).kind === 'reported');
  return reporting[0] ?? all[0];
}

function whyNoResolver({ member, home }: HomeWatch): string {
  return member?.leases.state().kind === 'denied'
    ? `you may not see the parts of ${home.name} (leases in portolan-system), so its resolver cannot be asked`
    : `no resolver has reported in ${home.name}`;
}

async function explain({ client, home }: HomeWatch, lease: Lease, query: URLSearchParams): Promise<Explanation> {
  try {
    return await new PartAdmin(client!).ask<Explanation>(lease, `/explain?${query}`, { timeoutMs: answerMs });
  } catch (error) {
    if (isForbidden(error))
      throw new QuestionError(
        403,
        `you may not ask parts of ${home.name} (get of services/proxy or pods/proxy in portolan-system, and for Pods create of serviceaccounts/token of portolan-admin-caller)`,
      );
    throw new QuestionError(502, `${home.name}: its resolver gives no answer: ${errorText(error)}`);
  }
}

function stepOf({ rcode, handler, extendedError, records, leftOut }: Explanation, server: string): NameStep {
  return { server, rcode, handler, extendedError, records, leftOut };
}
