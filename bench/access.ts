// `npm run bench:access` (root, in network namespaces): the time to load 50,000 tuples of exported services, one change at that size,
// and the CPU time of one packet of an established connection with the table beside the same packet without. Rounds are
// interleaved. `--tuples N`, `--changes N`, `--rounds N` of packets, `--packets N` in each, `--json FILE`.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Namespaces, namespacesMissing } from '../test/support/namespaces.ts';
import { callerRange } from './access/catalog.ts';
import { startSender } from './access/packets.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: {
    tuples: { type: 'string', default: '50000' },
    changes: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '60' },
    packets: { type: 'string', default: '20000' },
    json: { type: 'string' },
  },
});
const why = namespacesMissing();
if (why !== '') throw new Error(`bench:access${why}`);
const rounds = Number(values.rounds);
const loads = 3;
const table = 'inet portolan-access';
const rulesScript = fileURLToPath(new URL('access-rules.ts', import.meta.url));
const net = new Namespaces('ab');
const node = net.addMachine('node', 11);
const far = net.addMachine('far', 12);
const pod = net.addPod(node, 'pod', '10.66.0');
net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
net.ip(far, `addr add ${callerRange(0).replace('0/24', '2/24')} dev eth0`);
net.ip(far, `route add 10.66.0.0/24 via ${node.address} src ${callerRange(0).replace('0/24', '2')}`);
net.ip(node, `route add ${callerRange(0)} via ${far.address}`);
// Every node tracks connections, for cluster IPs if for nothing else.
const tracking = 'add table ip track; add chain ip track first { type nat hook prerouting priority -100; }';

interface Rules {
  readonly loadMs: number;
  readonly changesMs: number[];
  readonly tuples: number;
  readonly rssMb: number;
}

async function rules(tuples: string, changes: string): Promise<Rules> {
  net.run(node, 'nft flush ruleset');
  net.run(node, `nft '${tracking}'`);
  return JSON.parse(await net.output(node, process.execPath, [rulesScript, tuples, changes])) as Rules;
}

/** Its chains are out of their hooks while it is off. */
function turn(isOn: boolean): void {
  net.run(node, `nft 'add table ${table} { ${isOn ? '' : 'flags dormant;'} }'`);
}

const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b);
const quartile = (list: readonly number[]) => percentile(sorted(list), 0.25);

try {
  const runs: Rules[] = [];
  for (let load = 0; load < loads; load += 1) runs.push(await rules(values.tuples, values.changes));
  const load = percentile(sorted(runs.map(({ loadMs }) => loadMs)), 0.5);
  const changes = sorted(runs.flatMap(({ changesMs }) => changesMs));
  const p99 = percentile(changes, 0.99);
  const sender = await startSender(net, far, pod);
  const us = { without: [] as number[], with: [] as number[], again: [] as number[] };
  const packets = Number(values.packets);
  await sender.cost(packets);
  for (let round = 0; round < rounds; round += 1)
    for (const [kind, isOn] of [['without', false] as const, ['with', true] as const, ['again', false] as const]) {
      turn(isOn);
      us[kind].push(await sender.cost(packets));
    }
  await sender.stop();
  const more = quartile(us.with) - quartile(us.without);
  const noise = quartile(us.again) - quartile(us.without);
  const { tuples, rssMb } = runs.at(-1)!;
  const figures: Figure[] = [
    { name: 'tuples in the kernel', value: tuples, unit: '' },
    { name: 'load from nothing, median', value: load, unit: 'ms', wanted: 'within 1.5 s', isMet: load <= 1500 },
    { name: 'one change, p50', value: percentile(changes, 0.5), unit: 'ms' },
    { name: 'one change, p99', value: p99, unit: 'ms', wanted: 'under 10 ms', isMet: p99 < 10 },
    { name: 'established packet without the table', value: quartile(us.without), unit: 'µs' },
    { name: 'established packet with it', value: quartile(us.with), unit: 'µs' },
    { name: 'the table costs', value: more, unit: 'µs', wanted: 'at most 0.1 µs', isMet: more <= 0.1 },
    { name: 'nothing against nothing', value: noise, unit: 'µs' },
    { name: 'memory of the process', value: rssMb, unit: 'MB' },
  ];
  report('The export as the boundary of calls', figures);
} finally {
  net.remove();
}

process.exit(0);
