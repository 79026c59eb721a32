// Flows as rows for people, and what is missing among them. Pure.

import { formatHostPort } from '../../base/net/host-port.ts';
import { formatElapsed } from '../../base/text/elapsed.ts';
import type { LossesOfNode, ObservedFlow } from './flow-reader.ts';

export const flowHead = [
  'TIME',
  'FROM',
  'CLIENT',
  'SERVICE',
  'TO',
  'ENDPOINT',
  'OUTCOME',
  'ANSWER',
  'LASTED',
  'SENT',
  'RECEIVED',
] as const;

export function flowRow(flow: ObservedFlow): string[] {
  const { startedMs, endedMs, answeredAfterMs, sent, received } = flow;
  return [
    formatClock(startedMs ?? endedMs),
    `${flow.from}/${flow.node}${flow.seenBy === 'envoy' ? ' (Envoy)' : ''}`,
    clientOf(flow),
    `${flow.service}:${flow.port}/${flow.protocol}`,
    `${flow.cluster || '?'}${flow.way === 'gateway' ? ' (gateway)' : ''}`,
    flow.endpoint === '' ? '-' : formatHostPort(flow.endpoint, flow.endpointPort),
    flow.status === undefined ? flow.outcome : `${flow.outcome} ${flow.status}`,
    answeredAfterMs === undefined ? '-' : `${answeredAfterMs.toFixed(1)}ms`,
    endedMs === undefined ? 'open' : startedMs === undefined ? '-' : formatElapsed(endedMs - startedMs),
    sent === undefined ? '-' : formatBytes(sent.bytes),
    received === undefined ? '-' : formatBytes(received.bytes),
  ];
}

function clientOf({ client, clientPort, clientPod }: ObservedFlow): string {
  const address = clientPort === 0 ? client : formatHostPort(client, clientPort);
  return clientPod === undefined ? address : `${address} ${clientPod}`;
}

function formatClock(atMs: number | undefined): string {
  return atMs === undefined ? '-' : new Date(atMs).toISOString().slice(11, 23);
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}${units[unit]}`;
}

/** Nothing for nodes that lost nothing. */
export function lossLines(losses: readonly LossesOfNode[]): string[] {
  return losses.flatMap(({ node, unrecorded, overflows, pausedMs, forgotten }) => {
    const parts = [
      unrecorded === undefined ? 'connections beyond the recorded rate (could not be counted)' : '',
      (unrecorded ?? 0) > 0 ? `${unrecorded} connections beyond the recorded rate` : '',
      overflows > 0 ? `some at ${overflows} moments when events came too fast` : '',
      pausedMs > 0 ? `those of ${formatElapsed(pausedMs)} of rest to save CPU` : '',
      forgotten > 0 ? `${forgotten} records that memory had no room for` : '',
    ].filter((part) => part !== '');
    return parts.length === 0 ? [] : [`not shown, on ${node} since its proxy started: ${parts.join('; ')}`];
  });
}
