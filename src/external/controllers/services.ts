// Keeps the external services of a cluster: holds a virtual IP for each of their names and writes their status. Every
// change plans everything anew and writes only the differences: names and overlaps concern all resources together.

import { type AddressClaim, addressClaimType } from '../../addresses/address-claim.ts';
import { type Allocator, claimsByOwner, createAllocator } from '../../addresses/allocator.ts';
import type { AddressOwner } from '../../addresses/candidates.ts';
import { ownerKey } from '../../addresses/claim.ts';
import type { IpRange } from '../../base/ip.ts';
import { isSameJson } from '../../base/json.ts';
import type { Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type HostnameGenerator, hostnameGeneratorType } from '../kinds/hostname-generator.ts';
import { type MeshExternalService, meshExternalServiceType } from '../kinds/mesh-external-service.ts';
import type { Plugins } from '../plugins/plugin.ts';
import type { NameOwner } from '../rules/hostnames.ts';
import type { Pool } from '../rules/overlaps.ts';
import {
  generatorStatus,
  type HeldAddresses,
  planServices,
  planStatuses,
  type WantedStatus,
} from '../rules/plan-services.ts';
import type { SecretReader } from '../rules/tls-plan.ts';
import type { Place } from '../rules/visibility.ts';

export interface ExternalServicesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly namespace: string;
  readonly place: () => Place;
  readonly plugins: Plugins;
  /** Owners of names of other kinds. */
  readonly others: () => readonly NameOwner[];
  readonly ground: () => ExternalGround;
  /** Nothing is decided before place and ground are known: names would be given up for a moment. */
  readonly whenKnown: (signal?: AbortSignal) => Promise<void>;
}

/** The names and addresses that the cluster leaves to external services. */
export interface ExternalGround {
  /** Ranges of virtual IPs, at most one of each family. */
  readonly ranges: readonly IpRange[];
  /** Zones in which external services have no names. */
  readonly zones: readonly string[];
  /** Ranges of other virtual IPs. */
  readonly pools: readonly Pool[];
}

export interface ExternalServicesController {
  /** The place of this cluster, its ground, or who else has names, may have changed. */
  nudge(): void;
  /** Whether another kind that claims this name concerns an external service. */
  wants(hostname: string): boolean;
  stop(): Promise<void>;
}

const holdMs = 24 * 3_600_000;
/** Certificates run out without an event. */
const lookAgainMs = 600_000;

