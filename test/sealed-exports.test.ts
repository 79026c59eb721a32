// A sealed export between real processes: a broker and three members by `portolan up`. West, which it is for, resolves its name; all that the
// broker holds and says, and all that the third member has, tells nothing of it. Keys are replaced, processes killed and
// started again meanwhile. The tests follow each other.

import { Resolver } from 'node:dns/promises';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine, sliceLines } from '../sim/look.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createHpke } from '../src/base/real/hpke.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { brokerClient } from '../src/clusterset/explain/consult.ts';
import { type SealedRecord, sealedRecordType } from '../src/clusterset/kinds/sealed-record.ts';
import { membershipSecretName, readMembership, sealingSecretName } from '../src/clusterset/membership/membership.ts';
import { readSealingSecret } from '../src/clusterset/membership/sealing-secret.ts';
import { type AudienceKey, keyInfo } from '../src/clusterset/rules/sealing/key-record.ts';
import { openRecord } from '../src/clusterset/rules/sealing/sealed-content.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { sealingNamespace, systemNamespace } from '../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';
import { type Typed, type, until } from './support/clusterset.ts';
import { runPortolan } from './support/portolan.ts';
import { startUp, type UpProcess } from './support/up-process.ts';

const world = createRealWorld();
const sealedKey = 'shop/qqledgerqq';
/** What nobody may find, and of an export in the open the same: found wherever the search looks. */
const hidden = ['qqledgerqq', '32413', '32414', '10.77.66.55', '10.77.66.56', 'qqportqq'];
const open = ['qqopenqq', '32417', '10.77.66.77'];
const members = ['east', 'west', 'north'];

