// `npm run bench:proxy` (root, in network namespaces): time to load 5,000 services of ten endpoints, one endpoint's change at
// that size and at a tenth, and requests through a clusterset IP beside direct ones; each beside the layout of kube-proxy's
// nftables mode. Rounds are interleaved and the figures are medians. `--services N`, `--changes N`, `--other-changes N`,
// `--rounds N` of traffic, `--json FILE`. The same with weights: load, a change of weights, and traffic beside a service without. `--without-other` leaves the other layout out, which takes a minute to load;
// `--traffic-only` measures traffic alone.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Namespaces, namespacesMissing } from '../test/support/namespaces.ts';
import { target } from './proxy/catalog.ts';
import { addLoneRule, trafficFigures, weightFigures } from './proxy/traffic.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    changes: { type: 'string', default: '200' },
    'other-changes': { type: 'string', default: '20' },
    rounds: { type: 'string', default: '600' },
    'without-other': { type: 'boolean', default: false },
    'traffic-only': { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const why = namespacesMissing();
if (why !== '') throw new Error(`bench:proxy${why}`);
const services = Number(values.services);
const rounds = Number(values.rounds);
const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const figures: Figure[] = [];
const net = new Namespaces('pb');
const node = net.addMachine('node', 11);
const far = net.addMachine('far', 12);
const pod = net.addPod(node, 'pod', '10.66.0');
net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
net.ip(far, `route add 10.66.0.0/24 via ${node.address}`);
for (const address of target.addresses) net.ip(far, `addr add ${address}/32 dev lo`);
net.ip(node, `route add 10.77.0.0/24 via ${far.address}`);
net.ip(node, 'route add 243.0.0.0/12 dev lo');
const servers = target.addresses.map((address) =>
  net.start(far, process.execPath, [script('proxy-traffic.mjs'), 'server', address, String(target.port)]),
);
await Promise.all(servers.map((server) => new Promise((resolve) => server.stdout!.once('data', resolve))));

interface Rules {
  readonly loadMs: number;
  readonly changesMs: number[];
  readonly rssMb: number;
  /** Of one change: lines of the script for nft. */
  readonly changeLinesMax: number;
}

async function rules(layout: 'ours' | 'weighted' | 'other', count: number, changes: string): Promise<Rules> {
  const args = [script('proxy-rules.ts'), layout, String(count), changes];
  return JSON.parse(await net.output(node, process.execPath, args)) as Rules;
}

const clear = () => net.run(node, 'nft flush ruleset');
const median = (list: readonly number[]) =>
  percentile(
    [...list].sort((a, b) => a - b),
    0.5,
  );
const kernelMb = () => {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const kb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return (kb('Slab') + kb('Percpu') + kb('VmallocUsed')) / 1024;
};

function changeFigures(name: string, changesMs: readonly number[], wantedMs?: number): void {
  const sorted = [...changesMs].sort((a, b) => a - b);
  figures.push({ name: `${name}, p50`, value: percentile(sorted, 0.5), unit: 'ms' });
  const p99 = percentile(sorted, 0.99);
  const met = wantedMs === undefined ? {} : { wanted: `under ${wantedMs} ms`, isMet: p99 < wantedMs };
  figures.push({ name: `${name}, p99`, value: p99, unit: 'ms', ...met });
}

try {
  const loads: number[] = [];
  const byteMb: number[] = [];
  let last: Rules | undefined;
  const small: number[] = [];
  const large: number[] = [];
  for (let round = 0; round < (values['traffic-only'] ? 0 : 3); round += 1) {
    clear();
    small.push(...(await rules('ours', services / 10, values.changes)).changesMs);
    clear();
    const beforeMb = kernelMb();
    last = await rules('ours', services, values.changes);
    byteMb.push(kernelMb() - beforeMb);
    large.push(...last.changesMs);
    loads.push(last.loadMs);
  }
  if (values['traffic-only']) await rules('ours', services, '0');
  else {
    const load = median(loads);
    figures.push({
      name: `${services} x 10 from nothing`,
      value: load,
      unit: 'ms',
      wanted: 'within 1 s',
      isMet: load <= 1000,
    });
    changeFigures(`one endpoint's change at ${services}`, large, 10);
    changeFigures(`one endpoint's change at ${services / 10}`, small, 10);
    figures.push({ name: 'memory of the process', value: last!.rssMb, unit: 'MB' });
    figures.push({ name: 'memory of the kernel', value: median(byteMb), unit: 'MB' });
  }
  const way = { net, node, pod, rounds };
  addLoneRule(way);
  figures.push(...(await trafficFigures(way, { name: 'ours', isJudged: true })));
  clear();
  const weighted = await rules('weighted', services, values.changes);
  figures.push({
    name: `${services} x 10 with weights, from nothing`,
    ...{ value: weighted.loadMs, unit: 'ms', wanted: 'within 1 s', isMet: weighted.loadMs <= 1000 },
  });
  changeFigures(`one service's weights at ${services}`, weighted.changesMs, 10);
  figures.push({
    name: "lines for nft of one service's weights, at most",
    ...{ value: weighted.changeLinesMax, unit: '', wanted: 'at most 10', isMet: weighted.changeLinesMax <= 10 },
  });
  figures.push(...(await weightFigures(way)));
  if (!values['without-other']) {
    clear();
    changeFigures(
      `other layout: change at ${services / 10}`,
      (await rules('other', services / 10, values['other-changes'])).changesMs,
    );
    clear();
    const beforeMb = kernelMb();
    const other = await rules('other', services, values['other-changes']);
    figures.push({ name: `other layout: ${services} x 10 from nothing`, value: other.loadMs, unit: 'ms' });
    changeFigures(`other layout: change at ${services}`, other.changesMs);
    figures.push({ name: 'other layout: memory of the kernel', value: kernelMb() - beforeMb, unit: 'MB' });
    addLoneRule(way);
    figures.push(...(await trafficFigures(way, { name: 'other layout', isJudged: false })));
  }
  report("A node's clusterset IPs", figures);
} finally {
  for (const server of servers) server.kill('SIGKILL');
  net.remove();
}

process.exit(0);