export function runExternalServices(options: ExternalServicesOptions): ExternalServicesController {
  const { world, home, namespace } = options;
  const log = options.log.with({ part: 'external services' });
  const at = { client: home, world, log, namespace };
  const services = createInformer<MeshExternalService>({ ...at, type: meshExternalServiceType });
  const generators = createInformer<HostnameGenerator>({ ...at, type: hostnameGeneratorType });
  const secrets = createInformer<Secret>({ ...at, type: secretType });
  const claims = createInformer<AddressClaim>({
    ...{ client: home, world, log, type: addressClaimType },
    indexes: { [claimsByOwner]: (claim) => [ownerKey(claim.spec.owner)] },
  });
  const allocator = createAllocator({ home, world, log, claims, holdMs: () => holdMs });
  const reporter = new OverlapReporter(log, world);
  const informers: Informer<never>[] = [services, generators, secrets, claims] as never;
  let wanted: ReadonlySet<string> = new Set();
  const readSecret: SecretReader = (name, key) => secrets.get(`${namespace}/${name}`)?.data?.[key];

  async function reconcile(): Promise<{ requeueAfterMs: number }> {
    const { ranges, zones, pools } = options.ground();
    const plan = planServices({
      services: [...services.values()].sort(byName),
      generators: [...generators.values()].sort(byName),
      others: options.others(),
      zones,
      place: options.place(),
      plugins: options.plugins,
      secrets: readSecret,
    });
    wanted = new Set([...plan.hostnames.addresses.values()].flat().map(({ hostname }) => hostname));
    const held = await hold(allocator, claims, plan.wanted, ranges);
    const own = ranges.map((range) => ({ whose: 'external services', range }));
    const statuses = planStatuses(plan, held, { pools: [...own, ...pools], nowMs: world.clock.wallMs() });
    reporter.report(statuses);
    for (const [object, status] of statuses) await writeStatus(object, status);
    for (const generator of generators.values()) await writeGenerator(generator);
    return { requeueAfterMs: lookAgainMs };

    async function writeGenerator(generator: HostnameGenerator): Promise<void> {
      const { selected, condition } = generatorStatus(generator, plan);
      const conditions = withConditions(generator.status?.conditions, [condition], stampOf(generator));
      if (conditions === generator.status?.conditions && generator.status?.selected === selected) return;
      const next = { ...generator, status: { ...generator.status, selected, conditions: [...conditions] } };
      await home.updateStatus(hostnameGeneratorType, next).catch(ignoreGone);
    }
  }

  async function writeStatus(object: MeshExternalService, { conditions: found, ...rest }: WantedStatus): Promise<void> {
    const conditions = withConditions(object.status?.conditions, found, stampOf(object));
    const present = object.status ?? {};
    const isSame =
      conditions === present.conditions &&
      Object.entries(rest).every(([field, value]) => isSameJson(value, present[field as keyof typeof rest] ?? []));
    if (isSame) return;
    const status = { ...present, ...rest, conditions } as MeshExternalService['status'];
    await home.updateStatus(meshExternalServiceType, { ...object, status } as MeshExternalService).catch(ignoreGone);
  }

  function stampOf({ metadata }: { readonly metadata: { readonly generation?: number } }) {
    const { generation } = metadata;
    return {
      now: formatTime(world.clock.wallMs()),
      observedGeneration: generation,
    };
  }

  const everything = () => [allKey];
  const gate = { informer: { on: () => () => {}, whenSynced: options.whenKnown } };
  const sources = [gate, ...informers.map((informer) => ({ informer, keysOf: everything }))];
  const controller = runController({ name: 'external-services', world, log, sources, reconcile, concurrency: 1 });
  for (const informer of informers) informer.start();
  controller.queue.add(allKey);
  return {
    nudge: () => controller.queue.add(allKey),
    wants: (hostname) => wanted.has(hostname.toLowerCase()),
    stop: async () => {
      for (const informer of informers) informer.stop();
      await controller.stop();
    },
  };
}

const allKey = 'all';

function byName(one: MeshExternalService | HostnameGenerator, other: typeof one): number {
  return one.metadata.name < other.metadata.name ? -1 : 1;
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/**
 * The owner is the name itself: independent of the number of resources that share it, and the same in every cluster.
 */
function ownerOfName(hostname: string): AddressOwner {
  return { kind: meshExternalServiceType.kind, namespace: '', name: hostname };
}

async function hold(
  allocator: Allocator,
  claims: Informer<AddressClaim>,
  hostnames: readonly string[],
  ranges: readonly IpRange[],
): Promise<HeldAddresses> {
  const ips = new Map<string, string[]>();
  const exhausted = new Map<string, string>();
  for (const hostname of hostnames) {
    const own: string[] = [];
    for (const range of ranges) {
      const held = await allocator.hold({ owner: ownerOfName(hostname), range, preferred: [] });
      if (held.kind === 'held') own.push(held.address);
      else exhausted.set(hostname, `no ${range.family} address is left for external services`);
    }
    ips.set(hostname, own);
  }
  const kept = new Set(hostnames);
  for (const { spec } of [...claims.values()]) {
    if (spec.owner.kind !== meshExternalServiceType.kind || spec.releasedAt !== undefined) continue;
    if (!kept.has(spec.owner.name)) await allocator.release(ownerOfName(spec.owner.name));
  }
  return { ips, exhausted };
}

/** Logs each overlap once, as long as it lasts, and only a readable number of lines. */
class OverlapReporter {
  readonly #log: Log;
  readonly #budget: LogBudget;
  #known: ReadonlySet<string> = new Set();

  constructor(log: Log, world: Pick<World, 'clock'>) {
    this.#log = log;
    this.#budget = new LogBudget(world.clock);
  }

  report(statuses: ReadonlyMap<MeshExternalService, WantedStatus>): void {
    const texts = new Set([...statuses.values()].flatMap(({ overlaps }) => overlaps));
    for (const text of texts) {
      if (this.#known.has(text)) continue;
      const fields = this.#budget.take();
      if (fields !== undefined) this.#log.warn(text, fields);
    }
    this.#known = texts;
  }
}
