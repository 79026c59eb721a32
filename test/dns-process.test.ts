// `portolan dns` as a process: what it answers while it starts, its admin endpoint, DNS over TLS, the endpoint for stub zones,
// an existing server for the cluster domain, and flags that make no sense.

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import packet from 'dns-packet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { dnsOptionsManifest } from '../src/clusterset/rules/clusterset-dns.ts';
import { describeAnswer, encodeQuestion, extendedErrorOf } from '../src/dns/testing/ask.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { askTcp, askUdp, askUdpRaw, framed, readFrames } from '../src/dns/testing/edge/client.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { configMapType } from '../src/kube/objects/config-map.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../src/kube/objects/lease.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { partAnnotations } from '../src/kube/objects/part-lease.ts';
import { type Pod, podType } from '../src/kube/objects/pod.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { type DnsProcess, startDnsProcess, until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { runPortolan } from './support/portolan.ts';

const world = createRealWorld();
const directory = mkdtempSync(join(tmpdir(), 'portolan-dns-'));
const running = new Set<DnsProcess>();
let home: Home;
let client: Client;
let homePort: number;

async function startTheHome(): Promise<void> {
  home = await startHome({
    world,
    log: silentLog,
    directory: `${directory}/home`,
    listen: { host: '127.0.0.1', port: homePort },
  });
  client = createClient(home.transport, { world, userAgent: 'test' });
}

async function start(...args: string[]): Promise<DnsProcess> {
  const dns = await startDnsProcess(args);
  running.add(dns);
  return dns;
}

const resolver = (...args: string[]) => start('--cluster-id', 'east', '--kubeconfig', home.kubeconfig, ...args);

/** A nameserver that knows one address for all names. */
async function startUpstream(address: string): Promise<{ readonly server: string; close(): void }> {
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    const { id, questions } = packet.decode(message);
    const answers = [{ type: 'A', name: questions![0]!.name, ttl: 60, data: address }] as never;
    socket.send(packet.encode({ type: 'response', id, questions, answers }), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { server: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}

async function addService(name: string, clusterIP: string): Promise<void> {
  const spec = { clusterIP, ports: [{ name: 'http', port: 80, protocol: 'TCP' as const }] };
  const metadata = { name, namespace: 'shop' };
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec });
}

async function make(type: ResourceType, namespace: string, name: string, rest: object): Promise<void> {
  const apiVersion = `${type.group}/${type.version}`;
  const { labels, ...body } = rest as { labels?: Record<string, string> };
  const metadata = { name, namespace, ...(labels ? { labels } : {}) };
  await client.create(type, { apiVersion, kind: type.kind, metadata, ...body } as AnyObject);
}

async function admin(dns: DnsProcess, path: string, method = 'GET'): Promise<string> {
  const response = await fetch(`${dns.admin}${path}`, { method });
  return `${response.status} ${(await response.text()).trim()}`;
}

