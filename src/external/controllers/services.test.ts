// External services of a cluster on a real home: addresses, names, conditions, copies of the broker's.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type SimHome, startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { createLog, type Log, silentLog } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import type { AnyObject, ResourceType } from '../../kube/objects/object.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import type { DataPlane } from '../../kube/objects/reports/data-plane.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type HostnameGenerator, hostnameGeneratorType } from '../kinds/hostname-generator.ts';
import { type MeshExternalService, meshExternalServiceType } from '../kinds/mesh-external-service.ts';
import { builtinPlugins } from '../plugins/builtin.ts';
import type { NameOwner } from '../rules/hostnames.ts';
import { createAuthority } from '../testing/pem.ts';
import { externalService } from '../testing/services.ts';
import { runBrokerCopies } from './broker-copies.ts';
import { type ExternalContext, ExternalServicesController } from './services.ts';

const namespace = 'portolan-system';
const vip = (value: string, more = '') =>
  `{ match: [{ type: InternalVIP, value: ${value}, port: 80, protocol: http }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }]${more} } }`;

interface Setup {
  readonly cluster?: string;
  readonly ranges?: readonly string[];
  readonly others?: readonly NameOwner[];
  readonly log?: Log;
  readonly simulation?: Simulation;
  readonly plane?: DataPlane;
}

const programmed = { kind: 'programmed', proxies: 1, since: '2026-01-01T00:00:00Z', isRedirected: true } as const;

async function start({
  cluster = 'east',
  ranges = ['242.0.0.0/8'],
  others = [],
  log = silentLog,
  plane = programmed,
  ...given
}: Setup = {}) {
  const simulation = given.simulation ?? new Simulation({ seed: 1 });
  const home = await startHome(simulation, cluster);
  const settle = <T>(work: Promise<T>) => simulation.time.settle(work);
  const context: ExternalContext = {
    ranges: ranges.map((text) => parseRange(text)!),
    zones: ['cluster.local'],
    pools: [{ whose: 'the clusterset', range: parseRange('243.0.0.0/12')! }],
  };
  let processes = 0;
  const run = () => {
    processes += 1;
    const world = simulation.world(`external-${cluster}-${processes}`);
    return new ExternalServicesController({
      ...{ world, log, home: home.admin, namespace, plugins: builtinPlugins },
      ...{
        place: () => ({ clusterset: 'prod', cluster }),
        othersAt: (name: string) => others.filter(({ hostnames }) => hostnames.includes(name)),
        context: () => context,
      },
      whenKnown: async () => {},
      plane: () => plane,
    });
  };
  let controller = run();
  const pass = (ms = 2000) => simulation.time.advance(ms);
  await pass();
  const create = async (object: MeshExternalService) => {
    await settle(home.admin.create(meshExternalServiceType, object));
    await pass();
  };
  const get = (name: string) =>
    settle(home.admin.get<MeshExternalService>(meshExternalServiceType, { namespace, name }));
  const condition = async (name: string, type: string) => {
    const found = (await get(name)).status?.conditions?.find((one) => one.type === type);
    return found === undefined ? 'none' : `${found.status} ${found.reason} ${found.message}`.trim();
  };
  const restart = async () => {
    await settle(controller.stop());
    controller = run();
    await pass();
  };
  const planeBecomes = async (next: DataPlane) => {
    plane = next;
    controller.planeChanged();
    await pass();
  };
  return { simulation, home, create, get, condition, pass, settle, restart, planeBecomes };
}

function make(home: SimHome, type: ResourceType, metadata: { name: string; namespace?: string }, rest: object = {}) {
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return home.admin.create(type, { apiVersion, kind: type.kind, metadata, ...rest } as AnyObject);
}