describe('a sealed export between processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-sealed-'));
  const stops: (() => unknown)[] = [];
  const ups = new Map<string, UpProcess>();
  const clients = new Map<string, Client>();
  const at = (name: string) => join(folder, name);
  const kubeconfigOf = (name: string) => at(`${name}/admin.kubeconfig`);
  /** Bytes that the broker sent, and what it and the third member wrote to standard error. */
  const told = new Map<string, Buffer[]>();
  const errors = new Map<string, string>();
  let broker: ApiProcess;
  let westKey: AudienceKey;
  let before: SealedRecord[];

  const typed = (name: string, words: string): Promise<Typed> => type(`${words} --kubeconfig ${kubeconfigOf(name)}`);
  const atBroker = (words: string) => typed('broker', `broker ${words} --clusterset prod`);
  const client = (name: string) => clients.get(name)!;

  async function clientOf(access: Parameters<typeof world.network.http>[0]): Promise<Client> {
    const made = createClient(world.network.http(access), { world, userAgent: 'test' });
    stops.push(() => made.close());
    return made;
  }

  async function adminOf(name: string): Promise<Client> {
    return clientOf(await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: kubeconfigOf(name) }));
  }

  async function startBroker(port?: number): Promise<void> {
    const args = ['--audit', at('audit'), '--log-level', 'debug', '--snapshots', 'none'];
    const process = await startApi({ data: at('broker'), args, ...(port === undefined ? {} : { port }) });
    stops.push(() => process.stop());
    broker = process;
  }

  /** Without a token it is a member already. */
  async function start(name: string, token?: string): Promise<void> {
    const args = ['--data', name, '--namespace', 'shop', '--dns-listen', '127.0.0.1:0', '--log-level', 'debug'];
    const more = ['--proxy', 'off', '--dashboard', 'none', '--snapshots', 'none'];
    const onStart = (stop: () => Promise<number | null>) => void stops.push(stop);
    const joining = token === undefined ? [] : ['--join', '-'];
    ups.set(name, await startUp([...args, ...more, ...joining], { cwd: folder, input: token ?? '', onStart }));
    clients.set(name, await adminOf(name));
  }

  const tokenFor = async (name: string) =>
    (await atBroker(`token ${name} --allowed-range 10.77.66.0/24 10.96.0.0/12`)).lines[0]!;

  /** Keeps all that watches of every kind say, from their beginning. */
  async function watchAll(): Promise<void> {
    const connection = await connect(kubeconfigOf('broker'));
    stops.push(() => connection.close());
    const kept: Buffer[] = told.get('watches') ?? [];
    told.set('watches', kept);
    for (const path of await paths(connection, 'watch')) {
      const stream = connection.stream(`${path}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`);
      stream.on('data', (chunk: Buffer) => kept.push(chunk)).on('error', () => {});
    }
  }

  const records = async (as = client('broker')) =>
    (await as.list<SealedRecord>(sealedRecordType, { namespace: 'prod-m-east' })).items;
  const epochOf = async () => (await records()).find(isKeyRecord)?.spec.epoch ?? 0;
  const addresses = () => sliceLines(client('west'), sealedKey).catch(() => []);

  /** Undefined if the resolver did not answer at all. */
  async function resolve(name: string): Promise<string[] | undefined> {
    const port = /^dns +127\.0\.0\.1:(\d+)/m.exec(ups.get(name)!.out())![1]!;
    const resolver = new Resolver({ timeout: 5_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    try {
      return await resolver.resolve4('qqledgerqq.shop.svc.clusterset.local');
    } catch (error) {
      return ['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? '') ? [] : undefined;
    }
  }

  /** The name resolves in west all the time until that is so. */
  async function resolvesUntil(what: string, condition: () => Promise<boolean>): Promise<void> {
    await until(what, async () => {
      expect(await resolve('west')).not.toEqual([]);
      return condition().catch(() => false);
    });
  }

  /** What west can open with its private key. */
  async function openAsWest(all: readonly SealedRecord[]): Promise<AudienceKey | undefined> {
    const { audience: used } = all.find((one) => !isKeyRecord(one))!.spec;
    const record = all.find(({ metadata }) => metadata.name === used)!;
    const own = (record.spec.readers ?? []).find(({ cluster }) => cluster === 'west');
    if (own === undefined) return undefined;
    const place = { namespace: sealingNamespace, name: sealingSecretName };
    const secretOf = async (name: string) => readSealingSecret(await client(name).get<Secret>(secretType, place))!.keys;
    const { epoch, audience } = record.spec;
    const key = await createHpke(world.random).open({
      sender: (await secretOf('east')).publicKey,
      recipient: await secretOf('west'),
      info: keyInfo({ clusterset: 'prod', exporter: 'east', audience, epoch, reader: 'west' }),
      sealed: Buffer.from(own.key, 'base64'),
    });
    return key && { epoch, key };
  }

  beforeAll(async () => {
    await startBroker();
    clients.set('broker', await adminOf('broker'));
    await atBroker('init --sealed-exports Allowed');
    await watchAll();
    await Promise.all(members.map(async (name) => start(name, await tokenFor(name))));
    for (const name of members) {
      const shown = (await typed(name, 'sealing show')).lines[0]!.replace('key of this cluster: ', '');
      const wanted = `key ${shown}: must be the one that portolan sealing show prints in ${name}`;
      await until('accepted', async () => (await atBroker(`accept ${name}`)).lines.includes(wanted));
    }
  });
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('sealed for west -> it resolves there; north sees names that tell nothing, sizes and times', async () => {
    await typed('east', 'register shop/qqopenqq --address 10.77.66.77 --port 32417 --export');
    await typed('east', `register ${sealedKey} --address 10.77.66.55 --port qqportqq=32413:32414`);
    const { lines } = await typed('east', `export ${sealedKey} --to west --seal --wait`);
    expect(lines.at(-1)).toBe(`${sealedKey} is ready: exported to west only, sealed`);
    await until('it resolves in west', async () => ((await resolve('west')) ?? []).length > 0);
    expect(await addresses()).toEqual(['east: 10.77.66.55 on qqportqq>32414']);
    await until('north has what is open', async () => (await importLine(client('north'), 'shop/qqopenqq')) !== 'none');
    expect(await importLine(client('north'), sealedKey)).toBe('none');
    expect(await resolve('north')).toEqual([]);
    const place = { namespace: systemNamespace, name: membershipSecretName };
    const asNorth = brokerClient(world, readMembership(await client('north').get<Secret>(secretType, place)));
    stops.push(() => asNorth.close());
    before = await records(asNorth);
    const [key, ...content] = before;
    expect(key!.spec.readers!.map(({ cluster }) => cluster)).toEqual(['east', 'west']);
    expect(content).toHaveLength(2);
    for (const { metadata, spec } of content) {
      expect([metadata.name, metadata.labels, metadata.annotations]).toEqual([
        expect.stringMatching(/^s-[0-9a-f]{40}$/),
        undefined,
        undefined,
      ]);
      expect(Object.keys(spec).sort()).toEqual(['audience', 'counter', 'data', 'epoch']);
    }
    westKey = (await openAsWest(before))!;
  });

  test('keys are replaced by command -> a later key, the name resolves all along', async () => {
    const epoch = await epochOf();
    await typed('east', 'sealing rotate');
    await resolvesUntil('a later key', async () => (await epochOf()) > epoch);
    const { epoch: later } = (await records()).find(isKeyRecord)!.spec;
    await resolvesUntil('all of it sealed with that', async () =>
      (await records()).every(({ spec }) => spec.epoch === later),
    );
    westKey = (await openAsWest(await records()))!;
    before = await records();
  });

  test('the broker is killed and comes back -> the name resolves all along, and a change gets through', async () => {
    await broker.stop('SIGKILL');
    errors.set('the broker before', broker.errors());
    await startBroker(broker.port);
    await watchAll();
    await typed('east', `register ${sealedKey} --address 10.77.66.56 --port qqportqq=32413:32414`);
    await resolvesUntil('both endpoints in west', async () => (await addresses()).join().includes('10.77.66.56'));
  });

  test('the reader is stopped and starts anew -> it has the name again', async () => {
    await ups.get('west')!.stop();
    await start('west');
    await until('it resolves in west', async () => ((await resolve('west')) ?? []).length > 0);
    await until('it looks at the broker', async () =>
      (await typed('west', 'status')).lines.join().includes('lag: none'),
    );
    await until('both endpoints in west', async () => (await addresses()).length === 2);
  });

  test('west may no longer read -> it opens what it could open before, and nothing newer', async () => {
    await typed('east', `export ${sealedKey} --to east --wait`);
    await until('gone from west', async () => (await importLine(client('west'), sealedKey)) === 'none');
    await typed('east', `deregister ${sealedKey} --address 10.77.66.56`);
    const isNewer = ({ metadata, spec }: SealedRecord) =>
      before.every((one) => one.metadata.name !== metadata.name || one.spec.counter! < spec.counter!);
    await until('sealed anew', async () => (await records()).filter((one) => !isKeyRecord(one)).every(isNewer));
    const after = await records();
    expect(await openAsWest(after)).toBeUndefined();
    const opened = (all: readonly SealedRecord[]) =>
      all.filter((one) => !isKeyRecord(one)).map((one) => openWith(one, westKey));
    expect(new Set(opened(before))).toEqual(new Set(['opened']));
    expect(new Set(opened(after))).toEqual(new Set(['refused']));
    expect(await resolve('west')).toEqual([]);
  });

  test('commands on it -> wait for what is sealed, and tell what they see', async () => {
    const last = async (words: string) => (await typed('east', words)).lines.at(-1);
    const here = `${sealedKey} in cluster east`;
    expect(await last(`drain ${sealedKey} --wait --timeout 60`)).toBe(`the broker has it: ${here}`);
    expect(await last(`drain ${sealedKey} --undo --wait --timeout 60`)).toBe(`the broker has it: ${here}`);
    await expect(typed('west', `explain ${sealedKey}`)).rejects.toThrow('qqledgerqq');
    expect(await last(`unexport ${sealedKey} --wait --timeout 60`)).toBe(`${sealedKey} is withdrawn`);
    expect((await records()).filter((one) => !isKeyRecord(one))).toEqual([]);
  });

  test('everything at the broker, all that it said and wrote, and all of north -> nothing of it', async () => {
    const connection = await connect(kubeconfigOf('broker'));
    const answers = async (list: readonly string[]) =>
      Promise.all(list.map(async (path) => (await connection.request('GET', path)).body));
    told.set('objects', await answers(await paths(connection, 'list')));
    told.set('metrics', await answers(['/metrics']));
    connection.close();
    const saved = await runPortolan(['snapshot', 'save', at('s.snapshot'), '--kubeconfig', kubeconfigOf('broker')]);
    expect(saved, saved.err).toMatchObject({ code: 0 });
    await Promise.all([broker.stop(), ups.get('north')!.stop()]);
    told.set('snapshot', filesIn(at('s.snapshot')));
    told.set('audit log', filesIn(at('audit')));
    told.set('disk of the broker', filesIn(at('broker')));
    told.set('disk of north', filesIn(at('north')));
    errors.set('the broker', broker.errors());
    errors.set('north', ups.get('north')!.err() + ups.get('north')!.out());
    const places = [...[...told].map(([place, bytes]) => [place, Buffer.concat(bytes)] as const)];
    for (const [place, text] of errors) places.push([`log of ${place}`, Buffer.from(text)]);
    const found = (words: readonly string[]) =>
      Object.fromEntries(places.map(([place, bytes]) => [place, words.filter((word) => isIn(bytes, word))]));
    const nowhere = Object.fromEntries(places.map(([place]) => [place, []]));
    expect(found(hidden)).toEqual(nowhere);
    const { metrics: _, ...everywhere } = found([open[0]!]);
    for (const [place, bytes] of places) expect(bytes.length, place).toBeGreaterThan(200);
    for (const [place, words] of Object.entries(everywhere))
      if (!place.startsWith('log of')) expect(words, place).toEqual(['qqopenqq']);
    for (const place of ['objects', 'watches', 'snapshot', 'disk of the broker', 'disk of north'])
      expect(found(open)[place], place).toEqual(open);
  });
});

/** A number only where it is no part of a longer one. */
function isIn(bytes: Buffer, word: string): boolean {
  const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39;
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1))
    if (!/^\d+$/.test(word) || (!isDigit(bytes[at - 1]) && !isDigit(bytes[at + word.length]))) return true;
  return false;
}

