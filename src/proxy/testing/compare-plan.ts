// Holds the plan against the model: random catalogs, changed step by step, each transaction applied to the kernel model, and
// random connections that must reach exactly the endpoints that the objects allow, each with its share.

import { addressClaimName } from '../../addresses/address-claim.ts';
import { claimFor } from '../../addresses/claim.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { Ruleset } from '../nft/ruleset.ts';
import { differenceScript, refillScript } from '../nft/script.ts';
import { ProxyState } from '../state.ts';
import { emptyViewInput, viewOf } from '../view.ts';
import { KernelModel } from './kernel-model.ts';
import {
  type Chance,
  type Connection,
  randomImport,
  randomSituation,
  randomSlice,
  reachable,
  type Situation,
  seeded,
} from './random-catalog.ts';

const ranges = ['243.0.0.0/12', 'fd70:6f72:74f3::/64'].map((range) => parseRange(range)!);
const services = 4;
const stepsMax = 4;
const connectionsPerStep = 3;

/** How many connections were compared, or what was different. */
export function comparePlan(seed: number): { readonly compared: number; readonly difference?: string } {
  const chance = seeded(seed);
  const situation = randomSituation(chance);
  const imports = new Map<string, ServiceImport>();
  const slices = new Map<string, EndpointSlice>();
  const claims = new Map<string, string>();
  const state = new ProxyState(viewOfSituation(situation));
  const ruleset = new Ruleset({ isHairpin: (cluster) => cluster === situation.self.cluster });
  const kernel = new KernelModel();
  kernel.apply(refillScript(ruleset, { ranges }, undefined));
  let compared = 0;
  try {
    for (let step = 0; step < stepsMax; step += 1) {
      const changes = step === 0 ? 12 : 1 + Math.floor(chance() * 3);
      for (let change = 0; change < changes; change += 1) changeOne(chance, { imports, slices, claims, state });
      const keys = state.takeDirty();
      kernel.apply(differenceScript(ruleset.change(keys.map((key) => [key, state.choiceOf(key).ports] as const))));
      for (let each = 0; each < connectionsPerStep; each += 1) {
        const to = randomConnection(chance, imports);
        const expected = reachable(to, { imports: [...imports.values()], slices: inOrder(slices), claims, situation });
        const difference = compareWay(kernel, to, expected);
        if (difference !== undefined) return { compared, difference: `seed ${seed}, step ${step}: ${difference}` };
        compared += 1;
      }
    }
    compareRefill(kernel, ruleset);
  } catch (error) {
    return { compared, difference: `seed ${seed}: ${(error as Error).message}` };
  }
  return { compared };
}

function viewOfSituation({ self, preference, places }: Situation) {
  const clusters = new Map(Object.entries(places));
  const nodeRanges = [parseRange('10.1.0.0/24')!];
  return viewOf({ ...emptyViewInput, ...self, locality: { preference, clusters }, nodeRanges, ranges });
}

interface Catalog {
  readonly imports: Map<string, ServiceImport>;
  readonly slices: Map<string, EndpointSlice>;
  readonly claims: Map<string, string>;
  readonly state: ProxyState;
}

function changeOne(chance: Chance, catalog: Catalog): void {
  const { imports, slices, state } = catalog;
  const service = Math.floor(chance() * services);
  const slice = Math.floor(chance() * 3);
  const dice = chance();
  if (dice < 0.35) {
    const object = randomImport(chance, service);
    imports.set(`shop/${object.metadata.name}`, object);
    state.facts.upsertServiceImport(object);
  } else if (dice < 0.85) {
    const object = randomSlice(chance, service, slice);
    slices.set(`shop/${object.metadata.name}`, object);
    state.facts.upsertEndpointSlice(object);
  } else if (dice < 0.9) {
    changeClaim(chance, service, catalog);
  } else if (dice < 0.95) {
    imports.delete(`shop/s${service}`);
    state.facts.removeServiceImport(`shop/s${service}`);
  } else {
    slices.delete(`shop/s${service}-${slice}`);
    state.facts.removeEndpointSlice(`shop/s${service}-${slice}`);
  }
}

