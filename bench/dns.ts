// `npm run bench:dns`: our DNS server, Knot and, where Go is installed, CoreDNS under the same load in one run, the server on
// one core and dnsperf on the other. 1,000 names with three addresses each, one query in ten for a name that does not exist.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findCoredns } from '../scripts/coredns.mjs';
import { findCommand, installCounterparts } from '../scripts/counterparts.mjs';
import { startRealHome } from './dns-real-home.ts';
import { type Figure, percentile, report } from './report.ts';

const directory = mkdtempSync(`${import.meta.dirname}/.bench-dns-`);
const dist = process.env['PORTOLAN_DIST'] ?? `${import.meta.dirname}/../dist/src`;
const seconds = Number(process.env['BENCH_SECONDS'] ?? 8);
const names = 1000;
const many = 100_000;
const figures: Figure[] = [];
const ticksPerSecond = 100;
const [serverCore, loadCore] = ['0', '1'];

install();
try {
  await main();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
report('DNS', figures);

function install(): void {
  installCounterparts();
  if (findCommand('dnsperf')) return;
  execFileSync('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', 'dnsperf'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function main(): Promise<void> {
  const bare = await startHelper([`${import.meta.dirname}/dns-bare.mjs`], serverCore);
  await measure('a bare Node socket', { server: bare, zone: 'svc.clusterset.local' });
  await bare.stop();
  const knot = await startKnot();
  const knotPerQuery = await measure('Knot', { server: knot, zone: 'svc.clusterset.local' });
  const ours = await startOurs({
    services: names,
    federated: names,
    upstream: `127.0.0.1:${knot.port}`,
  });
  await measure('ours, clusterset names', { server: ours, zone: 'svc.clusterset.local', besides: knotPerQuery });
  await measure('ours, federation names with the source cluster', {
    server: ours,
    zone: 'fed.svc.federation',
    option: '65001:77657374',
    besides: knotPerQuery,
    isAuthoritativeGoal: true,
  });
  await measure('ours, forwarding through the cache', { server: ours, zone: 'plain.test' });
  await measureForwarding(ours, knot);
  await ours.stop();
  await measureBlackHole();
  await knot.stop();
  await measureWorkers();
  await measureMemoryAndChanges();
  await measureWithoutIps();
  await measureRealHome();
}

/** Names of our own while others, asked beside them, lead to an authority that never answers. */
async function measureBlackHole(): Promise<void> {
  const hole = createSocket('udp4').bind(0, '127.0.0.1');
  await once(hole, 'listening');
  const stubZones = [{ zone: 'hole.test', nameservers: [`127.0.0.1:${hole.address().port}`], sendsSource: true }];
  const server = await startOurs({ services: names, stubZones });
  const own = readFileSync(queryFile('svc.clusterset.local', 'hits'), 'utf8').trimEnd().split('\n');
  const mixed = join(directory, 'queries-hole');
  writeFileSync(mixed, `${own.map((line, i) => (i % 50 === 0 ? `x${i}.hole.test A\n${line}` : line)).join('\n')}\n`);
  const options = { server, zone: '' };
  await dnsperf(options, queryFile('svc.clusterset.local', 'hits'), ['-l', '2']); // warm
  const alone = await latencyMs(options, queryFile('svc.clusterset.local', 'hits'), /clusterset/);
  const beside = await latencyMs(options, mixed, /clusterset/);
  await server.stop();
  hole.close();
  figures.push({ name: 'ours, own names: p99 at 10,000/s', value: alone, unit: 'ms' });
  const wanted = 'at most twice, or 0.5 ms';
  const isMet = beside <= Math.max(2 * alone, 0.5);
  figures.push({ name: 'ours, own names beside a silent authority: p99', value: beside, unit: 'ms', wanted, isMet });
}

/** CPU of a forwarded query that the cache has, and of one that it has not, beside CoreDNS with its usual cache. */
async function measureForwarding(ours: Running, upstream: Running): Promise<void> {
  const files = { hit: queryFile('plain.test', 'hits'), miss: queryFile('any.plain.test', 'misses') };
  const own = await cpuOfForwarding(ours, files);
  for (const [kind, value] of Object.entries(own))
    figures.push({ name: `ours, forwarding, ${kind}: CPU per query`, value, unit: 'µs' });
  const coredns = findCoredns();
  if (coredns.path === undefined) {
    console.log(`CoreDNS is not measured: ${coredns.why}`);
    return;
  }
  const other = await startCoredns(coredns.path, upstream.port);
  const theirs = await cpuOfForwarding(other, files);
  await other.stop();
  for (const [kind, most] of [
    ['hit', 0.8],
    ['miss', 1],
  ] as const) {
    const value = own[kind] / theirs[kind];
    figures.push({ name: `CoreDNS, forwarding, ${kind}: CPU per query`, value: theirs[kind], unit: 'µs' });
    const wanted = `at most ${most}`;
    figures.push({ name: `ours against CoreDNS, ${kind}`, value, unit: '', wanted, isMet: value <= most });
  }
}

async function cpuOfForwarding(
  server: Pick<Running, 'port' | 'pid'>,
  files: { readonly hit: string; readonly miss: string },
): Promise<{ hit: number; miss: number }> {
  const options = { server, zone: '' };
  const cpuOf = async (file: string) => {
    await dnsperf(options, file, ['-l', '1']);
    const before = cpuSeconds(server.pid);
    const output = await dnsperf(options, file, ['-l', String(seconds), '-c', '8', '-q', '100']);
    return (1e6 * (cpuSeconds(server.pid) - before)) / Number(/Queries completed:\s+(\d+)/.exec(output)?.[1]);
  };
  return { hit: await cpuOf(files.hit), miss: await cpuOf(files.miss) };
}

async function startCoredns(path: string, upstream: number): Promise<Running> {
  const port = await freePort();
  const corefile = join(directory, 'Corefile');
  const lines = ['bind 127.0.0.1', 'cache 3600', `forward . 127.0.0.1:${upstream}`];
  writeFileSync(corefile, `.:${port} {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`);
  const env = { ...process.env, GOMAXPROCS: '1' };
  const child = spawn('taskset', ['-c', serverCore, path, '-conf', corefile], { stdio: 'ignore', env });
  await untilAnswers(port, 'svc-1.ns-1.plain.test');
  const never = () => Promise.reject(new Error('CoreDNS answers no questions'));
  return { port, pid: child.pid!, ask: never, tell: () => {}, stop: () => stop(child) };
}

interface Running {
  readonly port: number;
  readonly pid: number;
  ask(request: object): Promise<Record<string, unknown>>;
  tell(request: object): void;
  stop(): Promise<void>;
}

interface Measured {
  readonly perSecond: number;
  readonly microseconds: number;
}

interface MeasureOptions {
  readonly server: Pick<Running, 'port' | 'pid'>;
  readonly zone: string;
  /** `code:hex` of an EDNS option. */
  readonly option?: string;
  readonly besides?: Measured;
  readonly isAuthoritativeGoal?: boolean;
}

async function measure(name: string, options: MeasureOptions): Promise<Measured> {
  const file = queryFile(options.zone);
  await dnsperf(options, file, ['-l', '2']); // warm
  const before = cpuSeconds(options.server.pid);
  const output = await dnsperf(options, file, ['-l', String(seconds), '-c', '8', '-q', '400']);
  const completed = Number(/Queries completed:\s+(\d+)/.exec(output)?.[1]);
  const microseconds = (1e6 * (cpuSeconds(options.server.pid) - before)) / completed;
  const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(output)?.[1]);
  const lost = Number(/Queries lost:\s+(\d+)/.exec(output)?.[1]);
  const share = options.besides ? perSecond / options.besides.perSecond : undefined;
  figures.push({
    name: `${name}: queries`,
    value: perSecond,
    unit: '/s',
    ...(options.isAuthoritativeGoal ? { wanted: 'at least 0.6 of Knot', isMet: share! >= 0.6 } : {}),
  });
  if (share !== undefined) figures.push({ name: `${name}: share of Knot's queries/s`, value: share, unit: '' });
  figures.push({ name: `${name}: CPU per query`, value: microseconds, unit: 'µs' });
  if (lost > 0) figures.push({ name: `${name}: lost`, value: lost, unit: 'queries' });
  const p99 = await latencyMs(options, file);
  const goal = name.startsWith('ours') ? { wanted: 'at most 0.5 ms', isMet: p99 <= 0.5 } : {};
  figures.push({ name: `${name}: p99 at 10,000/s`, value: p99, unit: 'ms', ...goal });
  return { perSecond, microseconds };
}

/** dnsperf in verbose mode prints each query's time. */
async function latencyMs(options: MeasureOptions, file: string, only = /./): Promise<number> {
  const output = await dnsperf(options, file, ['-l', '5', '-Q', '10000', '-v']);
  const times = [...output.matchAll(/^> \S+ .* ([\d.]+)$/gm)]
    .filter((match) => only.test(match[0]))
    .map((match) => 1000 * Number(match[1]))
    .sort((a, b) => a - b);
  return percentile(times, 0.99);
}

async function dnsperf(options: MeasureOptions, file: string, args: readonly string[]): Promise<string> {
  const edns = options.option ? ['-E', options.option] : [];
  const all = [
    '-c',
    loadCore,
    findCommand('dnsperf')!,
    '-s',
    '127.0.0.1',
    '-p',
    String(options.server.port),
    '-d',
    file,
    ...edns,
    ...args,
  ];
  // Into a file: reading a line for each query here would take turns from the server, and from dnsperf.
  const outputFile = join(directory, 'dnsperf.txt');
  const output = openSync(outputFile, 'w');
  const child = spawn('taskset', all, { stdio: ['ignore', output, 'ignore'] });
  await once(child, 'close');
  closeSync(output);
  return readFileSync(outputFile, 'utf8');
}

/** `hits` are names that exist, `misses` names that are asked for once each. */
function queryFile(zone: string, kind: 'mixed' | 'hits' | 'misses' = 'mixed'): string {
  const path = join(directory, `queries-${kind}-${zone}`);
  const lines: string[] = [];
  if (kind === 'misses') {
    for (let i = 0; i < 1_000_000; i++) lines.push(`n${i}.${zone} A`);
    writeFileSync(path, `${lines.join('\n')}\n`);
    return path;
  }
  for (let i = 0; i < 20_000; i++) {
    const n = (i * 7919) % names;
    lines.push(`${kind === 'mixed' && i % 10 === 9 ? 'no' : 'svc'}-${n}.ns-${n % 100}.${zone} A`);
  }
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1000;
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  return port;
}

async function startKnot(): Promise<Running> {
  const port = await freePort();
  const zones = ['clusterset.local', 'plain.test'];
  for (const zone of zones) {
    const prefix = zone === 'plain.test' ? '' : '.svc';
    const lines = [
      `$ORIGIN ${zone}.`,
      '$TTL 5',
      '@ SOA ns hostmaster 1 7200 1800 86400 5',
      '@ NS ns',
      'ns A 127.0.0.1',
    ];
    for (let i = 0; i < names; i++) {
      for (const first of [10, 11, 12]) lines.push(`svc-${i}.ns-${i % 100}${prefix} A ${first}.0.${i >> 8}.${i & 255}`);
    }
    if (zone === 'plain.test') lines.push('*.any A 192.0.2.1');
    writeFileSync(join(directory, `${zone}.zone`), `${lines.join('\n')}\n`);
  }
  const config = `server:
  rundir: "${directory}"
  listen: 127.0.0.1@${port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "${directory}"
template:
  - id: default
    storage: "${directory}"
    zonefile-load: whole
zone:
${zones.map((zone) => `  - domain: ${zone}`).join('\n')}
`;
  writeFileSync(join(directory, 'knot.conf'), config);
  const child = spawn('taskset', ['-c', serverCore, findCommand('knotd')!, '-c', join(directory, 'knot.conf')], {
    stdio: 'ignore',
  });
  await untilAnswers(port, 'svc-1.ns-1.plain.test');
  const never = () => Promise.reject(new Error('knot answers no questions'));
  return { port, pid: child.pid!, ask: never, tell: () => {}, stop: () => stop(child) };
}

async function startOurs(setup: Record<string, unknown>, core: string | undefined = serverCore): Promise<Running> {
  const script = `${import.meta.dirname}/dns-server.mjs`;
  const { flags, env } = asUsersStartIt();
  const node = [process.execPath, '--expose-gc', ...flags, script, JSON.stringify({ dist, ...setup })];
  const [command, ...args] = core === undefined ? node : ['taskset', '-c', core, ...node];
  const child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const waiting: ((value: Record<string, unknown>) => void)[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => waiting.shift()?.(JSON.parse(line)));
  const next = () => new Promise<Record<string, unknown>>((resolve) => waiting.push(resolve));
  const ready = await next();
  const tell = (request: object) => void child.stdin!.write(`${JSON.stringify(request)}\n`);
  return {
    port: ready['port'] as number,
    pid: ready['pid'] as number,
    tell,
    ask: (request) => {
      const reply = next();
      tell(request);
      return reply;
    },
    stop: () => stop(child),
  };
}

/** Node's flags and the settings of malloc that `bin/portolan` gives a resolver. */
function asUsersStartIt(): { readonly flags: readonly string[]; readonly env: Record<string, string> } {
  const launcher = readFileSync(`${import.meta.dirname}/../bin/portolan`, 'utf8');
  const [, forDns = ''] = /= dns \]; then\n(.*?)\nfi/s.exec(launcher) ?? [];
  const settings = [...forDns.matchAll(/(MALLOC_\w+)="\$\{\w+:-(\d+)\}"/g)];
  const flags = `${forDns} ${launcher}`.match(/--(max-semi-space-size|heap-growing-percent)=\d+/g) ?? [];
  // The first of each kind: those for dns come before those for all.
  const first = flags.filter(
    (flag, index) => index === flags.findIndex((one) => one.split('=')[0] === flag.split('=')[0]),
  );
  if (settings.length === 0 || first.length !== 2)
    throw new Error('bin/portolan no longer starts dns as the bench reads it');
  return { flags: first, env: Object.fromEntries(settings.map(([, name, value]) => [name!, value!])) };
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function untilAnswers(port: number, name: string): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if ((await lookUp(port, name, 200)) !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`nobody answers on port ${port}`);
}

/** Two workers against one, on the same core: what sharing the port costs, and how evenly the kernel spreads. */
async function measureWorkers(): Promise<void> {
  const file = queryFile('svc.clusterset.local');
  const perQuery: number[] = [];
  let shares: number[] = [];
  for (const workers of [1, 2]) {
    const server = await startOurs({ services: names, workers });
    const options = { server, zone: '' };
    await dnsperf(options, file, ['-l', '2', '-c', '200']);
    const before = cpuSeconds(server.pid);
    const countsBefore = (await server.ask({ ask: 'shares' }))['counts'] as number[];
    const output = await dnsperf(options, file, ['-l', String(seconds), '-c', '200', '-q', '400']);
    perQuery.push((1e6 * (cpuSeconds(server.pid) - before)) / Number(/Queries completed:\s+(\d+)/.exec(output)?.[1]));
    const counts = ((await server.ask({ ask: 'shares' }))['counts'] as number[]).map(
      (count, i) => count - countsBefore[i]!,
    );
    const total = counts.reduce((sum, count) => sum + count, 0);
    shares = counts.map((count) => count / total);
    await server.stop();
  }
  const ratio = perQuery[1]! / perQuery[0]!;
  figures.push({ name: 'one worker: CPU per query', value: perQuery[0]!, unit: 'µs' });
  figures.push({
    name: 'two workers against one, CPU per query',
    value: ratio,
    unit: '',
    wanted: 'at most 1.15',
    isMet: ratio <= 1.15,
  });
  const least = 100 * Math.min(...shares);
  figures.push({
    name: 'smaller share of two workers',
    value: least,
    unit: '%',
    wanted: '35 to 65 %',
    isMet: least >= 35,
  });
}

/** A tenth of the services, but from a real home and over TLS. */
async function measureRealHome(): Promise<void> {
  const home = await startRealHome(join(directory, 'home'), many / 10);
  const startedMs = performance.now();
  const dns = await startResolver(home.kubeconfig, join(directory, 'state-real'));
  const value = (performance.now() - startedMs) / 1000;
  figures.push({ name: '10,000 services x 3 clusters, real home over TLS: from start to ready', value, unit: 's' });
  await dns.stop();
  await home.stop();
}

/** The real process beside a stand-in for a home that has a hundred thousand services, each in three clusters. */
async function measureMemoryAndChanges(): Promise<void> {
  const home = await startHelper([`${import.meta.dirname}/dns-home.mjs`, String(many)]);
  const kubeconfig = join(directory, 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigFor(`http://127.0.0.1:${home.port}`));
  const startedMs = performance.now();
  const state = join(directory, 'state');
  const dns = await startResolver(kubeconfig, state);
  const readyMs = performance.now() - startedMs;
  const services = '100,000 services x 3 clusters, stand-in home';
  figures.push({
    name: `${services}: from start to ready`,
    value: readyMs / 1000,
    unit: 's',
    wanted: 'within 3 s',
    isMet: readyMs < 3000,
  });
  figures.push({ name: `${services}: CPU from start to ready`, value: cpuSeconds(dns.pid), unit: 's' });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const resident = residentMb(dns.pid);
  const wanted = 'at most 150 MB';
  figures.push({ name: `${services}: process`, value: resident, unit: 'MB', wanted, isMet: resident <= 150 });
  const times = await changeTimes(home, dns.port);
  const p99 = percentile(times, 0.99);
  figures.push({
    name: 'write at the home to correct answer at 100/s, p50',
    value: percentile(times, 0.5),
    unit: 'ms',
  });
  figures.push({
    name: 'write at the home to correct answer at 100/s, p99',
    value: p99,
    unit: 'ms',
    wanted: 'under 250 ms',
    isMet: p99 < 250,
  });
  figures.push({ name: `${services}: process after 1,000 changes`, value: residentMb(dns.pid), unit: 'MB' });
  await dns.stop();
  await measureWarmStart(kubeconfig, state);
  await home.stop();
}

/** Services without addresses of the clusterset: each endpoint has a name. */
async function measureWithoutIps(): Promise<void> {
  const home = await startHelper([`${import.meta.dirname}/dns-home.mjs`, String(many), 'no-ips']);
  const kubeconfig = join(directory, 'kubeconfig-no-ips');
  writeFileSync(kubeconfig, kubeconfigFor(`http://127.0.0.1:${home.port}`));
  const dns = await startResolver(kubeconfig, join(directory, 'state-no-ips'));
  const services = '100,000 services x 3 clusters without clusterset IPs';
  figures.push({ name: `${services}: CPU from start to ready`, value: cpuSeconds(dns.pid), unit: 's' });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const resident = residentMb(dns.pid);
  const wanted = 'at most 150 MB';
  figures.push({ name: `${services}: process`, value: resident, unit: 'MB', wanted, isMet: resident <= 150 });
  await dns.stop();
  await home.stop();
}

/** The same again, with the names that the one before left on disk. */
async function measureWarmStart(kubeconfig: string, state: string): Promise<void> {
  const copyMb = statSync(join(state, 'names')).size / 1e6;
  const startedMs = performance.now();
  let firstMs = 0;
  const dns = await startResolver(kubeconfig, state, async (port) => {
    const answer = await lookUp(port, 'svc-7.ns-7.svc.clusterset.local', 1000);
    if (answer && answer.length > 0) firstMs = performance.now() - startedMs;
  });
  const services = '100,000 services x 3 clusters, names left on disk';
  figures.push({ name: `${services}: file`, value: copyMb, unit: 'MB' });
  figures.push({
    name: `${services}: from start to first answer`,
    value: firstMs / 1000,
    unit: 's',
    wanted: 'within 2 s',
    isMet: firstMs > 0 && firstMs < 2000,
  });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const resident = residentMb(dns.pid);
  const wanted = 'at most 150 MB';
  figures.push({
    name: `${services}: process once read`,
    value: resident,
    unit: 'MB',
    wanted,
    isMet: resident <= 150,
  });
  await dns.stop();
}

interface Helper {
  readonly port: number;
  readonly pid: number;
  tell(request: object): void;
  stop(): Promise<void>;
}

/** A script of ours that says its port in a line of JSON. */
async function startHelper(script: readonly string[], core?: string): Promise<Helper> {
  const all = [...(core === undefined ? [] : ['taskset', '-c', core]), process.execPath, ...script];
  const child = spawn(all[0]!, all.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { port, pid } = JSON.parse(line) as { port: number; pid: number };
  return {
    port,
    pid,
    tell: (request) => void child.stdin.write(`${JSON.stringify(request)}\n`),
    stop: () => stop(child),
  };
}

function kubeconfigFor(server: string): string {
  const entry = (kind: string, value: object) => [{ name: 'bench', [kind]: value }];
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: entry('cluster', { server }),
    users: entry('user', {}),
    contexts: entry('context', { cluster: 'bench', user: 'bench' }),
    'current-context': 'bench',
  });
}