function isKeyRecord({ metadata, spec }: SealedRecord): boolean {
  return metadata.name === spec.audience;
}

function openWith({ metadata, spec }: SealedRecord, { key }: AudienceKey): string {
  const { audience, epoch, counter = 0, data = '' } = spec;
  const place = { clusterset: 'prod', exporter: 'east', object: metadata.name, audience, epoch, counter };
  return openRecord(data, place, key).kind;
}

/** A file, or all files of a folder. */
function filesIn(path: string): Buffer[] {
  if (!statSync(path).isDirectory()) return [readFileSync(path)];
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
}

interface Discovered {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[];
}

/** Of all kinds that have that verb. */
async function paths(connection: Awaited<ReturnType<typeof connect>>, verb: string): Promise<string[]> {
  const read = async <T>(path: string) => JSON.parse((await connection.request('GET', path)).body.toString()) as T;
  const { groups } = await read<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis');
  const roots = ['/api/v1', ...groups.flatMap(({ versions }) => versions.map((one) => `/apis/${one.groupVersion}`))];
  const found = await Promise.all(
    roots.map(async (root) =>
      (await read<Discovered>(root)).resources
        .filter(({ name, verbs }) => verbs.includes(verb) && !name.includes('/'))
        .map(({ name }) => `${root}/${name}`),
    ),
  );
  return found.flat();
}
