// A simulated home: the real api over a store in memory whose disk outlives the process. The bearer token identifies
// the client; a function decides what it may do, so that a scenario can set it in one line. `startHome` is for tests
// that need one home without access control.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../src/base/log.ts';
import { version } from '../src/base/version.ts';
import { type Api, createApi } from '../src/home/api.ts';
import { loadDefinitions } from '../src/home/definitions/bundled.ts';
import type { CustomResourceDefinition } from '../src/home/definitions/definition.ts';
import { kindsFromDefinition } from '../src/home/definitions/kind-of.ts';
import { customResourceDefinitionKind } from '../src/home/kinds/custom-resource-definition.ts';
import { builtinKinds } from '../src/home/kinds/index.ts';
import type { Access, Attributes, User } from '../src/home/model/access.ts';
import type { Kind } from '../src/home/model/kind.ts';
import { createMemoryStore } from '../src/home/open-store.ts';
import { encodeContent } from '../src/home/snapshot/content.ts';
import { restoreSnapshot } from '../src/home/snapshot/restore.ts';
import { sealedPieces } from '../src/home/snapshot/snapshots.ts';
import type { LogStore } from '../src/home/store/log-store.ts';
import { MemoryDisk, MemoryJournal } from '../src/home/store/memory-journal.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { kindRules } from '../src/main/home/kind-rules.ts';
import { isJoinToken } from '../src/main/snapshot/void-tokens.ts';
import type { HttpHandler } from './virtual-network.ts';
import { Simulation, type VirtualWorld, type VirtualWorldOptions } from './virtual-world.ts';

const wantedDefinitions =
  /^(addressclaims|clusterproperties|clusterprofiles|clusters|clustersets|endpointshards|federatedservices|federations|heartbeats|hostnamegenerators|livenessreports|meshexternalservices|peerexports|peers|peerservices|sealedrecords|serviceaccesspolicies|serviceexportpolicies|serviceexports|serviceimportpolicies|serviceimports|serviceshards|trafficshifts)\.yaml$/;

// Read once, and the same schemas in every home: what is compiled of them is shared too.
const definitions = readDefinitions();
const ourKinds: readonly Kind[] = definitions.map((definition) =>
  kindsFromDefinition(definition as unknown as CustomResourceDefinition, kindRules),
);

export type MayDo = (user: string, attributes: Attributes) => boolean;

export interface SimHomeOptions {
  readonly simulation: Simulation;
  /** `east`, `broker`: its URL is https://<name>. */
  readonly name: string;
  readonly serviceRanges: readonly string[];
  readonly mayDo: MayDo;
  /** Sees each request before it is handled. */
  readonly onRequest?: (user: string, attributes: Attributes) => void;
  /** May stand between the network and the api. */
  readonly wrap?: ((handler: HttpHandler) => HttpHandler) | undefined;
  readonly clock?: VirtualWorldOptions;
  /** Whether our own kinds are there as CustomResourceDefinitions that can be deleted; else they are built in, which is
   * quicker. Both come from the same files. */
  readonly hasDefinitions?: boolean;
  /** Whether it says that it is an embedded home, whose Services nothing routes; else that it is a Kubernetes. */
  readonly isEmbedded?: boolean;
}

const kubernetesVersion = Buffer.from(JSON.stringify({ major: '1', minor: '33', gitVersion: 'v1.33.0' }));

export class SimHome {
  readonly name: string;
  readonly url: string;
  /** Everything is allowed to this one, and it does not use the network. */
  readonly admin: Client;
  readonly #options: SimHomeOptions;
  #disk: MemoryDisk | undefined;
  #process: { api: Api; store: LogStore; world: VirtualWorld } | undefined;

  constructor(options: SimHomeOptions) {
    this.#options = options;
    this.name = options.name;
    this.url = `https://${options.name}`;
    const send = (request: Parameters<HttpHandler>[0]) =>
      this.api.handle({ ...request, headers: { ...request.headers, authorization: 'Bearer admin' } });
    const world = options.simulation.world(`admin-of-${options.name}`);
    this.admin = createClient({ send, close: () => {} }, { world, userAgent: 'sim' });
  }

  get isUp(): boolean {
    return this.#process !== undefined;
  }

  get revision(): number {
    return this.#process?.store.revision() ?? 0;
  }

  /** Asks through the network, as the process of that World. */
  clientOf(world: VirtualWorld, options: { readonly requestTimeoutMs?: number } = {}): Client {
    const transport = world.network.http({ server: this.url, bearerToken: async () => world.name });
    return createClient(transport, { world, userAgent: world.name, ...options });
  }