/** In user mode and in the kernel, of all its threads. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

beforeAll(async () => {
  homePort = await freePort();
  await startTheHome();
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await addService('web', '10.96.7.7');
});

afterAll(async () => {
  await Promise.all([...running].map((dns) => dns.stop('SIGKILL')));
  await home.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe('portolan dns', () => {
  test('queries run through the whole start-up -> SERVFAIL is seen, NXDOMAIN for an existing name never [003-58]', async () => {
    await home.stop();
    const dns = await resolver();
    const seen: string[] = [];
    let isAsking = true;
    const asking = (async () => {
      while (isAsking) {
        seen.push(await askUdp(dns.target, 'web.shop.svc.cluster.local A'));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })();
    await until('SERVFAIL', () => seen.includes('SERVFAIL'));
    expect(await admin(dns, '/readyz')).toMatch(/^503 not read yet: cluster\.local, clusterset\.local/);
    expect(await admin(dns, '/livez')).toBe('200 ok');
    await startTheHome();
    await until('an answer', () => seen.includes('10.96.7.7'));
    isAsking = false;
    await asking;
    expect(new Set(seen)).toEqual(new Set(['SERVFAIL', '10.96.7.7']));
    await dns.whenReady();
    // Until each watch is open again, it adds that answers are from the last list.
    await until('nothing is old', async () => (await admin(dns, '/readyz')) === '200 ok');
  });

  test('100,000 services of a stand-in home, each in three clusters -> ready after seconds of work, and never NXDOMAIN on the way', async () => {
    const many = fileURLToPath(new URL('../bench/dns/stand-in-home.mjs', import.meta.url));
    const helper = spawn(process.execPath, [many, '100000'], { stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = (await once(helper.stdout.setEncoding('utf8'), 'data')) as [string];
    const server = `http://127.0.0.1:${JSON.parse(line).port}`;
    const kubeconfig = `${directory}/many.kubeconfig`;
    const clusters = [{ name: 'many', cluster: { server } }];
    const contexts = [{ name: 'many', context: { cluster: 'many', user: 'many' } }];
    const users = [{ name: 'many', user: {} }];
    writeFileSync(kubeconfig, JSON.stringify({ clusters, contexts, users, 'current-context': 'many' }));
    const dns = await start('--cluster-id', 'east', '--kubeconfig', kubeconfig);
    const seen = new Set<string>();
    const last = 'svc-99999.ns-99.svc.clusterset.local A';
    // CPU time, far above the need: it must not grow with the square.
    while (!dns.isReady() && cpuSecondsOf(dns.child.pid!) < 20) {
      seen.add(await askUdp(dns.target, last));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(dns.isReady(), dns.log()).toBe(true);
    const answer = await askUdp(dns.target, last);
    expect(answer).toMatch(/^243\./);
    expect([...seen].filter((each) => each !== 'SERVFAIL' && each !== answer)).toEqual([]);
    expect(seen).toContain('SERVFAIL');
    await dns.stop();
    helper.kill('SIGKILL');
  }, 300_000);

  test('its home goes away -> goes on answering', async () => {
    const dns = await resolver();
    await dns.whenReady();
    await home.stop();
    expect(await askUdp(dns.target, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
    await startTheHome();
  });

  test('its Lease -> renewed while it runs, gone when it has stopped', async () => {
    const dns = await resolver();
    await dns.whenReady();
    // Other resolvers on this machine have Leases too.
    const isKept = async () => {
      const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace });
      return items.some(({ metadata }) => metadata.annotations?.[partAnnotations.admin] === dns.admin);
    };
    await until('its Lease', isKept);
    await dns.stop();
    expect(await isKept()).toBe(false);
  });

  test('metrics -> queries by zone and rcode, time per answer by zone, time from a change to its answer', async () => {
    const dns = await resolver();
    await dns.whenReady();
    await askUdp(dns.target, 'web.shop.svc.cluster.local A');
    await askTcp(dns.target, 'no.shop.svc.cluster.local A');
    await addService('late', '10.96.7.8');
    await until(
      'the new name',
      async () => (await askUdp(dns.target, 'late.shop.svc.cluster.local A')) === '10.96.7.8',
    );
    const text = await admin(dns, '/metrics');
    expect(text).toMatch(/portolan_dns_queries_total\{zone="cluster\.local",rcode="NOERROR"\} [1-9]/);
    expect(text).toMatch(/portolan_dns_queries_total\{zone="cluster\.local",rcode="NXDOMAIN"\} [1-9]/);
    expect(text).toMatch(/portolan_dns_query_seconds_bucket\{zone="cluster\.local",le="\+Inf"\} [1-9]/);
    expect(text).toMatch(/portolan_dns_change_to_answer_seconds_count [1-9]/);
  });

  test('explain and the query log -> asked and switched while it runs', async () => {
    const dns = await resolver();
    await dns.whenReady();
    const why = await admin(dns, '/explain?name=web.shop.svc.cluster.local');
    expect(JSON.parse(why.slice(4))).toMatchObject({
      handler: 'cluster',
      records: [{ text: 'A 10.96.7.7', sources: [{ kind: 'Service', name: 'shop/web' }] }],
    });
    expect(await admin(dns, '/explain')).toMatch(/^400 want \/explain\?name=NAME/);
    const typed = await runPortolan(['dig', 'web.shop.svc.cluster.local', '--admin', dns.admin]);
    expect(typed.out).toContain('A 10.96.7.7');
    await askUdp(dns.target, 'quiet.shop.svc.cluster.local A');
    expect(await admin(dns, '/querylog?state=on', 'POST')).toBe('200 {"queryLog":"on"}');
    await askUdp(dns.target, 'loud.shop.svc.cluster.local A');
    await until('a line', () => dns.log().includes('loud.shop.svc.cluster.local'));
    expect(dns.log()).not.toContain('quiet.shop');
    expect(await admin(dns, '/querylog?state=off', 'POST')).toBe('200 {"queryLog":"off"}');
    expect(await admin(dns, '/querylog?state=maybe', 'POST')).toMatch(/^400 /);
    expect(await admin(dns, '/querylog', 'DELETE')).toMatch(/^405 /);
  });

  test('names that its nameserver never resolves -> they fail in the time given, all others go on; counted', async () => {
    const upstream = createSocket('udp4');
    upstream.on('message', (message, from) => {
      const { id, questions } = packet.decode(message);
      const { name } = questions![0]!;
      if (name.startsWith('slow')) return;
      const answers = [{ type: 'A', name, ttl: 60, data: '203.0.113.1' }] as never;
      upstream.send(packet.encode({ type: 'response', id, questions, answers }), from.port, from.address);
    });
    upstream.bind(0, '127.0.0.1');
    await once(upstream, 'listening');
    const server = `127.0.0.1:${upstream.address().port}`;
    const times = ['--forward-timeout-ms', '1700', '--forward-resend-ms', '800'];
    // As /etc/resolv.conf would name it, if that could name a port.
    const resolvConf = `${directory}/resolv.conf`;
    writeFileSync(resolvConf, `search example.com\nnameserver ${server}\n`);
    const dns = await resolver('--forward', resolvConf, '--workers', '2', ...times);
    await dns.whenReady();
    const slow = Array.from({ length: 10 }, (_, i) => askUdp(dns.target, `slow-${i}.example.com A`));
    const failing = Promise.all(slow);
    for (let i = 0; i < 10; i++) expect(await askUdp(dns.target, `fast-${i}.example.com A`)).toBe('203.0.113.1');
    expect(new Set(await failing)).toEqual(new Set(['SERVFAIL']));
    expect(await askUdp(dns.target, 'after.example.com A')).toBe('203.0.113.1');
    const text = await admin(dns, '/metrics');
    expect(text).toContain(`portolan_dns_upstream_up{server="${server}"} 1`);
    expect(text).toContain('portolan_dns_cache_total{result="miss"} 21');
    expect(text).toMatch(new RegExp(`portolan_dns_upstream_unanswered_total{server="${server}"} [1-9]`));
    expect(text).toContain('portolan_dns_worker_restarts_total 0');
    upstream.close();
  });

  test('in place of CoreDNS: names of Pods, empty services ignored, a bound on queries that wait -> as the flags say', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-0', namespace: 'shop' } };
    const made = await client.create<Pod>(podType, { ...pod, spec: { containers: [{ name: 'web', image: 'web' }] } });
    await client.updateStatus<Pod>(podType, { ...made, status: { podIP: '10.244.0.7' } });
    const silent = createSocket('udp4').bind(0, '127.0.0.1');
    await once(silent, 'listening');
    const upstream = ['--forward', `127.0.0.1:${silent.address().port}`, '--forward-waiting', '4', '--workers', '0'];
    const times = ['--forward-timeout-ms', '1500'];
    const verified = await resolver('--pods', 'verified', '--ignore-empty-service', ...upstream, ...times);
    const insecure = await resolver('--pods', 'insecure');
    await Promise.all([verified.whenReady(), insecure.whenReady()]);
    const named = (label: string) => `${label}.shop.pod.cluster.local A`;
    const answers = async ({ target }: DnsProcess) =>
      Promise.all(
        [named('10-244-0-7'), named('10-244-0-8'), 'web.shop.svc.cluster.local A'].map((name) => askUdp(target, name)),
      );
    expect(await answers(verified)).toEqual(['10.244.0.7', 'NXDOMAIN', 'NXDOMAIN']);
    expect(await answers(insecure)).toEqual(['10.244.0.7', '10.244.0.8', '10.96.7.7']);
    const waiting = Array.from({ length: 5 }, (_, i) =>
      askUdpRaw(verified.target, encodeQuestion(`slow-${i}.example.com A`, { edns: true })),
    );
    const first = await Promise.race(waiting);
    expect(extendedErrorOf(packet.decode(first))).toContain('too many questions');
    await Promise.allSettled(waiting);
    silent.close();
  });

  test('hosts, rules, a ConfigMap and a file of nameservers -> in use at the start, and read again; what is wrong leaves the earlier content', async () => {
    const upstreams = await Promise.all(['203.0.113.1', '203.0.113.2'].map(startUpstream));
    const [hosts, rules, resolvConf] = ['hosts', 'rules.yaml', 'local-resolv.conf'].map(
      (name) => `${directory}/${name}`,
    );
    writeFileSync(hosts!, '10.1.0.7 db.corp.example\n10.1.0.8 gone.corp.example\n');
    writeFileSync(rules!, 'rewrites: [{suffix: old.example, to: shop.svc.cluster.local}]');
    writeFileSync(resolvConf!, `nameserver ${upstreams[0]!.server}\n`);
    const files = ['--hosts', hosts!, '--name-rules', rules!, '--forward', resolvConf!, '--names-from', 'names'];
    const dns = await resolver(...files, '--workers', '2', '--local-ttl', '9');
    await dns.whenReady();
    const ask = (question: string) => askUdp(dns.target, question);
    expect(await ask('db.corp.example A')).toBe('10.1.0.7');
    expect(await ask('web.old.example A')).toBe('web.shop.svc.cluster.local, 10.96.7.7');
    expect(await ask('other.example A')).toBe('203.0.113.1');
    expect(await ask('own.corp.example A')).toBe('203.0.113.1');
    const typed = await runPortolan(['dig', 'db.corp.example', '--admin', dns.admin]);
    expect(typed.out).toMatch(/NOERROR by local\n {2}A 10\.1\.0\.7 {2}ttl 9\n {4}local records and rules/);
    const data = {
      records: 'own.corp.example A 10.1.0.9',
      rules: 'templates: [{suffix: ads.example, rcode: NXDOMAIN}]',
    };
    const metadata = { name: 'names', namespace: systemNamespace };
    await client.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    writeFileSync(hosts!, '10.1.0.70 db.corp.example\n');
    writeFileSync(resolvConf!, `nameserver ${upstreams[1]!.server}\n`);
    writeFileSync(rules!, 'rewrites: [{suffix: old.example, to: x.old.example}]');
    // In every thread.
    const all = async (question: string) =>
      [...new Set(await Promise.all([1, 2, 3, 4, 5, 6].map(() => ask(question))))].join(' | ');
    await until('the ConfigMap', async () => (await all('own.corp.example A')) === '10.1.0.9');
    expect(await all('x.ads.example A')).toBe('NXDOMAIN');
    await until('the file of hosts', async () => (await all('db.corp.example A')) === '10.1.0.70');
    await until('the removed line', async () => (await all('gone.corp.example A')) === '203.0.113.2');
    await until('the other nameserver', async () => (await all('other.example A')) === '203.0.113.2');
    await until('the problem', async () => /a loop/.test(await admin(dns, '/readyz')));
    expect(await ask('web.old.example A')).toBe('web.shop.svc.cluster.local, 10.96.7.7');
    await client.delete(configMapType, { namespace: systemNamespace, name: 'names' });
    await until('the end of the ConfigMap', async () => (await all('own.corp.example A')) === '203.0.113.2');
    for (const { close } of upstreams) close();
  });

  test('a file of rules that cannot be used at the start -> an error that names the rule', async () => {
    const file = `${directory}/bad-rules.yaml`;
    writeFileSync(file, 'templates: [{regex: "(", rcode: NXDOMAIN}]');
    const { code, err } = await runPortolan([
      'dns',
      '--cluster-id',
      'a',
      '--kubeconfig',
      home.kubeconfig,
      '--name-rules',
      file,
    ]);
    expect(err).toContain(`--name-rules ${file}: templates 1: regex (: `);
    expect(code).toBe(2);
  });

  test('a port that another server holds, with threads on both sides -> an error that names it', async () => {
    const dns = await resolver('--workers', '2');
    const taken = `127.0.0.1:${dns.target.port}`;
    const flags = ['--cluster-id', 'a', '--kubeconfig', home.kubeconfig, '--workers', '2', '--listen', taken];
    const { code, err } = await runPortolan(['dns', ...flags]);
    expect(err).toContain(`cannot listen on ${taken}: another process has this port`);
    expect(code).toBe(1);
  });

  test('an import and its slice made by hand, no agent anywhere -> answered and followed [003-12]', async () => {
    const spec = { type: 'Headless', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] };
    await make(serviceImportType, 'shop', 'byhand', { spec });
    await make(endpointSliceType, 'shop', 'byhand-west', {
      labels: {
        'multicluster.kubernetes.io/service-name': 'byhand',
        'multicluster.kubernetes.io/source-cluster': 'west',
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.2.0.7'], conditions: { ready: true } }],
    });
    const { target, whenReady } = await resolver();
    await whenReady();
    const named = 'byhand.shop.svc.clusterset.local A';
    await until('the address', async () => (await askUdp(target, named)) === '10.2.0.7');
    await client.delete(serviceImportType, { namespace: 'shop', name: 'byhand' });
    await until('its end', async () => (await askUdp(target, named)) === 'NXDOMAIN');
  });

  test('the DNS options of the clusterset -> names of clusters, TTL and its zone, while it runs and at the next start', async () => {
    const spec = { type: 'ClusterSetIP', ips: ['243.0.0.9'], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] };
    await make(serviceImportType, 'shop', 'cart', { spec });
    await make(endpointSliceType, 'shop', 'cart-east', {
      labels: {
        'multicluster.kubernetes.io/service-name': 'cart',
        'multicluster.kubernetes.io/source-cluster': 'east',
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.1.0.9'], conditions: { ready: true } }],
    });
    const { target, whenReady } = await resolver('--workers', '2');
    await whenReady();
    const ttl = async () => {
      const reply = packet.decode(await askUdpRaw(target, encodeQuestion('cart.shop.svc.clusterset.local A')));
      return (reply.answers?.[0] as { ttl?: number } | undefined)?.ttl;
    };
    await until('the import', async () => (await ttl()) === 5);
    const named = 'east.cart.shop.svc.clusterset.local A';
    expect(await askUdp(target, named)).toBe('NXDOMAIN');
    const options = { zone: 'clusterset.local', ttlSeconds: 20, clusterNames: 'Served' as const };
    await client.create(configMapType, dnsOptionsManifest(options).object);
    await until('the name of its cluster', async () => (await askUdp(target, named)) === '10.1.0.9');
    await until(
      'the TTL in every thread',
      async () => (await Promise.all([1, 2, 3, 4].map(ttl))).join() === '20,20,20,20',
    );
    const { object } = dnsOptionsManifest({ zone: 'mesh.example', ttlSeconds: 5, clusterNames: 'Hidden' });
    const ref = { namespace: systemNamespace, name: object.metadata.name };
    await client.patch(configMapType, ref, { kind: 'merge', body: { data: object.data } });
    const moved = 'cart.shop.svc.mesh.example A';
    await until(
      'the new zone in every thread',
      async () =>
        (await Promise.all([1, 2, 3, 4].map(() => askUdp(target, moved)))).join() === Array(4).fill('243.0.0.9').join(),
    );
    expect(await askUdp(target, 'cart.shop.svc.clusterset.local A')).toBe('REFUSED');
    const again = await resolver();
    await again.whenReady();
    expect(await askUdp(again.target, 'cart.shop.svc.mesh.example A')).toBe('243.0.0.9');
    await client.delete(configMapType, ref);
  });

  test('SIGTERM with --lameduck -> goes on answering and says that it is stopping, then ends', async () => {
    const dns = await resolver('--lameduck', '3');
    await dns.whenReady();
    const isReady = async () => (await fetch(`${dns.admin}/readyz`)).status;
    expect(await isReady()).toBe(200);
    const ended = dns.stop('SIGTERM');
    await until('it says that it is stopping', async () => (await isReady()) === 503);
    expect(await askUdp(dns.target, 'no.shop.svc.cluster.local A')).toBe('NXDOMAIN');
    expect(dns.child.exitCode).toBe(null);
    await ended;
    expect(dns.child.exitCode).toBe(0);
  });

  test('two threads -> both transports answer, and the log of both is one', async () => {
    const dns = await resolver('--workers', '2');
    await dns.whenReady();
    await admin(dns, '/querylog?state=on', 'POST');
    for (let i = 0; i < 8; i++) expect(await askUdp(dns.target, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
    expect(await askTcp(dns.target, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
    await until('nine lines', () => dns.log().split('"name":"web.shop.svc.cluster.local"').length === 10);
  });

  test('threads not asked for -> one for each core beyond the first; asked for -> as many', async () => {
    const threads = ({ child }: DnsProcess) => {
      const tasks = `/proc/${child.pid}/task`;
      return readdirSync(tasks).filter((id) => readFileSync(`${tasks}/${id}/comm`, 'utf8') === 'dns\n').length;
    };
    const [core = ''] = /(?<=^Cpus_allowed_list:\s+)\d+/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    const args = ['--cluster-id', 'east', '--kubeconfig', home.kubeconfig];
    const pinned = await startDnsProcess(args, { within: ['taskset', '-c', core] });
    running.add(pinned);
    expect([threads(pinned), threads(await resolver())]).toEqual([0, Math.min(16, availableParallelism() - 1)]);
    expect(threads(await resolver('--workers', '3'))).toBe(3);
  });

  test('a certificate -> DNS over TLS on the same address', async () => {
    const authority = makeAuthority('dns authority');
    const { certificate, key } = authority.issue('dns', { kind: 'server', hosts: ['127.0.0.1'] });
    writeFileSync(`${directory}/tls.crt`, certificate);
    writeFileSync(`${directory}/tls.key`, key, { mode: 0o600 });
    const dns = await resolver(
      '--tls-port',
      '0',
      '--tls-cert',
      `${directory}/tls.crt`,
      '--tls-key',
      `${directory}/tls.key`,
    );
    await dns.whenReady();
    const socket = connectTls({
      host: '127.0.0.1',
      port: dns.tlsPort,
      ca: authority.certificate,
      ALPNProtocols: ['dot'],
    });
    const reading = readFrames(socket, 1);
    socket.write(framed(encodeQuestion('web.shop.svc.cluster.local A')));
    expect(describeAnswer((await reading)[0]!)).toBe('10.96.7.7');
    socket.destroy();
    const later = authority.issue('renewed', { kind: 'server', hosts: ['127.0.0.1'] });
    writeFileSync(`${directory}/tls.crt`, later.certificate);
    writeFileSync(`${directory}/tls.key`, later.key);
    const shown = () =>
      new Promise((resolve, reject) => {
        const next = connectTls({ host: '127.0.0.1', port: dns.tlsPort, ca: authority.certificate }, () => {
          resolve(next.getPeerCertificate().subject.CN);
          next.destroy();
        });
        next.on('error', reject);
      });
    await expect.poll(shown, { timeout: 25_000, interval: 500 }).toBe('renewed');
  });

  test('stub zones and zones of others given at start, an existing server for the cluster domain -> asked there [001-10, 001-50]', async () => {
    const other = await resolver();
    await other.whenReady();
    const dns = await resolver(
      '--cluster-domain-forward',
      `127.0.0.1:${other.port}`,
      '--forward-zone',
      `svc.cluster.test=127.0.0.1:${other.port}`,
    );
    await dns.whenReady();
    expect(await askUdp(dns.target, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
    expect(await askUdp(dns.target, '7.7.96.10.in-addr.arpa PTR')).toBe('web.shop.svc.cluster.local');
    expect(JSON.parse((await admin(dns, '/explain?name=web.shop.svc.cluster.local')).slice(4))).toMatchObject({
      handler: 'stub',
      records: [{ sources: [{ kind: 'upstream', name: `127.0.0.1:${other.port} for cluster.local` }] }],
    });
    expect(await askUdp(dns.target, 'x.svc.cluster.test A')).toBe('REFUSED');
  });

  describe('the endpoint for stub zones', () => {
    const authority = makeAuthority('federation authority');
    const issued = {
      listed: authority.issue('federation-agent', { kind: 'client' }),
      unlisted: authority.issue('somebody', { kind: 'client' }),
      foreign: makeAuthority('another authority').issue('federation-agent', { kind: 'client' }),
    };
    const file = `${directory}/stub-zones.json`;

    async function startWithEndpoint(...args: string[]): Promise<DnsProcess> {
      const { certificate, key } = authority.issue('resolver', { kind: 'server', hosts: ['127.0.0.1'] });
      writeFileSync(`${directory}/stub.crt`, certificate);
      writeFileSync(`${directory}/stub.key`, key, { mode: 0o600 });
      writeFileSync(`${directory}/ca.crt`, authority.certificate);
      const flags = { listen: '127.0.0.1:0', cert: `${directory}/stub.crt`, key: `${directory}/stub.key` };
      const more = { 'client-ca': `${directory}/ca.crt`, identity: 'federation-agent', file };
      const stubs = Object.entries({ ...flags, ...more }).flatMap(([flag, value]) => [`--stub-${flag}`, value]);
      return resolver(...stubs, ...args);
    }

    async function send(dns: DnsProcess, method: string, who?: keyof typeof issued, body = ''): Promise<number> {
      return (await sendAndRead(dns, method, who, body)).status;
    }

    function sendAndRead(dns: DnsProcess, method: string, who: keyof typeof issued | undefined, body: string) {
      const identity = who === undefined ? {} : { cert: issued[who].certificate, key: issued[who].key };
      const options = { method, ca: authority.certificate, agent: false as const, ...identity };
      return new Promise<{ status: number; text: string }>((resolve, reject) => {
        const request = httpsRequest(`${dns.stubs}/federations/world`, options, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        });
        request.on('error', reject);
        request.end(body);
      });
    }

    /** What a cluster is configured with; leases and Events are renewed all the time. */
    async function configuration(): Promise<string[]> {
      const types = [configMapType, serviceType, endpointSliceType, namespaceType, podType, secretType];
      const lists = await Promise.all(types.map((type) => client.list<AnyObject>(type)));
      return lists.flatMap(({ items }) => items.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`));
    }

    test('a listed certificate posts -> asked there, also after a restart, until it deletes; nothing in the home changes [001-18, 001-44]', async () => {
      const upstream = await resolver('--clusterset-domain', 'world.svc.federation');
      await upstream.whenReady();
      const nameservers = JSON.stringify({ nameservers: [`127.0.0.1:${upstream.port}`] });
      const dns = await startWithEndpoint();
      await dns.whenReady();
      const before = await configuration();
      expect(before.length).toBeGreaterThan(5);
      const name = 'dns-version.world.svc.federation TXT';
      expect(await askUdp(dns.target, name)).toBe('REFUSED');
      expect(await send(dns, 'POST', 'listed', nameservers)).toBe(200);
      expect(await askUdp(dns.target, name)).toBe('"1.0.0"');
      await dns.stop();
      const again = await startWithEndpoint();
      await again.whenReady();
      expect(await askUdp(again.target, name)).toBe('"1.0.0"');
      expect(await send(again, 'GET', 'listed')).toBe(200);
      expect(await send(again, 'DELETE', 'listed')).toBe(200);
      expect(await askUdp(again.target, name)).toBe('REFUSED');
      expect(await configuration()).toEqual(before);
    });

    test("the clusterset's zone is renamed -> no federation can take the new name any more", async () => {
      const dns = await startWithEndpoint();
      await dns.whenReady();
      const post = () => send(dns, 'POST', 'listed', '{"nameservers": ["127.0.0.1:9"], "suffix": "mesh.example"}');
      expect(await post()).toBe(200);
      expect(await send(dns, 'DELETE', 'listed')).toBe(200);
      const { object } = dnsOptionsManifest({ zone: 'mesh.example', ttlSeconds: 5, clusterNames: 'Hidden' });
      await client.create(configMapType, object);
      await until('its name is closed', async () => (await post()) === 403);
      await send(dns, 'DELETE', 'listed');
      await client.delete(configMapType, { namespace: systemNamespace, name: object.metadata.name });
    });

    test('an unlisted certificate, one of another authority, none, or nonsense -> refused, nothing changes [001-18]', async () => {
      const dns = await startWithEndpoint();
      const body = '{"nameservers": ["127.0.0.1:9"]}';
      expect(await send(dns, 'POST', 'unlisted', body)).toBe(403);
      expect(await send(dns, 'POST', 'foreign', body)).toBe(401);
      expect(await send(dns, 'POST', undefined, body)).toBe(401);
      expect(await send(dns, 'POST', 'listed', '{"nameservers": ["not an address"]}')).toBe(400);
      expect(await send(dns, 'GET', 'listed')).toBe(404);
    });
  });

  test.each([
    [['--etcd', 'http://127.0.0.1:1', '--federation', 'world'], 'portolan authority --federation world, with the same'],
    [['--cluster-id', 'a', '--forward', 'nonsense'], '--forward nonsense: nameserver "nonsense": want an address'],
    [['--cluster-id', 'a', '--stub', 'zone'], '--stub zone: want ZONE=NAMESERVER'],
    [['--cluster-id', 'a', '--client', '10.0.0.0/99'], '--client 10.0.0.0/99: want an address or a range'],
    [['--cluster-id', 'a', '--workers', '-1'], '--workers -1: want a number'],
    [['--cluster-id', 'a', '--source-option', '65000'], '--source-option 65000: want a number from 65001 to 65534'],
    [['--cluster-id', 'a', '--forward-timeout-ms', '5'], '--forward-timeout-ms 5: want a number from 100 to 60000'],
    [['--cluster-id', 'a', '--forward-resend-ms', 'soon'], '--forward-resend-ms soon: want a number'],
    [['--cluster-id', 'a', '--tls-cert', 'x'], '--tls-cert: want --tls-key FILE too'],
    [['--cluster-id', 'a', '--stub-listen', '127.0.0.1:0', '--stub-cert', 'x'], 'or any client could post'],
    [['--cluster-id', 'a', '--pods', 'some'], 'Allowed choices are disabled, insecure, verified'],
    [['--cluster-id', 'a', '--forward', '/none', '--kubeconfig', '/none'], '--forward /none: no such file'],
    [['--cluster-id', 'a', '--lameduck', '601'], '--lameduck 601: want a number'],
    [['--cluster-id', 'a', '--stub-suffix', 'no_name'], '--stub-suffix no_name: '],
  ])('flags %j -> an error that says %s', async (flags, message) => {
    const kubeconfig = flags.includes('--cluster-id') ? ['--kubeconfig', home.kubeconfig] : [];
    const { code, err } = await runPortolan(['dns', ...kubeconfig, ...flags]);
    expect(err).toContain(message);
    expect(code).toBe(2);
  });
});
