// Public DNS on real servers: BIND and Knot, updated by RFC 2136 and read by zone transfer, both signed.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../src/clusterset/rules/broker-layout.ts';
import { type Federation, type FederationPublicDns, federationType } from '../src/federation/kinds/federation.ts';
import { runOnce } from '../src/federation/public/publisher.ts';
import { createRfc2136Provider, tcpConnection } from '../src/federation/public/rfc2136.ts';
import { type PublicService, wantedZone } from '../src/federation/public/wanted.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { isConflict } from '../src/kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { type Authority, startAuthority } from '../src/main/authority/part.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { freePort } from './support/free-port.ts';

const zone = 'example.org';
const otherZone = 'example.net';
const secret = randomBytes(32);
const key = { name: 'portolan-key', algorithm: 'hmac-sha256' as const, secret };
const world = createRealWorld();
const zoneText = `$TTL 300
@ IN SOA ns.example.org. hostmaster.example.org. 1 7200 1800 86400 60
@ IN NS ns.example.org.
ns IN A 127.0.0.1
www IN A 192.0.2.80
taken.myns.myfederation.svc.federation IN A 192.0.2.81
`;

interface RealServer {
  readonly process: ChildProcess;
  readonly port: number;
  readonly directory: string;
}

async function startBind(): Promise<RealServer> {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-bind-'));
  const port = await freePort();
  writeFileSync(join(directory, 'zone'), zoneText);
  writeFileSync(join(directory, 'other-zone'), zoneText.replaceAll(zone, otherZone));
  const rights = `allow-update { key "${key.name}"; }; allow-transfer { key "${key.name}"; };`;
  writeFileSync(
    join(directory, 'named.conf'),
    `options { directory "${directory}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
 pid-file "${directory}/named.pid"; session-keyfile "${directory}/session.key"; recursion no; dnssec-validation no; };
controls { };
key "${key.name}" { algorithm ${key.algorithm}; secret "${secret.toString('base64')}"; };
zone "${zone}" { type master; file "zone"; ${rights} };
zone "${otherZone}" { type master; file "other-zone"; ${rights} };
`,
  );
  const process = spawn(pathOf('named')!, ['-g', '-c', join(directory, 'named.conf')], { stdio: 'ignore' });
  await untilAnswers(port);
  return { process, port, directory };
}

async function startKnot(): Promise<RealServer> {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-knot-'));
  const port = await freePort();
  writeFileSync(join(directory, `${zone}.zone`), zoneText);
  writeFileSync(
    join(directory, 'knot.conf'),
    `server:
  rundir: "${directory}"
  listen: 127.0.0.1@${port}
database:
  storage: "${directory}"
key:
  - id: ${key.name}
    algorithm: ${key.algorithm}
    secret: ${secret.toString('base64')}
acl:
  - id: ours
    address: 127.0.0.1
    key: ${key.name}
    action: [update, transfer]
template:
  - id: default
    storage: "${directory}"
zone:
  - domain: ${zone}
    acl: ours
`,
  );
  const process = spawn(pathOf('knotd')!, ['-c', join(directory, 'knot.conf')], { stdio: 'ignore' });
  await untilAnswers(port);
  return { process, port, directory };
}

