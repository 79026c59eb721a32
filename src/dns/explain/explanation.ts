// Why a question gets the answer it gets: what stands behind each record, how old that is, and what was left out. The
// types and their text; pure, so that the command line can use it on what a running server tells.

import { formatElapsed } from '../../base/text/elapsed.ts';

export interface ExplainedRecord {
  /** `A 10.2.0.7`, `SRV 0 1 80 checkout.shop.svc.clusterset.local` */
  readonly text: string;
  /** Owner of the record if it is not the asked name: it stands behind an alias. */
  readonly owner?: string;
  /** How near its cluster is to the one it was asked for; nearer ones come first. */
  readonly near?: Nearness;
  readonly ttlSeconds: number;
  readonly sources: readonly RecordSource[];
}

export type Nearness = 'own cluster' | 'same zone' | 'same region' | 'elsewhere';

export interface RecordSource {
  readonly kind:
    | 'ServiceImport'
    | 'Service'
    | 'EndpointSlice'
    | 'PeerService'
    | 'MeshExternalService'
    | 'shard'
    | 'upstream'
    | 'zone'
    | 'copy'
    | 'local';
  /** `namespace/name`, or a server's address. */
  readonly name: string;
  readonly cluster?: string;
  readonly peer?: string;
  /** Whether its peer confirms it, and if not, since when. */
  readonly state?: string;
  readonly revision?: string;
  readonly ageMs?: number;
}

export interface Explanation {
  readonly name: string;
  readonly type: string;
  /** The cluster it was asked for. */
  readonly from: string;
  readonly rcode: string;
  readonly handler: string;
  readonly extendedError?: string;
  readonly records: readonly ExplainedRecord[];
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

export function formatExplanation(explanation: Explanation): string {
  const { name, type, from, rcode, handler } = explanation;
  const lines = [`${name} ${type}${from === '' ? '' : ` from ${from}`}: ${rcode} by ${handler}`];
  if (explanation.extendedError) lines.push(`  extended error ${explanation.extendedError}`);
  for (const record of explanation.records) {
    const owner = record.owner === undefined ? '' : `${record.owner} `;
    const near = record.near === undefined ? '' : `  ${record.near}`;
    lines.push(`  ${owner}${record.text}  ttl ${record.ttlSeconds}${near}`);
    for (const source of record.sources) lines.push(`    ${formatSource(source)}`);
  }
  if (explanation.records.length === 0) lines.push('  no records');
  for (const { what, why } of explanation.leftOut) lines.push(`  left out: ${what}: ${why}`);
  return `${lines.join('\n')}\n`;
}

function formatSource(source: RecordSource): string {
  const parts = [`${source.kind} ${source.name}`];
  if (source.cluster) parts.push(`cluster ${source.cluster}`);
  if (source.peer) parts.push(`peer ${source.peer}`);
  if (source.state) parts.push(source.state);
  if (source.revision) parts.push(`revision ${source.revision}`);
  if (source.ageMs !== undefined) parts.push(`${formatElapsed(source.ageMs)} old`);
  return parts.join(', ');
}
