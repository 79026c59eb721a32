// What a caller of /flows asks for. Pure; throws what is wrong with it.

import { flowOutcomes } from '../../proxy/flows/flow.ts';
import type { AskedFlows } from '../../proxy/flows/flows.ts';

export function askedFlows(query: URLSearchParams): AskedFlows {
  const [after, outcome] = [query.get('after'), query.get('outcome') ?? undefined];
  if (after !== null && !/^\d{1,15}$/.test(after)) throw new Error(`after ${after}: want a number`);
  if (outcome !== undefined && !flowOutcomes.some((one) => one === outcome))
    throw new Error(`outcome ${outcome}: want ${flowOutcomes.join(', ')}`);
  const filter = { service: query.get('service') ?? undefined, to: query.get('to') ?? undefined, outcome };
  return { ...filter, after: after === null ? undefined : Number(after) };
}