/** Resolves when it has read everything. */
async function startResolver(
  kubeconfig: string,
  state: string,
  onListening: (port: number) => Promise<void> = async () => {},
): Promise<Helper> {
  const portolan = `${import.meta.dirname}/../bin/portolan`;
  const where = ['--kubeconfig', kubeconfig, '--state', state, '--listen', '127.0.0.1:0'];
  const args = ['dns', '--cluster-id', 'north', '--log-level', 'warn', ...where];
  const child = spawn(portolan, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let port = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('listening ')) {
      port = Number(line.split(':')[1]);
      await onListening(port);
    }
    if (line === 'ready') break;
  }
  return { port, pid: child.pid!, tell: () => {}, stop: () => stop(child) };
}

/** Changes one endpoint at the home and asks until the answer is the new one. Three clusters take turns in answers. */
async function changeTimes(home: Helper, port: number): Promise<number[]> {
  const times: number[] = [];
  const running: Promise<void>[] = [];
  for (let version = 0; version < 1000; version++) {
    // One of those that have no address of the clusterset: its answers are its endpoints.
    const service = 97 * (version % Math.floor(many / 97));
    const address = `198.51.${version >> 8}.${version & 255}`;
    const startedMs = performance.now();
    home.tell({ service, address });
    running.push(
      (async () => {
        while (performance.now() - startedMs < 5000) {
          const answer = await lookUp(port, `svc-${service}.ns-${service % 100}.svc.clusterset.local`, 1000);
          if (answer?.includes(address)) break;
        }
        times.push(performance.now() - startedMs);
      })(),
    );
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await Promise.all(running);
  return times.sort((a, b) => a - b);
}

function lookUp(port: number, name: string, waitMs: number): Promise<string[] | undefined> {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const query = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (value: string[] | undefined) => {
      clearTimeout(timer);
      socket.close();
      resolve(value);
    };
    const timer = setTimeout(() => end(undefined), waitMs);
    socket.on('message', (reply) => {
      const addresses: string[] = [];
      // Every record of a plain answer has sixteen bytes: a pointer, the fixed part, the address.
      for (let at = query.length; at + 16 <= reply.length && reply[at] === 0xc0; at += 16) {
        addresses.push([...reply.subarray(at + 12, at + 16)].join('.'));
      }
      end(addresses);
    });
    socket.send(query, port, '127.0.0.1');
  });
}