async function untilAnswers(port: number): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if (dig(port, `www.${zone}`, 'A').length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the server on port ${port} does not answer`);
}

function dig(port: number, name: string, type: string): string[] {
  try {
    const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=2', name, type];
    const output = execFileSync(pathOf('dig')!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return output
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith(';'))
      .sort();
  } catch {
    return [];
  }
}

async function stop(server: RealServer | undefined): Promise<void> {
  if (!server) return;
  const ended = new Promise((resolve) => server.process.once('exit', resolve));
  server.process.kill('SIGKILL');
  await ended;
  rmSync(server.directory, { recursive: true, force: true });
}

const options = {
  domain: zone,
  suffix: 'federation',
  hasPlaceNames: true,
  places: [
    { zone: 'a', region: 'eu' },
    { zone: 'b', region: 'eu' },
    { zone: 'a', region: 'us' },
  ],
};

for (const [kind, command, start] of [
  ['BIND', 'named', startBind],
  ['Knot', 'knotd', startKnot],
] as const) {
  describeWith([command, 'dig'], `public DNS on ${kind}`, () => {
    let server: RealServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => stop(server));

    const provider = (signedWith = key) =>
      createRfc2136Provider({
        zone,
        key: signedWith,
        connect: () => tcpConnection({ host: '127.0.0.1', port: server.port }, world.timers),
        clock: world.clock,
        random: world.random,
        owner: 'test-set',
        ttlSeconds: 60,
      });
    const publish = (services: PublicService[], more: Partial<typeof options> = {}) => {
      const wanted = wantedZone(services, { ...options, ...more }).sets;
      return runOnce({ log: silentLog, provider: provider(), owner: 'test-set', ttlSeconds: 60, wanted: () => wanted });
    };
    const shard = (cluster: string, ip: string, place: { zone?: string; region?: string } = {}) => ({
      cluster,
      externalIPs: [ip],
      hostnames: [],
      isHealthy: true,
      ...place,
    });
    const service = (name: string, shards: PublicService['shards']): PublicService => ({
      federation: 'myfederation',
      namespace: 'myns',
      service: name,
      shards,
    });
    const name = `myservice.myns.myfederation.svc.federation.${zone}`;
    const seedShards = [shard('foo', '104.32.64.128'), shard('bar', '104.32.64.130'), shard('baz', '108.120.45.12')];

    test("the seed's example -> exactly its external record; the second run writes nothing [001-05, 001-38]", async () => {
      expect(await publish([service('myservice', seedShards)], { hasPlaceNames: false })).toMatchObject({
        written: 1,
        failed: 0,
      });
      expect(dig(server.port, name, 'A')).toEqual(['104.32.64.128', '104.32.64.130', '108.120.45.12']);
      expect(await publish([service('myservice', seedShards)], { hasPlaceNames: false })).toMatchObject({
        written: 0,
        failed: 0,
      });
    });

    test('zone and region names -> aliases one level up where a level is empty, and back', async () => {
      const here = [shard('foo', '104.32.64.128', { zone: 'a', region: 'eu' })];
      expect(await publish([service('myservice', here)])).toMatchObject({ failed: 0 });
      const base = 'myservice.myns.myfederation.svc';
      expect(dig(server.port, `${base}.b.eu.federation.${zone}`, 'CNAME')).toEqual([`${base}.eu.federation.${zone}.`]);
      expect(dig(server.port, `${base}.us.federation.${zone}`, 'A')).toEqual(['104.32.64.128', `${name}.`]);
      const both = [...here, shard('bar', '104.32.64.130', { zone: 'b', region: 'eu' })];
      expect(await publish([service('myservice', both)])).toMatchObject({ failed: 0 });
      expect(dig(server.port, `${base}.b.eu.federation.${zone}`, 'A')).toEqual(['104.32.64.130']);
    });

    test('a name somebody else holds -> reported, and left as it was', async () => {
      const result = await publish([service('myservice', seedShards), service('taken', seedShards)], {
        hasPlaceNames: false,
      });
      const taken = `taken.myns.myfederation.svc.federation.${zone}`;
      expect(result.conflicts).toEqual([taken]);
      expect(dig(server.port, taken, 'A')).toEqual(['192.0.2.81']);
      expect(dig(server.port, `www.${zone}`, 'A')).toEqual(['192.0.2.80']);
    });

    test('a wrong key -> refused, nothing changes', async () => {
      const wrong = provider({ ...key, secret: randomBytes(32) });
      await expect(wrong.read()).rejects.toThrow(/transfer of example\.org/);
      const change = {
        name: `x.${zone}`,
        ownerName: `_portolan-x.${zone}`,
        kind: 'create' as const,
        sets: [{ name: `x.${zone}`, type: 'A' as const, values: ['192.0.2.1'] }],
      };
      expect(await wrong.apply([change])).toMatchObject([{ kind: 'failed' }]);
      expect(dig(server.port, `x.${zone}`, 'A')).toEqual([]);
    });

    test('1,000 random creates, updates, deletes, joins and leaves -> the zone equals what is wanted [001-37]', async () => {
      const random = seeded(4711);
      const clusters = new Map<string, { zone: string; region: string }>();
      const services = new Map<string, Map<string, string>>();
      const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]!;
      const step = () => {
        const cluster = `c${Math.floor(random() * 8)}`;
        const name = `s${Math.floor(random() * 30)}`;
        const roll = random();
        if (roll < 0.1) clusters.set(cluster, pick(options.places));
        else if (roll < 0.15) clusters.delete(cluster);
        else if (roll < 0.3) services.delete(name);
        else
          services.set(
            name,
            (services.get(name) ?? new Map()).set(cluster, `198.51.100.${Math.floor(random() * 250)}`),
          );
      };
      const present = () =>
        [...services].map(([name, ips]) =>
          service(
            name,
            [...ips].flatMap(([cluster, ip]) =>
              clusters.has(cluster) ? [shard(cluster, ip, clusters.get(cluster))] : [],
            ),
          ),
        );
      for (let i = 0; i < 1000; i++) {
        step();
        if (i % 50 === 49) expect(await publish(present())).toMatchObject({ failed: 0 });
      }
      expect(await publish(present())).toMatchObject({ written: 0, failed: 0 });
      // By another way than the product's: place by place, what lies there or where it leads.
      const wanted: string[] = [];
      for (const [name, ips] of services) {
        const live = [...ips].flatMap(([cluster, ip]) =>
          clusters.has(cluster) ? [{ ip, ...clusters.get(cluster)! }] : [],
        );
        if (live.length === 0) continue;
        const nameAt = (...place: string[]) =>
          [`${name}.myns.myfederation.svc`, ...place, `federation.${zone}`].join('.');
        const line = (at: string, there: typeof live, levelUp: string) => {
          const addresses = [...new Set(there.map(({ ip }) => ip))].sort();
          wanted.push(there.length > 0 ? `${at} A ${addresses}` : `${at} CNAME ${levelUp}`);
        };
        line(nameAt(), live, '');
        for (const region of new Set(options.places.map((place) => place.region))) {
          const inRegion = live.filter((one) => one.region === region);
          line(nameAt(region), inRegion, nameAt());
          for (const place of options.places.filter((one) => one.region === region)) {
            const inZone = inRegion.filter((one) => one.zone === place.zone);
            line(nameAt(place.zone, region), inZone, nameAt(region));
          }
        }
      }
      const there = (await provider().read())
        .filter(({ name, type }) => name.includes('.svc.') && !name.startsWith('taken.') && type !== 'TXT')
        .map(({ name, type, values }) => `${name} ${type} ${[...values].sort()}`);
      expect(there.sort()).toEqual(wanted.sort());
      // Foreign records untouched, and no owner's text left behind.
      expect(dig(server.port, `www.${zone}`, 'A')).toEqual(['192.0.2.80']);
      const texts = (await provider().read()).filter(({ type }) => type === 'TXT');
      expect(texts).toHaveLength(new Set(wanted.map((line) => line.split(' ')[0])).size);
    });
  });
}

describeWith(['named', 'dig'], 'a federation with a public domain on BIND', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-public-'));
  let server: RealServer;
  let broker: Home;
  let client: Client;
  let authority: Authority;
  const federationRef = { namespace: 'prod', name: 'myfederation' };
  const name = `myservice.myns.myfederation.svc.federation.${zone}`;

  const make = (type: ResourceType, namespace: string | undefined, name: string, rest: object = {}) =>
    client.create(type, {
      apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: { name, ...(namespace ? { namespace } : {}) },
      ...rest,
    } as AnyObject);

  async function joinAndShare(id: string, ip: string): Promise<void> {
    const namespace = `prod-m-${id}`;
    await make(namespaceType, undefined, namespace);
    await make(clusterType, 'prod', id, { spec: { namespace } });
    await make(heartbeatType, namespace, memberLeaseName, { spec: {} });
    const spec = { type: 'ClusterSetIP', exportedAt: '2026-01-01T00:00:00Z', readyEndpoints: 1 };
    const addresses = { clusterIPs: ['10.0.3.64'], loadBalancer: [{ ip }] };
    await make(serviceShardType, namespace, 'myservice.myns', { spec: { ...spec, ...addresses } });
    await make(serviceShardType, namespace, 'inside.myns', { spec: { ...spec, clusterIPs: ['10.0.3.65'] } });
  }

  /** Its status may be written between reading and writing: then once more. */
  const changeFederation = async (spec: Federation['spec'], triesLeft = 10): Promise<void> => {
    const present = await client.get<Federation>(federationType, federationRef);
    try {
      await client.update(federationType, { ...present, spec } as Federation);
    } catch (error) {
      if (!isConflict(error) || triesLeft === 0) throw error;
      await changeFederation(spec, triesLeft - 1);
    }
  };
  const statusOf = async () => (await client.get<Federation>(federationType, federationRef)).status;
  const published = () => dig(server.port, name, 'A');

  async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
    for (let i = 0; i < 300; i++) {
      if (await condition()) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`after 30 s still not: ${what}`);
  }

  beforeAll(async () => {
    server = await startBind();
    const listen = { host: '127.0.0.1', port: 0 };
    broker = await startHome({ world, log: silentLog, directory, listen });
    client = createClient(broker.transport, { world, userAgent: 'test' });
    await make(namespaceType, undefined, 'prod');
    await make(federationType, 'prod', 'myfederation', { spec: {} });
    await joinAndShare('foo', '104.32.64.128');
    await joinAndShare('bar', '104.32.64.130');
    authority = await startTheAuthority();
  });

  async function startTheAuthority(): Promise<Authority> {
    const started = await startAuthority({
      world,
      log: silentLog,
      federation: 'myfederation',
      broker: { client, clusterset: 'prod' },
      listen: { hosts: ['127.0.0.1'], port: 0 },
      trust: { trusted: { ranges: [], identities: [] }, keys: [] },
    });
    await started.whenSynced();
    return started;
  }

  afterAll(async () => {
    await authority?.stop();
    await broker?.stop();
    await stop(server);
    rmSync(directory, { recursive: true, force: true });
  });

  const publicDns = (more: Partial<FederationPublicDns> = {}): FederationPublicDns => ({
    domain: zone,
    ttlSeconds: 60,
    ...more,
    provider: { type: 'RFC2136', rfc2136: { server: `127.0.0.1:${server.port}`, tsigSecret: { name: 'dns-key' } } },
  });

  test('a federation that says nothing of it -> nothing is published [001-21]', async () => {
    await until('the status', async () => (await statusOf())?.services === 2);
    expect(published()).toEqual([]);
    expect((await statusOf())?.publicRecords).toBeUndefined();
  });

  test('a domain without provider, a provider without domain -> refused; both without the Secret -> said in the status, nothing outside; with it -> exactly the external addresses [001-20, 001-22]', async () => {
    const { domain, provider } = publicDns();
    for (const half of [{ domain }, { provider }])
      await expect(changeFederation({ public: half as never })).rejects.toThrow(/spec\.public/);
    await changeFederation({ public: publicDns() });
    await until('the problem', async () => (await statusOf())?.conditions?.[0]?.reason === 'PublicZoneFailed');
    expect(published()).toEqual([]);
    const data = { name: key.name, algorithm: key.algorithm, secret: secret.toString('base64') };
    await make(secretType, 'prod', 'dns-key', { stringData: data });
    await until('the records', () => published().length === 2);
    expect(published()).toEqual(['104.32.64.128', '104.32.64.130']);
    expect(dig(server.port, `inside.myns.myfederation.svc.federation.${zone}`, 'A')).toEqual([]);
    await until('the count', async () => (await statusOf())?.publicRecords === 1);
    // These members have no resolver, so that is all that is missing.
    await until('all well', async () => (await statusOf())?.conditions?.[0]?.reason === 'StubZonesPending');
  });

  test('a shard is withdrawn, then a cluster leaves -> gone from the zone, foreign records stay [001-37]', async () => {
    await client.delete(serviceShardType, { namespace: 'prod-m-bar', name: 'myservice.myns' });
    await until('one address', () => published().join() === '104.32.64.128');
    await client.delete(clusterType, { namespace: 'prod', name: 'foo' });
    await until('no address', () => published().length === 0);
    expect(dig(server.port, `www.${zone}`, 'A')).toEqual(['192.0.2.80']);
  });

  test('the federation no longer wants it -> what was published is taken back', async () => {
    await make(serviceShardType, 'prod-m-bar', 'myservice.myns', {
      spec: {
        type: 'ClusterSetIP',
        exportedAt: '2026-01-01T00:00:00Z',
        readyEndpoints: 1,
        loadBalancer: [{ ip: '104.32.64.130' }],
      },
    });
    await until('published', () => published().length === 1);
    await changeFederation({});
    await until('taken back', () => published().length === 0);
    await until('no note of it', async () => (await notes()).length === 0);
  });

  const notes = async () => {
    const ref = { namespace: 'prod', name: 'portolan-public-zones.myfederation' };
    return Object.keys((await client.get<ConfigMap>(configMapType, ref)).data ?? {});
  };
  /** Name, TTL, type and value of every record below `.svc.` that is ours. */
  const ours = (where: string) =>
    transfer(server.port, where)
      .filter((line) => line.includes('.svc.') && !line.startsWith('taken.') && !line.includes('TXT'))
      .map((line) =>
        line
          .split(/\s+/)
          .filter((word) => word !== 'IN')
          .join(' '),
      );

  test('suffix, TTL, levels or domain change while it runs -> the zone follows, nothing is left of what was', async () => {
    const short = 'myservice.myns.myfederation.svc';
    await changeFederation({ public: publicDns() });
    await until('published', () => ours(zone).join() === `${short}.federation.${zone}. 60 A 104.32.64.130`);
    await changeFederation({ suffix: 'fed', public: publicDns({ ttlSeconds: 20 }) });
    await until('the suffix and TTL', () => ours(zone).join() === `${short}.fed.${zone}. 20 A 104.32.64.130`);
    const bar = await client.get<Cluster>(clusterType, { namespace: 'prod', name: 'bar' });
    await client.update(clusterType, { ...bar, spec: { ...bar.spec, region: 'eu' } } as Cluster);
    await changeFederation({ suffix: 'fed', public: publicDns({ ttlSeconds: 20, levels: ['Region'] }) });
    await until('the region', () => ours(zone).some((line) => line.startsWith(`${short}.eu.fed.${zone}. `)));
    await changeFederation({ suffix: 'fed', public: publicDns({ domain: otherZone }) });
    await until('the other zone', () => ours(otherZone).join() === `${short}.fed.${otherZone}. 60 A 104.32.64.130`);
    await until('nothing in the first', () => ours(zone).length === 0);
    expect(dig(server.port, `www.${zone}`, 'A')).toEqual(['192.0.2.80']);
    await until('one note', async () => (await notes()).join() === otherZone);
  });

  test('the Federation is deleted while no authority runs -> the next one takes back what was published', async () => {
    expect(ours(otherZone)).toHaveLength(1);
    await authority.stop();
    await client.delete(federationType, federationRef);
    expect(ours(otherZone)).toHaveLength(1);
    authority = await startTheAuthority();
    await until('taken back', () => ours(otherZone).length === 0);
    expect(transfer(server.port, otherZone).filter((line) => line.includes('_portolan-'))).toEqual([]);
    expect(dig(server.port, `www.${otherZone}`, 'A')).toEqual(['192.0.2.80']);
    await until('no note of it', async () => (await notes()).length === 0);
  });
});

/** Every record of a zone, by a signed transfer. */
function transfer(port: number, where: string): string[] {
  const signed = ['-y', `${key.algorithm}:${key.name}:${secret.toString('base64')}`];
  const args = ['@127.0.0.1', '-p', String(port), '+noall', '+answer', ...signed, where, 'AXFR'];
  return execFileSync(pathOf('dig')!, args, { encoding: 'utf8' }).split('\n').filter(Boolean);
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}