describe('external services: addresses', () => {
  test('[004-06, 004-35, 004-45] the mongo example of the seed -> an address of 242.0.0.0/8 with its hostname, kept over restarts', async () => {
    const { create, get, restart } = await start();
    await create(externalService(vip('mongo.ext.svc.local'), { name: 'mongo' }));
    const [first] = (await get('mongo')).status?.vips ?? [];
    expect(first).toMatchObject({ type: 'Portolan', hostname: 'mongo.ext.svc.local' });
    expect(first?.ip).toMatch(/^242\./);
    await restart();
    expect((await get('mongo')).status?.vips).toEqual([first]);
  });

  test('an InternalVIP without a value that no generator names -> not ready, with what to do: nothing leads to it', async () => {
    const { create, get, condition } = await start();
    await create(externalService(vip("''").replace("value: '', ", ''), { name: 'nameless' }));
    expect((await get('nameless')).status?.vips ?? []).toEqual([]);
    expect(await condition('nameless', 'Ready')).toMatch(/^False NoAddress no address leads to it/);
  });

  test('two clusters -> the same address without asking each other', async () => {
    const simulation = new Simulation({ seed: 1 });
    const [east, west] = [await start({ simulation }), await start({ simulation, cluster: 'west' })];
    for (const one of [east, west]) await one.create(externalService(vip('mongo.ext'), { name: 'mongo' }));
    const [there, here] = [(await east.get('mongo')).status?.vips, (await west.get('mongo')).status?.vips];
    expect(there).toEqual(here);
    expect(there).toHaveLength(1);
  });

  test('deleted and made again -> the same address; deleted -> released', async () => {
    const { home, create, get, pass, settle } = await start();
    const mongo = externalService(vip('mongo.ext'), { name: 'mongo' });
    await create(mongo);
    const before = (await get('mongo')).status?.vips;
    await settle(home.admin.delete(meshExternalServiceType, { namespace, name: 'mongo' }));
    await pass();
    const { items } = await settle(home.admin.list<AddressClaim>(addressClaimType, {}));
    expect(items.map(({ spec }) => spec.releasedAt !== undefined)).toEqual([true]);
    await create(mongo);
    expect((await get('mongo')).status?.vips).toEqual(before);
  });

  test('[004-44] a Domain match -> no virtual IP and no address of its own: the name is answered as before', async () => {
    const { create, get, condition } = await start();
    const spec = '{ match: [{ type: Domain, value: httpbin.com, port: 443, protocol: tls }] }';
    await create(externalService(spec, { name: 'httpbin' }));
    expect(await condition('httpbin', 'Accepted')).toContain('True');
    const { vips, addresses } = (await get('httpbin')).status!;
    expect([vips ?? [], addresses ?? []]).toEqual([[], []]);
  });

  test('[004-37, 004-61] several hostnames of one resource -> an address for each, told apart by its hostname', async () => {
    const { create, get } = await start();
    const match = ['a.ext', 'b.ext'].map((value) => `{ type: InternalVIP, value: ${value}, port: 80, protocol: http }`);
    const spec = `{ match: [${match.join(', ')}], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`;
    await create(externalService(spec, { name: 'two' }));
    const vips = (await get('two')).status?.vips ?? [];
    expect(vips.map(({ hostname }) => hostname).sort()).toEqual(['a.ext', 'b.ext']);
    expect(new Set(vips.map(({ ip }) => ip)).size).toBe(2);
  });

  test('several ports and resources of one name -> one address', async () => {
    const { home, create, settle } = await start();
    await create(externalService(vip('m.ext'), { name: 'a' }));
    await create(externalService(vip('m.ext').replace('port: 80', 'port: 81'), { name: 'b' }));
    expect((await settle(home.admin.list(addressClaimType, {}))).items).toHaveLength(1);
  });

  test('[004-46] another range, and it is used up -> a condition on the one that got none', async () => {
    const { create, condition, get } = await start({ ranges: ['242.0.0.0/31'] });
    for (const name of ['a', 'b', 'c']) await create(externalService(vip(`${name}.ext`), { name }));
    expect(await condition('a', 'Ready')).toMatch(/^True Ready/);
    expect(await condition('c', 'Ready')).toContain('AddressesExhausted c.ext: no IPv4 address is left');
    expect((await get('c')).status?.vips).toEqual([]);
  });
});

