// The demo as a person meets it: every line it prints is run as printed, a cluster is cut off and healed, and Ctrl-C
// leaves nothing behind.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { type ClientRequest, get } from 'node:http';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith, pathOf } from './support/counterparts.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The user without rights on every Linux. */
const nobody = 65_534;

describeWith(['kubectl', 'dig'], 'demo', () => {
  const directory = mkdtempSync(`${tmpdir()}/portolan-demo-`);
  let child: ChildProcess;
  let printed = '';
  let cpuSecondsAtReady: number | undefined;

  beforeAll(async () => {
    child = spawn(`${root}bin/portolan`, ['demo', '--dir', directory], {
      cwd: root,
      // With Envoys it takes more: demo-envoy.test.ts.
      env: { ...process.env, PATH: pathWithoutEnvoy() },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let errors = '';
    child.stderr?.on('data', (chunk) => {
      errors += chunk;
    });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the demo ended with ${code}: ${printed}${errors}`)));
      child.stdout?.on('data', (chunk) => {
        printed += chunk;
        if (!/^ready$/m.test(printed)) return;
        cpuSecondsAtReady ??= cpuSecondsOf(child);
        resolve();
      });
    });
  });

  afterAll(() => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  const lines = () => [...printed.matchAll(/^ {4}(\S.*)$/gm)].map((match) => match[1] as string);
  const run = (line: string) => {
    const command = line.replace(/(^|\| )kubectl/, `$1${pathOf('kubectl')}`);
    return execFileSync('sh', ['-c', command], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  };
  const find = (...words: string[]) => lines().find((line) => words.every((word) => line.includes(word))) as string;
  const file = () => JSON.parse(readFileSync(`${directory}/demo.json`, 'utf8'));
  const dig = (cluster: string, name: string) => {
    const [host, port] = file().clusters[cluster].dns.split(':');
    return run(`dig @${host} -p ${port} ${name} +short`)
      .split('\n')
      .filter((line) => line !== '')
      .sort();
  };

  test('demo: ready -> with less than ten seconds of CPU; how long people wait is measured by bench:demo', () => {
    expect(cpuSecondsAtReady).toBeGreaterThan(0);
    expect(cpuSecondsAtReady).toBeLessThan(10);
  });

  test('demo: while it starts -> a line for the broker and for each cluster before the screen', () => {
    const progress = printed.slice(0, printed.indexOf('Portolan: a broker'));
    expect(
      progress
        .match(/^ {2}\w+/gm)
        ?.map((line) => line.trim())
        .sort(),
    ).toEqual(['acme', 'broker', 'east', 'south', 'west']);
  });

  test('demo: demo.json -> where everything is: east and west in one region, south in another', () => {
    const { broker, clusters, federation } = file();
    expect(readFileSync(broker.kubeconfig, 'utf8')).toContain('clusters:');
    expect(Object.keys(clusters)).toEqual(['east', 'west', 'south']);
    for (const { kubeconfig, dns, zone } of Object.values<Record<string, string>>(clusters)) {
      expect(readFileSync(kubeconfig!, 'utf8')).toContain('clusters:');
      expect(dns).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(zone).not.toBe('');
    }
    expect(clusters.east.region).toBe(clusters.west.region);
    expect(clusters.south.region).not.toBe(clusters.east.region);
    expect(federation).toMatchObject({ name: 'world', suffix: 'federation' });
    expect(federation.dns).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  test('demo: a second one beside it, of a user without rights -> ready on its own ports, nothing outside its folder', async () => {
    const place = mkdtempSync(`${tmpdir()}/portolan-second-`);
    chmodSync(place, 0o755);
    const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
    if (user.uid !== undefined) chownSync(place, nobody, nobody);
    const second = spawn(`${root}bin/portolan`, ['demo', '--dir', 'here'], {
      cwd: place,
      env: { PATH: process.env['PATH'], HOME: place, TMPDIR: place },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user,
    });
    const ended = new Promise((resolve) => second.once('exit', resolve));
    let said = '';
    for (const stream of [second.stdout, second.stderr]) stream.on('data', (chunk) => (said += chunk));
    await Promise.race([
      ended,
      new Promise<void>((resolve) => second.stdout.on('data', () => said.endsWith('ready\n') && resolve())),
    ]);
    expect(said).toMatch(/^ready$/m);
    expect(readdirSync(place)).toEqual(['here']);
    const ports = (path: string) =>
      Object.values<{ dns: string }>(JSON.parse(readFileSync(path, 'utf8')).clusters).map(({ dns }) => dns);
    const all = [...ports(`${directory}/demo.json`), ...ports(`${place}/here/demo.json`)];
    expect(new Set(all).size).toBe(6);
    second.kill('SIGINT');
    await ended;
    rmSync(place, { recursive: true, force: true });
  });

  test('demo: every line it prints -> works as printed', () => {
    expect(lines().length).toBeGreaterThan(8);
    for (const line of lines()) expect(() => run(line), line).not.toThrow();
  });

  // On a busy machine a lease may run out for a moment: right answers come, if not at once.
  const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 60_000, interval: 300 });

  test('demo: the policy that it prints -> west, then its region, then any; deleted -> each cluster in turn', async () => {
    run(find('apply', 'nearest'));
    const who = () => {
      const answers = Array.from({ length: 12 }, () => run(find('curl', '?nearest')).split(',')[0]);
      return [...new Set(answers)].sort();
    };
    await eventually(who).toEqual(['checkout in west']);
    const west = file().clusters.west.kubeconfig;
    const routing = "get serviceimport checkout -n shop -o jsonpath='{.metadata.annotations.portolan\\.dev/routing}'";
    expect(run(`kubectl --kubeconfig ${west} ${routing}`)).toBe('{"g":[[["west"]],[["east","west"]]]}');
    run(`kubectl --kubeconfig ${west} delete serviceimportpolicy nearest`);
    await eventually(who).toEqual(['checkout in east', 'checkout in south', 'checkout in west']);
  });

  test('demo: an export in one cluster -> imported in another, under one name [003-02, 003-19]', async () => {
    const imports = find('serviceimports');
    await eventually(() => run(imports)).toMatch(/checkout\s+ClusterSetIP\s+127\.\S+\s/);
    await eventually(() => run(`${imports} -o wide`)).toMatch(/checkout\s+ClusterSetIP\s.*east.*south.*west/);
    await eventually(() => dig('west', 'checkout.shop.svc.clusterset.local')).toEqual([
      expect.stringMatching(/^127\.(6[4-9]|[7-9]\d|1\d\d|2[0-4]\d|25[0-3])\./),
    ]);
  });

  test('demo: a headless service of two clusters -> every ready address', async () => {
    const all = ['127.1.0.2', '127.1.0.3', '127.3.0.2', '127.3.0.3'];
    await eventually(() => dig('west', 'db.shop.svc.clusterset.local')).toEqual(all);
  });

  test('demo: a federated name asked in west -> its own address first, then its region, then the rest [001-02]', () => {
    const answer = run(find('dig', 'checkout.shop.world.svc.federation')).split('\n');
    const own = dig('west', 'checkout.shop.svc.clusterset.local');
    expect(answer).toEqual([...own, '127.1.0.1', '127.3.0.1']);
    expect(dig('south', 'checkout.shop.world.svc.federation')).toContain('127.3.0.1');
  });

  test('demo: the federated name in west and in south -> curl gets an answer at the first address, never a cluster IP', () => {
    const [west, south] = lines().filter((line) => line.startsWith('curl') && line.includes('svc.federation'));
    expect(run(west!)).toMatch(/^checkout in (east|west|south), from 127\./);
    expect(run(south!)).toBe('checkout in south, from 127.3.0.1');
    for (const cluster of ['east', 'west', 'south'])
      expect(dig(cluster, 'checkout.shop.world.svc.federation').join()).not.toMatch(/\b10\./);
  });

  test('demo: south has no proxy -> doctor names the imports that nothing serves; west has one -> it does not', () => {
    expect(run(find('doctor', 'south'))).toMatch(/^PTL0903 warning south \d ServiceImports: .*NotCarried/m);
    expect(run(find('doctor', 'south').replaceAll('south', 'west'))).not.toContain('PTL0903');
  });

  test('demo: the federation -> posted to every resolver by its authority, as its status shows', () => {
    const { kubeconfig } = file().broker;
    const json = run(`kubectl --kubeconfig ${kubeconfig} get federation world -n demo -o json`);
    const { status } = JSON.parse(json);
    expect(status.stubZones.map((each: { cluster: string; state: string }) => `${each.cluster} ${each.state}`)).toEqual(
      ['east Posted', 'south Posted', 'west Posted'],
    );
    const stored = JSON.parse(readFileSync(`${directory}/west/stub-zones.json`, 'utf8'));
    expect(stored.federations.world.nameservers).toEqual([file().federation.dns]);
  });

  test('demo: the curl line for the clusterset IP -> a backend of each cluster in turn, no request fails', async () => {
    const line = find('curl', ':8080/');
    expect(run(line)).toMatch(/^checkout in (east|west|south), from 127\.[123]\.0\.1$/);
    const url = /http:\S+/.exec(line)![0];
    const seen = new Set<string>();
    for (let each = 0; each < 60; each += 1) seen.add(clusterIn(await request(url)));
    expect([...seen].sort()).toEqual(['east', 'south', 'west']);
  });

  test('demo: test connectivity -> who answered, by cluster', () => {
    expect(run(find('test connectivity'))).toMatch(
      /100 connected\n( {2}\d+ by 127\.[123]\.0\.1:\d+, cluster \w+\n?){3}/,
    );
  });

  test('demo: the curl line -> the backend says who it is', () => {
    expect(run(find('curl', '127.1.0.'))).toMatch(/^db in east, from 127\.1\.0\.\d$/);
  });

  test('demo: dig from a cluster -> the answer and what stands behind each record', () => {
    const text = run(find('dig db.shop.svc.clusterset.local', '--from south'));
    expect(text).toMatch(/^db\.shop\.svc\.clusterset\.local A from south: NOERROR by clusterset$/m);
    expect(text).toMatch(
      /A 127\.1\.0\.2 .*\n +ServiceImport shop\/db, revision \d+, .* old\n +EndpointSlice shop\/\S+, cluster east/,
    );
    const json = JSON.parse(run(`${find('dig checkout.shop.world', '--from west')} -o json`));
    expect(json).toMatchObject({ handler: 'stub', from: 'west', authority: { handler: 'authority', from: 'west' } });
    expect(json.authority.records[0].sources).toMatchObject([{}, { kind: 'shard', cluster: 'west' }]);
  });

  test('demo: dig for a cluster that is not there, or without a demo -> an error that says so', () => {
    expect(() => run(`bin/portolan dig x.y.svc.clusterset.local --from north --dir ${directory}`)).toThrow(
      'the demo has east, west, south',
    );
    expect(() => run('bin/portolan dig x.y --dir /nonexistent')).toThrow('no demo runs in /nonexistent');
    expect(() => run(`bin/portolan dig x.y NONSENSE --dir ${directory}`)).toThrow('type NONSENSE is not a record type');
  });

  test('demo: two clusters disagree -> the conflict says who won and why [003-30]', () => {
    expect(run(find('describe serviceexport cart'))).toContain('PortConflict,SessionAffinityConflict');
  });

  test('demo: an export for west alone -> an answer in west, none in south', () => {
    expect(dig('west', 'reports.shop.svc.clusterset.local')).toHaveLength(1);
    expect(dig('south', 'reports.shop.svc.clusterset.local')).toEqual([]);
  });

  test('demo: a second company -> a peer of west that shares one service, answered in west under its own name', () => {
    // Without an Envoy nothing answers at its ingress.
    expect(run(find('peer list'))).toMatch(/^acme\s.*\sSynced, IngressAway\s+1\s/m);
    expect(run(find('peer services acme'))).toMatch(/^invoices\.billing\.acme\.example\s.*\sIngressAway/m);
    expect(dig('west', 'invoices.billing.acme.example')).toEqual([expect.stringMatching(/^127\.\d+\.1[2-9]\d\./)]);
    expect(dig('east', 'invoices.billing.acme.example')).toEqual([]);
  });

  test('demo: an external service with TLS -> a virtual IP and a name in west; its authority is in a Secret', () => {
    const [ip = ''] = dig('west', 'rates.bank.example');
    expect(ip).toMatch(/^127\.\d+\.(19[2-9]|2[012]\d)\./);
    expect(run(find('get meshexternalservices'))).toMatch(
      new RegExp(`^rates\\s+Regular\\s+True\\s+False\\s+${ip}\\s+rates\\.bank\\.example`, 'm'),
    );
    expect(run(find('explain connection'))).toMatch(/goes to\s+127\.5\.0\.1:\d+ over TLS, verified by CA/);
  });

  test('demo: a generator and an external service made at the broker -> a name with an address in every cluster', async () => {
    const spec = {
      match: [{ type: 'InternalVIP', port: 80, protocol: 'http' }],
      destination: { type: 'Regular', endpoints: [{ address: '127.5.0.1' }] },
    };
    const target = { targetRef: { kind: 'MeshExternalService' }, template: '{{ name }}.svc.meshext.local' };
    const made = [
      ['HostnameGenerator', 'external', target],
      ['MeshExternalService', 'partner', spec],
    ].map(([kind, name, content]) => ({
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind, metadata: { name, namespace: 'demo' }, spec: content },
    }));
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: made });
    const broker = `--kubeconfig ${file().broker.kubeconfig}`;
    execFileSync('sh', ['-c', `${pathOf('kubectl')} ${broker} create -f -`], { input: list });
    for (const cluster of ['east', 'west', 'south'])
      await expect
        .poll(() => dig(cluster, 'partner.svc.meshext.local'), { timeout: 15_000 })
        .toEqual([expect.stringMatching(/^127\.\d+\.(19[2-9]|2[012]\d)\./)]);
    for (const { kind, metadata } of made)
      execFileSync('sh', ['-c', `${pathOf('kubectl')} ${broker} delete -n demo ${kind} ${metadata.name}`]);
    await expect.poll(() => dig('south', 'partner.svc.meshext.local'), { timeout: 15_000 }).toEqual([]);
  }, 60_000);

  test('demo: status -> the peer and the external service beside clusters and services', () => {
    const text = run(find('portolan status'));
    expect(text).toMatch(/^acme\s+Synced, IngressAway\s+1$/m);
    expect(text, 'no Envoy carries it').toMatch(/^rates\s+NotProgrammed\s+rates\.bank\.example$/m);
  });

  test('demo: a backend behind a name -> answers for itself [003-02]', async () => {
    const [record] = dig('east', '_http._tcp.db.shop.svc.clusterset.local SRV');
    const [, , port, target] = (record as string).split(' ');
    const [address] = dig('east', target as string);
    expect(await (await fetch(`http://${address}:${port}/`)).text()).toContain(`from ${address}`);
  });

  test('demo: east is cut off -> gone from answers, and back when it is healed [003-21]', async () => {
    const wait = async (isDone: () => boolean) => {
      for (let tries = 0; tries < 120 && !isDone(); tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 250));
      expect(isDone()).toBe(true);
    };
    const hasEast = () => dig('west', 'db.shop.svc.clusterset.local').includes('127.1.0.2');
    await wait(hasEast);
    const clients = startRequests(/http:\S+/.exec(find('curl', ':8080/'))![0]);
    run(`bin/portolan demo break east --dir ${directory}`);
    await wait(() => !hasEast());
    await wait(() => clients.seenLately().size === 2);
    expect(await clients.stop(), 'requests to the clusterset IP').toMatchObject({ failures: [] });
    expect([...clients.seenLately()].sort()).toEqual(['south', 'west']);
    expect(dig('west', 'db.shop.svc.clusterset.local')).toEqual(['127.3.0.2', '127.3.0.3']);
    expect(dig('east', 'db.shop.svc.clusterset.local'), 'east keeps what it knew').toHaveLength(4);
    run(`bin/portolan demo heal east --dir ${directory}`);
    await wait(hasEast);
  });

  test('demo: an unknown cluster, or no demo -> an error that says so', () => {
    expect(() => run(`bin/portolan demo break north --dir ${directory}`)).toThrow('no cluster north here');
    expect(() => run('bin/portolan demo heal east --dir /nonexistent')).toThrow('no demo runs in /nonexistent');
  });

  test('demo: the whole of it -> under 250 MB', () => {
    const kilobytes = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);
    expect(kilobytes / 1000).toBeLessThan(250);
  });

  test('demo: its files -> readable by their owner alone', () => {
    for (const name of ['demo.json', 'broker/admin.kubeconfig', 'east/admin.kubeconfig']) {
      expect(statSync(`${directory}/${name}`).mode & 0o077, name).toBe(0);
    }
  });

  test('demo: Ctrl-C -> ends by itself and leaves nothing listening', async () => {
    const { port } = file().control;
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });
});

