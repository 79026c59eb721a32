// `npm run bench:proxy` (root, in network namespaces): time to load 5,000 services of ten endpoints, one endpoint's change at
// that size and at a tenth, and requests through a clusterset IP beside direct ones; each beside the layout of kube-proxy's
// nftables mode. Rounds are interleaved and the figures are medians. `--services N`, `--changes N`, `--other-changes N`,
// `--rounds N`, `--json FILE`; `--without-other` leaves the other layout out, which takes a minute to load.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Namespaces, namespacesMissing } from '../test/support/namespaces.ts';
import { ipOf, target } from './proxy/catalog.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    changes: { type: 'string', default: '200' },
    'other-changes': { type: 'string', default: '20' },
    rounds: { type: 'string', default: '7' },
    'without-other': { type: 'boolean', default: false },
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
}

async function rules(layout: 'ours' | 'other', count: number, changes: string): Promise<Rules> {
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

/** Requests through the address for each direct one, by the way they are made. */
async function traffic(name: string, wanted?: number): Promise<void> {
  const once = async (kind: string, host: string, port: number) => {
    const args = [script('proxy-traffic.mjs'), kind, host, String(port), '700'];
    return JSON.parse(await net.output(node, process.execPath, args)) as { count: number; p50Ms?: number };
  };
  for (const kind of ['keep-alive', 'connect', 'single']) {
    const ratios: number[] = [];
    const through: number[] = [];
    const direct: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      // The order alternates, so that neither side gains by going first.
      const turns = [() => once(kind, ipOf(1), 80), () => once(kind, target.addresses[0]!, target.port)];
      const [a, b] = round % 2 === 0 ? [await turns[0]!(), await turns[1]!()] : [await turns[1]!(), await turns[0]!()];
      const [ip, plain] = round % 2 === 0 ? [a, b] : [b, a];
      const value = (each: typeof ip) => (kind === 'single' ? 1000 * each.p50Ms! : each.count / 0.7);
      through.push(value(ip));
      direct.push(value(plain));
      ratios.push(kind === 'single' ? value(plain) / value(ip) : value(ip) / value(plain));
    }
    const what = {
      'keep-alive': 'requests, keep-alive',
      connect: 'new connections',
      single: 'connect and request, one client',
    }[kind]!;
    const unit = kind === 'single' ? 'µs' : '/s';
    figures.push({ name: `${name}: ${what}, through the IP`, value: median(through), unit });
    figures.push({ name: `${name}: ${what}, direct`, value: median(direct), unit });
    const met = wanted === undefined ? {} : { wanted: `at least ${wanted} of direct`, isMet: median(ratios) >= wanted };
    figures.push({ name: `${name}: ${what}, of direct`, value: median(ratios), unit: '', ...met });
  }
}

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
  for (let round = 0; round < 3; round += 1) {
    clear();
    small.push(...(await rules('ours', services / 10, values.changes)).changesMs);
    clear();
    const beforeMb = kernelMb();
    last = await rules('ours', services, values.changes);
    byteMb.push(kernelMb() - beforeMb);
    large.push(...last.changesMs);
    loads.push(last.loadMs);
  }
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
  await traffic('ours', 0.95);
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
    await traffic('other layout');
  }
  report("A node's clusterset IPs", figures);
} finally {
  for (const server of servers) server.kill('SIGKILL');
  net.remove();
}

process.exit(0);