describe('external services: conditions', () => {
  test('no Envoy has programmed it -> a name and an address, and never Ready; one comes -> Ready; the Leases are unread -> as it was', async () => {
    const { create, get, condition, planeBecomes, restart } = await start({
      plane: { kind: 'none', hasServer: false },
    });
    await create(externalService(vip('mongo.ext'), { name: 'mongo' }));
    expect((await get('mongo')).status?.vips).toHaveLength(1);
    expect(await condition('mongo', 'Accepted')).toMatch(/^True/);
    expect(await condition('mongo', 'Ready')).toMatch(/^False NotProgrammed .*no portolan xds runs here/);
    await planeBecomes({ kind: 'none', hasServer: true });
    expect(await condition('mongo', 'Ready')).toMatch(/^False NotProgrammed .*no Envoy of role sidecar/);
    await planeBecomes({ ...programmed, isRedirected: false });
    expect(await condition('mongo', 'Ready')).toMatch(/^Unknown NotRedirected .*--envoy/);
    await planeBecomes(programmed);
    expect(await condition('mongo', 'Ready')).toMatch(/^True Ready/);
    await planeBecomes({ kind: 'unknown' });
    await restart();
    expect(await condition('mongo', 'Ready')).toMatch(/^True Ready/);
    await planeBecomes({ kind: 'away' });
    expect(await condition('mongo', 'Ready')).toMatch(/^Unknown XdsSilent/);
  });

  test('a proxy refuses its resources -> not Ready, with the words of the proxy', async () => {
    const { home, create, get, condition, pass, settle } = await start();
    await create(externalService(vip('mongo.ext'), { name: 'mongo' }));
    const object = await get('mongo');
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const refusal = {
      type: 'Programmed',
      status: 'False',
      reason: 'RefusedByProxy',
      message: 'no such thing',
    } as const;
    const conditions = [...(object.status?.conditions ?? []), { ...refusal, lastTransitionTime }];
    const status = { ...object.status, conditions };
    await settle(home.admin.updateStatus<MeshExternalService>(meshExternalServiceType, { ...object, status }));
    await pass();
    expect(await condition('mongo', 'Ready')).toBe('False NotProgrammed no such thing');
  });

  test('what admission did not see -> Accepted False with every error', async () => {
    const { create, condition } = await start();
    const copy = externalService(
      '{ match: [{ type: InternalVIP, value: x.y, port: 80 }], destination: { extension: { type: Lambda } } }',
      { name: 'a', origin: 'broker' },
    );
    await create(copy);
    const text = await condition('a.broker', 'Accepted');
    expect(text).toContain('False Invalid');
    expect(text).toContain('spec.destination.extension');
    expect(text).toContain('spec.destination.type');
  });

  test('[004-03] a resource of another zone -> not visible, and says so', async () => {
    const { create, condition, get } = await start();
    await create(externalService(vip('m.ext'), { name: 'a', labels: { 'kuma.io/zone': 'west' } }));
    expect(await condition('a', 'Accepted')).toContain('False NotVisible');
    expect((await get('a')).status?.vips).toEqual([]);
    await create(externalService(vip('n.ext'), { name: 'b', labels: { 'kuma.io/zone': 'east' } }));
    expect(await condition('b', 'Accepted')).toBe('True Accepted');
  });

  test('[004-21] an unknown plugin, a bad ARN, a missing secret -> a condition on that one; the others untouched', async () => {
    const { create, condition } = await start();
    const extension = (type: string, config: string) =>
      `{ match: [{ type: InternalVIP, value: ${type.toLowerCase()}.ext, port: 80, protocol: http }], destination: { type: Extension, extension: { type: ${type}, config: ${config} } } }`;
    await create(externalService(extension('Unheard', '{}'), { name: 'plugin' }));
    await create(externalService(extension('Lambda', '{ arn: nonsense, more: 1 }'), { name: 'arn' }));
    await create(externalService(vip('t.ext', ', tls: { caCert: { secret: gone } }'), { name: 'tls' }));
    await create(externalService(vip('m.ext'), { name: 'good' }));
    expect(await condition('plugin', 'Ready')).toContain('UnknownPlugin extension.type: there is no plugin Unheard');
    expect(await condition('arn', 'Ready')).toMatch(/PluginConfigInvalid .*more: unknown field.*arn: must match/);
    expect(await condition('tls', 'Ready')).toContain('TLSNotReady tls.caCert: there is no Secret gone');
    expect(await condition('good', 'Ready')).toMatch(/^True Ready/);
  });

  test('the missing secret comes -> ready', async () => {
    const { home, create, condition, pass, settle } = await start();
    await create(externalService(vip('t.ext', ', tls: { caCert: { secret: pki } }'), { name: 'tls' }));
    const data = { 'ca.crt': Buffer.from(createAuthority().certificate).toString('base64') };
    await settle(make(home, secretType, { name: 'pki', namespace: externalNamespace }, { data }));
    await pass();
    expect(await condition('tls', 'Ready')).toMatch(/^True Ready/);
  });

  test('a secret of the system namespace, where our own keys lie -> is none that it may name', async () => {
    const { home, settle, create, condition } = await start();
    const data = { 'ca.crt': Buffer.from('x').toString('base64') };
    await settle(make(home, secretType, { name: 'keys', namespace }, { data }));
    await create(externalService(vip('t.ext', ', tls: { caCert: { secret: keys } }'), { name: 'tls' }));
    expect(await condition('tls', 'Ready')).toContain('TLSNotReady tls.caCert: there is no Secret keys');
  });

  test('an expired certificate -> said', async () => {
    const { create, condition } = await start();
    const authority = createAuthority();
    const client = authority.issue({ kind: 'client' }, Date.UTC(2026, 0, 1, 0, 0, 1));
    const text = JSON.stringify;
    const tls = `, tls: { caCert: { inlineString: ${text(authority.certificate)} }, clientCert: { inlineString: ${text(client.certificate)} }, clientKey: { inlineString: ${text(client.key)} } }`;
    await create(externalService(vip('t.ext', tls), { name: 'tls' }));
    expect(await condition('tls', 'CertificateExpired')).toContain('True Expired tls.clientCert: expired at');
    expect(await condition('tls', 'Ready')).toMatch(/^True Ready/);
  });

  test('[004-13] tcp for a domain alone -> accepted, a warning in the status', async () => {
    const { create, condition } = await start();
    await create(externalService('{ match: [{ type: Domain, value: a.com, port: 25 }] }', { name: 'a' }));
    expect(await condition('a', 'Accepted')).toContain('True');
    expect(await condition('a', 'Warnings')).toContain('takes all traffic of port 25');
  });

  test('[004-42, 004-43] overlapping ranges -> accepted, in the status of both and in the log, once', async () => {
    const lines: string[] = [];
    const clock = { wallMs: () => 0, monotonicMs: () => 0 };
    const log = createLog({ level: 'warn', clock, write: (line) => void lines.push(line) });
    const { create, get, condition, pass } = await start({ log });
    await create(externalService('{ match: [{ type: CIDR, value: 10.1.0.0/16, port: 80 }] }', { name: 'wide' }));
    await create(externalService('{ match: [{ type: IP, value: 10.1.1.1, port: 80 }] }', { name: 'narrow' }));
    const wanted =
      'narrow and wide have overlapping IPs 10.1.1.1, which can disrupt your traffic; narrow wins on port 80: it has the longer prefix';
    for (const name of ['wide', 'narrow']) expect((await get(name)).status?.overlaps).toEqual([wanted]);
    expect(await condition('wide', 'Overlapping')).toContain(wanted);
    await pass(1_300_000);
    expect(lines.filter((line) => line.includes('overlapping IPs 10.1.1.1'))).toHaveLength(1);
  });

  test("a name that a peer's service has -> the loser's condition names the winner", async () => {
    const peer = { kind: 'PeerService', key: 'portolan-system/acme.x', createdMs: 1, hostnames: ['m.ext'] };
    const { create, condition, get } = await start({ others: [peer] });
    await create(externalService(vip('m.ext'), { name: 'a' }));
    expect(await condition('a', 'HostnamesAvailable')).toContain('clash with PeerService portolan-system/acme.x');
    expect((await get('a')).status).toMatchObject({ vips: [], addresses: [{ status: 'NotAvailable' }] });
  });

  test('nothing changes -> nothing is written', async () => {
    const { home, create, pass, restart } = await start();
    await create(externalService(vip('m.ext'), { name: 'a' }));
    const { revision } = home;
    await restart();
    await pass(700_000);
    expect(home.revision).toBe(revision);
  });
});

