// The last connections, filtered, and of each failed one what is known of the reason. Pure but for the feed that it asks.

import { parseServiceKey } from '../../clusterset/rules/names.ts';
import { isOffered } from '../../clusterset/rules/networks/remote-endpoint.ts';
import type { FlowFeed, FlowQuestion } from '../feeds/flow-feed.ts';
import { byService } from '../homes/kinds.ts';
import { homeOf, idOf, type Landscape, setStateOf } from '../rows/landscape.ts';
import type { FlowRow, FlowsView } from '../wire/views.ts';

/** Reasons take a look at the service; of the rest the page says to filter. */
const explainedMax = 50;

export async function readFlows(landscape: Landscape, feed: FlowFeed, question: FlowQuestion): Promise<FlowsView> {
  const homes = landscape.homes.filter(({ member }) => member !== undefined);
  const answer = await feed.ask(homes, question);
  let explained = 0;
  const flows = answer.flows.toReversed().map((flow) => {
    if (flow.outcome === 'answered' || (explained += 1) > explainedMax) return { ...flow, reasons: [] };
    return { ...flow, reasons: reasonsOf(landscape, flow) };
  });
  return { ...answer, flows };
}

type FailedFlow = Pick<FlowRow, 'service' | 'from' | 'to' | 'endpoint' | 'way' | 'outcome'>;

function reasonsOf(landscape: Landscape, flow: FailedFlow): string[] {
  const key = flow.service.replace(/:\d+\/\w+$/, '');
  const known = [isAccessLimited(landscape, key, flow), isClusterDown(landscape, flow), isGone(landscape, key, flow)];
  const found = known.filter((text) => text !== '');
  if (flow.outcome === 'denied')
    return found.length > 0 ? found : [`${flow.to} does not export ${key} to ${flow.from}: its nodes refuse the call.`];
  const { name } = parseServiceKey(key);
  const general =
    flow.outcome === 'refused'
      ? `${flow.endpoint} answered that nothing listens there: the process behind ${name} does not run or listens on another port, or a network policy of ${flow.to || 'its cluster'} rejects the connection.`
      : `${flow.endpoint} did not answer: its machine or process hangs, the way from ${flow.from} to ${flow.to || 'its cluster'} is broken, or a firewall drops the packets.`;
  return [...found, general];
}

/** The rule of access: who may import a service is who may call it. */
function isAccessLimited(landscape: Landscape, key: string, { from, to }: FailedFlow): string {
  const state = setStateOf(landscape, { keys: [key] });
  const shard = state?.members.find(({ id }) => id === to)?.shards.get(key);
  const only = shard?.spec.exportTo;
  if (only === undefined || only.includes(from) || from === to) return '';
  return `${to} exports ${key} to ${only.join(', ') || 'nobody'}, and ${from} is not among them. With access Exported its nodes refuse others.`;
}

function isClusterDown(landscape: Landscape, { to }: FailedFlow): string {
  const watch = homeOf(landscape, to);
  const row = watch?.row();
  return row?.state === 'lost' ? `The home of ${to} does not answer (${row.why}): the cluster may be down.` : '';
}

function isGone(landscape: Landscape, key: string, { from, to, endpoint, way }: FailedFlow): string {
  const watch = homeOf(landscape, from);
  if (watch === undefined || !watch.isCurrent() || way === 'gateway') return '';
  const slices = watch.member?.slices.byIndex(byService, key) ?? [];
  if (slices.length === 0) return `${key} has no endpoints in ${idOf(watch)} any more.`;
  const address = endpoint.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  const all = slices.flatMap(({ endpoints }) => endpoints ?? []);
  const found = all.find(({ addresses }) => (addresses ?? []).includes(address));
  if (found === undefined) return `${address} is no endpoint of ${key} any more: it left after this connection.`;
  return isOffered(found) ? '' : `${address} is not ready any more (its cluster ${to || 'unknown'} says so).`;
}