function pathWithoutEnvoy(): string {
  const folders = (process.env['PATH'] ?? '').split(':');
  return folders.filter((folder) => !existsSync(`${folder}/envoy`)).join(':');
}

function clusterIn(text: string): string {
  return /^checkout in (\w+),/.exec(text)?.[1] ?? text;
}

/** A connection of its own each time. */
function request(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, timeout: 5000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.once('end', () => resolve(text));
    })
      .once('timeout', function (this: ClientRequest) {
        this.destroy(new Error('timeout'));
      })
      .once('error', reject);
  });
}

/** Requests in four lanes until they are stopped. */
function startRequests(url: string) {
  const failures: string[] = [];
  let lately: string[] = [];
  let isStopped = false;
  const lane = async () => {
    while (!isStopped) {
      await request(url).then(
        (text) => lately.push(clusterIn(text)),
        (error: Error) => failures.push(error.message),
      );
      lately = lately.slice(-100);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const lanes = Promise.all([lane(), lane(), lane(), lane()]);
  return {
    seenLately: () => new Set(lately.length < 100 ? [...lately, 'few'] : lately),
    stop: async () => {
      isStopped = true;
      await lanes;
      return { failures };
    },
  };
}

/** In user and kernel mode together, of all its threads; ticks are hundredths of a second. */
function cpuSecondsOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