describe('external services: copies of the broker', () => {
  async function member(cluster = 'east') {
    const east = await start({ cluster });
    const { simulation, settle } = east;
    const broker = await startHome(simulation, 'broker');
    await settle(make(broker, namespaceType, { name: 'prod' }));
    await settle(make(broker, clusterSetType, { name: 'prod', namespace: 'prod' }));
    const world = simulation.world('copies');
    runBrokerCopies({
      ...{ world, log: silentLog, home: east.home.admin, broker: broker.admin, namespace },
      place: { clusterset: 'prod', cluster },
    });
    const atBroker = async (type: ResourceType, object: { metadata: object; spec: unknown }, name: string) => {
      const { labels, annotations } = object.metadata as { labels?: object; annotations?: object };
      await settle(
        make(broker, type, { name, namespace: 'prod', labels, annotations } as never, { spec: object.spec }),
      );
      await east.pass();
    };
    return { ...east, broker, atBroker };
  }

  test('[004-55] a resource at the broker -> in the member, with an address; beside one of the same name at home', async () => {
    const { atBroker, create, get } = await member();
    await atBroker(meshExternalServiceType, externalService(vip('mongo.ext')), 'mongo');
    expect((await get('mongo.broker')).status?.vips).toMatchObject([{ hostname: 'mongo.ext' }]);
    await create(externalService(vip('other.ext'), { name: 'mongo' }));
    expect((await get('mongo')).status?.vips).toMatchObject([{ hostname: 'other.ext' }]);
  });

  test('changed, deleted, or of another zone at the broker -> so in the member', async () => {
    const { broker, atBroker, get, settle, pass } = await member();
    await atBroker(meshExternalServiceType, externalService(vip('mongo.ext')), 'mongo');
    await atBroker(
      meshExternalServiceType,
      externalService(vip('w.ext'), { labels: { 'kuma.io/zone': 'west' } }),
      'west',
    );
    await expect(get('west.broker')).rejects.toThrow('not found');
    const ref = { namespace: 'prod', name: 'mongo' };
    await settle(
      broker.admin.patch(meshExternalServiceType, ref, { kind: 'merge', body: { metadata: { labels: { a: 'b' } } } }),
    );
    await pass();
    expect((await get('mongo.broker')).metadata.labels?.['a']).toBe('b');
    await settle(broker.admin.delete(meshExternalServiceType, ref));
    await pass();
    await expect(get('mongo.broker')).rejects.toThrow('not found');
  });

  test('the broker is away -> copies stay', async () => {
    const { broker, atBroker, get, pass, restart } = await member();
    await atBroker(meshExternalServiceType, externalService(vip('mongo.ext')), 'mongo');
    broker.kill();
    await pass(120_000);
    await restart();
    expect((await get('mongo.broker')).status?.vips).toHaveLength(1);
  });

  test('[004-52, 004-54, 004-55, 004-59] a HostnameGenerator at the broker -> an Available address with its origin; one at home -> does not count', async () => {
    const { home, atBroker, create, get, settle, pass } = await member();
    const labels = { 'my.label.io/service': 'my-service' };
    const spec = {
      targetRef: { kind: 'MeshExternalService', tags: labels },
      template: '{{ name }}.svc.meshext.local',
    };
    const byName = `{ match: [{ type: InternalVIP, port: 80, protocol: http }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }`;
    await settle(
      make(
        home,
        hostnameGeneratorType,
        { name: 'local', namespace },
        { spec: { ...spec, template: '{{ name }}.local.ext' } },
      ),
    );
    await create(externalService(byName, { name: 'mydomain', labels }));
    expect((await get('mydomain')).status?.addresses).toEqual([]);
    await atBroker(hostnameGeneratorType, { metadata: {}, spec }, 'k8s-zone-hostnames');
    await pass();
    expect((await get('mydomain')).status?.addresses).toEqual([
      {
        hostname: 'mydomain.svc.meshext.local',
        status: 'Available',
        origin: { kind: 'HostnameGenerator', name: 'k8s-zone-hostnames' },
      },
    ]);
    expect((await get('mydomain')).status?.vips).toMatchObject([{ hostname: 'mydomain.svc.meshext.local' }]);
    const generator = (name: string) =>
      settle(home.admin.get<HostnameGenerator>(hostnameGeneratorType, { namespace, name }));
    expect((await generator('local')).status?.conditions?.[0]).toMatchObject({
      status: 'False',
      reason: 'NotAtBroker',
    });
    expect((await generator('k8s-zone-hostnames.broker')).status).toMatchObject({ selected: 1 });
  });

  test('the example on the page of HostnameGenerator, created where it says -> names a service', async () => {
    const file = new URL('../../../docs/kinds/examples/hostnamegenerators.yaml', import.meta.url);
    const example = parse(readFileSync(file, 'utf8')) as HostnameGenerator;
    const { home, broker, create, get, settle, pass } = await member();
    const byName =
      '{ match: [{ type: InternalVIP, port: 80, protocol: http }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }] } }';
    await create(externalService(byName, { name: 'payments' }));
    // A home would take it too, where it does not count: the namespace of the clusterset is only at the broker.
    const at = example.metadata.namespace === namespace ? home : broker;
    await settle(at.admin.create(hostnameGeneratorType, example));
    await pass();
    expect((await get('payments')).status?.vips).toMatchObject([{ hostname: 'payments.svc.meshext.local' }]);
  });

  test('secrets of the broker -> copied only if the resource says so; contents never in a log or a status', async () => {
    const { broker, home, atBroker, condition, get, settle } = await member();
    const pem = createAuthority().certificate;
    const data = { 'ca.crt': Buffer.from(pem).toString('base64') };
    await settle(make(broker, secretType, { name: 'pki', namespace: 'prod' }, { data }));
    const spec = (name: string) => externalService(vip(`${name}.ext`, ', tls: { caCert: { secret: pki } }'));
    await atBroker(meshExternalServiceType, spec('a'), 'a');
    expect(await condition('a.broker', 'Ready')).toContain('TLSNotReady');
    const shared = { ...spec('b'), metadata: { annotations: { 'portolan.dev/share-secrets': 'true' } } };
    await atBroker(meshExternalServiceType, shared, 'b');
    expect(await condition('b.broker', 'Ready')).toMatch(/^True Ready/);
    expect(await condition('a.broker', 'Ready')).toContain('TLSNotReady');
    const copied = await settle(home.admin.get(secretType, { namespace: externalNamespace, name: 'pki.broker' }));
    expect(copied['data']).toEqual(data);
    expect(JSON.stringify((await get('b.broker')).status)).not.toContain(pem.slice(60, 100));
  });

  test('nobody shares a secret any more, or it is gone at the broker -> its copy goes; shared by another one -> it stays', async () => {
    const { broker, home, atBroker, settle, pass } = await member();
    const data = { 'ca.crt': Buffer.from(createAuthority().certificate).toString('base64') };
    for (const name of ['pki', 'other']) await settle(make(broker, secretType, { name, namespace: 'prod' }, { data }));
    const sharing = (secret: string) => ({
      ...externalService(vip(`${secret}.ext`, `, tls: { caCert: { secret: ${secret} } }`)),
      metadata: { annotations: { 'portolan.dev/share-secrets': 'true' } },
    });
    for (const name of ['a', 'b']) await atBroker(meshExternalServiceType, sharing('pki'), name);
    await atBroker(meshExternalServiceType, sharing('other'), 'c');
    const copies = async () => {
      await pass();
      const { items } = await settle(home.admin.list(secretType, { namespace: externalNamespace }));
      return items.map(({ metadata }) => metadata.name);
    };
    expect(await copies()).toEqual(['other.broker', 'pki.broker']);
    await settle(broker.admin.delete(meshExternalServiceType, { namespace: 'prod', name: 'a' }));
    expect(await copies()).toEqual(['other.broker', 'pki.broker']);
    const unshared = { metadata: { annotations: { 'portolan.dev/share-secrets': null } } };
    const b = { namespace: 'prod', name: 'b' };
    await settle(broker.admin.patch(meshExternalServiceType, b, { kind: 'merge', body: unshared }));
    expect(await copies()).toEqual(['other.broker']);
    await settle(broker.admin.delete(secretType, { namespace: 'prod', name: 'other' }));
    await pass(400_000);
    expect(await copies()).toEqual([]);
  });
});