  async start(): Promise<void> {
    const { simulation, name, serviceRanges, clock, hasDefinitions = false } = this.#options;
    const world = simulation.world(`home-${name}`, clock);
    this.#disk ??= hasDefinitions ? await install() : new MemoryDisk();
    const store = createMemoryStore({ world, disk: this.#disk });
    const extra = hasDefinitions ? [customResourceDefinitionKind] : [customResourceDefinitionKind, ...ourKinds];
    const kinds = builtinKinds({ serviceRanges, random: world.random, extra });
    const api = await createApi({ world, store, kinds, access: this.#access(), log: silentLog, kindRules });
    await api.start();
    this.#process = { api, store, world };
    const handler: HttpHandler = async (request) =>
      request.path === '/version' && this.#options.isEmbedded !== true
        ? { status: 200, headers: { 'content-type': 'application/json' }, body: kubernetesVersion }
        : this.api.handle(request);
    simulation.network.listen(this.url, this.#options.wrap?.(handler) ?? handler);
  }

  /** As kill -9: what was acknowledged is on the disk, nothing else is left. */
  kill(): void {
    this.#process?.world.revoke();
    this.#options.simulation.network.close(this.url);
    this.#process = undefined;
  }

  /** A copy of the disk as it is now. */
  backup(): MemoryDisk {
    if (this.#disk === undefined) throw new Error(`${this.name} was never started`);
    return copyOf(this.#disk);
  }

  /** Comes up again as it was when the backup was made: revisions go back too. */
  async restore(backup: MemoryDisk): Promise<void> {
    this.kill();
    this.#disk = copyOf(backup);
    await this.start();
  }

  /** Everything in it, as `portolan snapshot save` gets it. */
  snapshot(): Uint8Array[] {
    if (this.#process === undefined) throw new Error(`${this.name} is down`);
    const { revision, entries } = this.#process.store.snapshot();
    const takenMs = Math.floor(this.#process.world.clock.wallMs());
    const head = { homeId: this.name, homeName: this.name, revision, takenMs, portolan: version, files: {} };
    return [...sealedPieces(encodeContent(head, entries))];
  }

  /** Comes up again with a snapshot: revisions go on far above those before. */
  async restoreSnapshot(chunks: readonly Uint8Array[]): Promise<void> {
    const nowMs = this.#process?.world.clock.wallMs() ?? 0;
    this.kill();
    const disk = new MemoryDisk();
    const journal = new MemoryJournal(disk);
    await restoreSnapshot({ chunks, nowMs, journal, onHead: () => {}, isLeftOut: ({ key }) => isJoinToken(key) });
    this.#disk = disk;
    await this.start();
  }

  get api(): Api {
    if (this.#process === undefined) throw new Error(`${this.name} is down`);
    return this.#process.api;
  }

  #access(): Access {
    const { mayDo, onRequest } = this.#options;
    return {
      authenticate: async (request) => userOf(request.headers['authorization']),
      authorize: (user, attributes) => {
        onRequest?.(user.name, attributes);
        const isAllowed = user.name === 'admin' || mayDo(user.name, attributes);
        return { isAllowed, reason: isAllowed ? '' : 'the simulation says no' };
      },
    };
  }
}

export async function startHome(
  simulation: Simulation,
  name = 'home',
  wrap?: SimHomeOptions['wrap'],
): Promise<SimHome> {
  const home = new SimHome({ simulation, name, serviceRanges: ['10.96.0.0/16'], mayDo: () => true, wrap });
  await simulation.time.settle(home.start());
  return home;
}

function copyOf(disk: MemoryDisk): MemoryDisk {
  const copy = new MemoryDisk();
  for (const [row, content] of disk.rows) copy.rows.set(row, content);
  copy.floor = disk.floor;
  return copy;
}

function userOf(authorization: string | undefined): User {
  const name = /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? 'system:anonymous';
  return { name, groups: name === 'admin' ? ['system:masters'] : [] };
}

async function install(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const world = new Simulation({ seed: 0 }).world('installer');
  const kinds = builtinKinds({
    serviceRanges: ['10.96.0.0/16'],
    random: world.random,
    extra: [customResourceDefinitionKind],
  });
  const access: Access = {
    authenticate: async () => ({ name: 'admin', groups: ['system:masters'] }),
    authorize: () => ({ isAllowed: true, reason: '' }),
  };
  const store = createMemoryStore({ world, disk });
  const api = await createApi({ world, store, kinds, access, log: silentLog, definitions });
  await api.start();
  await api.stop();
  return disk;
}

/** The same files that a real cluster installs. */
function readDefinitions(): AnyObject[] {
  const folder = fileURLToPath(new URL('../deploy/crds/', import.meta.url));
  const files = readdirSync(folder).filter((file) => wantedDefinitions.test(file));
  return loadDefinitions(files.map((file) => readFileSync(`${folder}${file}`, 'utf8')));
}