function changeClaim(chance: Chance, service: number, { claims, state }: Catalog): void {
  const address = chance() < 0.5 ? `243.0.0.${service + 1}` : `fd70:6f72:74f3::${service + 1}`;
  const name = `s${service + (chance() < 0.3 ? 1 : 0)}`;
  if (claims.delete(address)) return state.addresses.removeClaim(addressClaimName(address));
  claims.set(address, name);
  state.addresses.upsertClaim(claimFor({ kind: 'ServiceImport', namespace: 'shop', name }, address));
}

/** If two slices claim an endpoint, the first cluster by name counts. */
function inOrder(slices: ReadonlyMap<string, EndpointSlice>): EndpointSlice[] {
  const cluster = ({ metadata }: EndpointSlice) => metadata.labels!['multicluster.kubernetes.io/source-cluster']!;
  return [...slices.values()].sort((a, b) => (cluster(a) < cluster(b) ? -1 : cluster(a) > cluster(b) ? 1 : 0));
}

function randomConnection(chance: Chance, imports: ReadonlyMap<string, ServiceImport>): Connection {
  const { spec } = [...imports.values()][Math.floor(chance() * imports.size)] ?? {};
  const port = spec?.ports?.[Math.floor(chance() * spec.ports.length)];
  const ip = spec?.ips?.[Math.floor(chance() * spec.ips.length)] ?? '243.0.0.77';
  if (port === undefined || chance() < 0.1) return { ip, protocol: 'TCP', port: 80 + Math.floor(chance() * 5) };
  return { ip, protocol: port.protocol ?? 'TCP', port: port.port };
}

function compareWay(
  kernel: KernelModel,
  to: Connection,
  expected: ReadonlyMap<string, number> | undefined,
): string | undefined {
  const way = kernel.way({ ...to, protocol: to.protocol.toLowerCase() });
  const text = `${to.protocol} ${to.ip} ${to.port}`;
  if (expected === undefined || expected.size === 0)
    return way.kind === 'refused' ? undefined : `${text}: ${way.kind} in place of refused`;
  if (way.kind !== 'backends') return `${text}: ${way.kind} in place of ${[...expected.keys()].join(', ')}`;
  const has = [...way.shares.keys()].sort().join(', ');
  const wants = [...expected.keys()].sort().join(', ');
  if (has !== wants) return `${text}: ${has} in place of ${wants}`;
  const wrong = [...way.shares].find(
    ([backend, share]) => Math.abs(share - expected.get(backend)!) > drawnBy(way.shares),
  );
  return wrong === undefined ? undefined : `${text}: ${wrong.join(' has ')} in place of ${expected.get(wrong[0])}`;
}

/** Even shares are exact; others are drawn in thousandths, and the largest pays for those that are too small to be drawn. */
function drawnBy(shares: ReadonlyMap<string, number>): number {
  return new Set([...shares.values()].map((share) => share.toFixed(9))).size === 1
    ? 1e-9
    : 0.001 * (1 + shares.size / 10);
}

/** Step by step or all at once: the kernel holds the same. */
function compareRefill(kernel: KernelModel, ruleset: Ruleset): void {
  const fresh = new KernelModel();
  fresh.apply(refillScript(ruleset, { ranges }, undefined));
  for (const map of ['svc4', 'svc6', 'tcp4', 'udp6', 'affid4', 'afftcp6', 'hair4', 'hair6']) {
    const [a, b] = [kernel, fresh].map((each) => JSON.stringify([...each.elements(map)].sort()));
    if (a !== b) throw new Error(`${map}: ${a} step by step, ${b} at once`);
  }
  const [a, b] = [kernel, fresh].map((each) => [...each.chains].sort().join(' '));
  if (a !== b) throw new Error(`chains ${a} step by step, ${b} at once`);
}
