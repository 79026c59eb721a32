// Requests through a clusterset IP beside direct ones to the same server, from a pod and from the node itself. Both pass
// connection tracking in the node, as they do on every node that has such rules. Beside them: the same server behind one
// translating rule and nothing else, which is the least that any rules can cost; and the direct way a second time, which
// shows what the measurement itself is worth.

import { fileURLToPath } from 'node:url';
import type { Namespaces, Place } from '../../test/support/namespaces.ts';
import { type Figure, percentile } from '../report.ts';
import { ipOf, target } from './catalog.ts';

const script = fileURLToPath(new URL('../proxy-traffic.mjs', import.meta.url));
const direct = `${target.addresses[0]}:${target.port}`;
const lone = { ip: '198.18.0.1', range: '198.18.0.0/24' };
const wantedShare = 0.95;

/** Requests in one burst: each takes a few milliseconds. */
const kinds = [
  { kind: 'keep-alive', what: 'requests, keep-alive', burst: 160 },
  { kind: 'connect', what: 'new connections', burst: 32 },
  { kind: 'single', what: 'connect and request, one client', burst: 5 },
];

export interface TrafficOptions {
  readonly net: Namespaces;
  readonly node: Place;
  readonly pod: Place;
  readonly rounds: number;
}

/** Adds one rule that leads to the server, before all others. */
export function addLoneRule({ net, node }: Pick<TrafficOptions, 'net' | 'node'>): void {
  net.ip(node, `route replace ${lone.range} dev lo`);
  const rule = `ip daddr ${lone.ip} tcp dport 80 dnat to ${direct}`;
  const chains = ['prerouting', 'output'].map(
    (hook) => `add chain ip lone ${hook} { type nat hook ${hook} priority -101; }; add rule ip lone ${hook} ${rule}`,
  );
  net.run(node, `nft '${['add table ip lone', ...chains].join('; ')}'`);
}

export async function trafficFigures(
  { net, node, pod, rounds }: TrafficOptions,
  { name, isJudged }: { readonly name: string; readonly isJudged: boolean },
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { kind, what, burst } of kinds) {
    for (const [from, place] of [['pod', pod] as const, ['node', node] as const]) {
      const ways = [direct, `${ipOf(1)}:80`, `${lone.ip}:80`, direct];
      const args = [script, kind, String(rounds), String(burst), ...ways];
      const us = JSON.parse(await net.output(place, process.execPath, args)) as number[][];
      const title = `${name}, from a ${from}: ${what}`;
      figures.push({ name: `${title}, through the IP`, value: middle(us[1]!), unit: 'µs' });
      figures.push({ name: `${title}, direct`, value: middle(us[0]!), unit: 'µs' });
      figures.push({ ...share(us[0]!, us[1]!), name: `${title}, of direct`, ...(isJudged ? judged(us) : {}) });
      if (!isJudged) continue;
      figures.push({ ...share(us[0]!, us[2]!), name: `${title}, one rule alone, of direct` });
      figures.push({ ...share(us[0]!, us[3]!), name: `${title}, direct again, of direct` });
    }
  }
  return figures;
}

/** What weights cost beside a service without them, in the same table; both lead to the same server. */
export async function weightFigures({ net, node, pod, rounds }: TrafficOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { kind, what, burst } of kinds)
    for (const [from, place] of [['pod', pod] as const, ['node', node] as const]) {
      const ways = [`${ipOf(1)}:80`, `${ipOf(2)}:80`, `${ipOf(1)}:80`];
      const args = [script, kind, String(rounds), String(burst), ...ways];
      const us = JSON.parse(await net.output(place, process.execPath, args)) as number[][];
      const title = `with weights, from a ${from}: ${what}`;
      const found = share(us[0]!, us[1]!);
      const met = { wanted: `at least ${withWeights} of without`, isMet: found.value >= withWeights };
      figures.push({ name: `${title}, of without`, ...found, ...met });
      figures.push({ name: `${title}, without again, of without`, ...share(us[0]!, us[2]!) });
    }
  return figures;
}

/** No worse but for what the measurement is worth. */
const withWeights = 0.98;

function judged(us: readonly (readonly number[])[]) {
  return { wanted: `at least ${wantedShare} of direct`, isMet: share(us[0]!, us[1]!).value >= wantedShare };
}

/** Rounds are paired; the median of a sample lies between these ranks 19 times of 20. */
function share(base: readonly number[], other: readonly number[]): Pick<Figure, 'value' | 'unit' | 'note'> {
  const ratios = other.map((value, round) => base[round]! / value).sort((a, b) => a - b);
  const [half, width] = [ratios.length / 2, 0.98 * Math.sqrt(ratios.length)];
  const at = (rank: number) => ratios[Math.min(ratios.length - 1, Math.max(0, Math.round(rank)))]!.toFixed(3);
  return { value: percentile(ratios, 0.5), unit: '', note: `${at(half - width)} to ${at(half + width)}` };
}

function middle(list: readonly number[]): number {
  return percentile(
    [...list].sort((a, b) => a - b),
    0.5,
  );
}
