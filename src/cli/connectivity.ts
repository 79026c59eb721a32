// `portolan test connectivity`: whether a service of the clusterset can be reached by its name from here, who answered, and
// what is wrong where it fails.

import type { Command } from 'commander';
import { type AddressClaim, addressClaimName, addressClaimType } from '../addresses/address-claim.ts';
import { readBody } from '../base/http.ts';
import { type ClusterProperty, clusterIdProperty, clusterPropertyType } from '../clusterset/kinds/cluster-property.ts';
import { type ServiceImport, serviceImportType } from '../clusterset/kinds/service-import.ts';
import { allocatedRanges } from '../clusterset/rules/address-plan.ts';
import { clusterSetDnsName, readDnsOptions } from '../clusterset/rules/clusterset-dns.ts';
import { readLocality } from '../clusterset/rules/locality.ts';
import type { Client } from '../kube/client/client.ts';
import { isNotFound } from '../kube/objects/api-error.ts';
import { conditionOf } from '../kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  isReady as isReadyEndpoint,
} from '../kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partLabel, partState } from '../kube/objects/part-lease.ts';
import {
  type ConnectivityRequest,
  countMax,
  endpointsOf,
  testConnectivity,
} from '../proxy/connectivity/connectivity.ts';
import { identifyByConntrack } from '../proxy/connectivity/prober.ts';
import type { Report } from '../proxy/connectivity/report.ts';
import { ProxyState } from '../proxy/state.ts';
import { emptyViewInput, viewOf } from '../proxy/view.ts';
import { exitCodes, usageError } from './exit-codes.ts';
import { formatOutput, outputOption, parseOutput } from './table.ts';
import { verbs } from './verbs.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, parseServiceRef, withHome } from './with-home.ts';

interface ConnectivityFlags extends HomeFlags {
  readonly count: number;
  readonly dns?: string;
  readonly admin?: string;
  readonly output: string;
}

type Deps = CliDeps & { readonly setExitCode: (code: number) => void };

export function addTestCommand(program: Command, deps: Deps): void {
  const test = program.command('test').description(verbs.test);
  addHomeOptions(
    test
      .command('connectivity')
      .description('connect to a service by its clusterset name, and show the endpoints that answered or the problem')
      .argument('<service>', 'NAMESPACE/NAME, such as shop/checkout'),
  )
    .option('--count <n>', 'connections to each port', parseCount, 100)
    .option('--dns <host:port>', "resolver to ask (default: the system's)")
    .option('--admin <url>', 'run the test in the proxy with this admin endpoint, on its node')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Exit code 7 on failure. Root and conntrack, or the proxy, are needed to see which endpoint answered. Examples:
  portolan test connectivity shop/checkout
  portolan test connectivity shop/checkout --count 1000 --admin http://127.0.0.1:9466`,
    )
    .action(async (service: string, flags: ConnectivityFlags) => {
      const format = parseOutput(flags.output);
      const report =
        flags.admin === undefined ? await testHere(deps, service, flags) : await testAt(deps, service, flags);
      const text = () => [...report.lines, ...report.problems.map((each) => `problem: ${each}`)];
      for (const line of formatOutput(format, { value: report, names: [service], text })) deps.print(line);
      if (!report.isFine) deps.setExitCode(exitCodes.notReady);
    });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > countMax)
    throw usageError(`--count ${text}: want a number from 1 to ${countMax}`);
  return count;
}

async function testHere(deps: Deps, text: string, flags: ConnectivityFlags): Promise<Report> {
  const request = await withHome(deps, flags, async ({ client, defaultNamespace }) => {
    const { namespace, name } = parseServiceRef(text, defaultNamespace);
    return requestFrom(client, { namespace, name, nowMs: deps.world.clock.wallMs() });
  });
  return testConnectivity({ ...request, count: flags.count, dns: flags.dns, identify: identifyByConntrack(deps.host) });
}

/** Tries a few connections to each of these services from here and returns the problems. */
export async function connectionProblems(
  deps: CliDeps,
  client: Client,
  { connect, dns }: { readonly connect: readonly string[]; readonly dns?: string },
): Promise<{ service: string; from: string; problems: readonly string[] }[]> {
  const nowMs = deps.world.clock.wallMs();
  return Promise.all(
    connect.map(async (text) => {
      const wanted = { ...parseServiceRef(text, 'default'), nowMs };
      const request = await requestFrom(client, wanted);
      const identify = identifyByConntrack(deps.host);
      const endpoints = request.isByEndpoint === true ? request.endpoints : endpointsOf(request.choice);
      const asked = { ...request, endpoints, count: fewConnections, dns, identify };
      const { isFine, problems } = await testConnectivity(asked);
      return { service: request.service, from: 'here', problems: isFine ? [] : problems };
    }),
  );
}

const fewConnections = 5;

interface Wanted {
  readonly namespace: string;
  readonly name: string;
  readonly nowMs: number;
}

/** Reads the service from the home and applies the choice function of the proxies. */
async function requestFrom(
  client: Client,
  { namespace, name, nowMs }: Wanted,
): Promise<Omit<ConnectivityRequest, 'count' | 'identify'>> {
  const options = await getOr<ConfigMap>(client, configMapType, {
    namespace: systemNamespace,
    name: clusterSetDnsName,
  });
  const property = await getOr<ClusterProperty>(client, clusterPropertyType, { name: clusterIdProperty });
  const object = await getOr<ServiceImport>(client, serviceImportType, { namespace, name });
  const { items } = await client.list<EndpointSlice>(endpointSliceType, {
    namespace,
    labelSelector: `${importedServiceNameLabel}=${name}`,
  });
  const input = { cluster: property?.spec?.value ?? '', locality: readLocality(options ?? {}), isUserspace: true };
  const state = new ProxyState({ ...viewOf({ ...emptyViewInput, ...input }), serves: () => true });
  if (object !== undefined) state.facts.upsertServiceImport(object);
  await readClaims(client, state, { object, options });
  for (const slice of items) state.facts.upsertEndpointSlice(slice);
  const isReady = conditionOf(object?.status?.conditions, 'Ready')?.status === 'True';
  const isByEndpoint = object?.spec.type === 'Headless' || ((object?.spec.ips ?? []).length === 0 && isReady);
  const leases = await client.list<Lease>(leaseType, {
    namespace: systemNamespace,
    labelSelector: `${partLabel}=proxy`,
  });
  return {
    service: `${namespace}/${name}`,
    isImported: object !== undefined,
    ...(isByEndpoint ? { isByEndpoint, endpoints: readyEndpoints(items) } : {}),
    choice: state.choiceOf(`${namespace}/${name}`),
    zone: readDnsOptions(options ?? {}).zone,
    proxies: leases.items.filter((lease) => partState(lease, nowMs).kind === 'reported').length,
  };
}

/** Whose the addresses of the import are, as its proxies judge it. */
async function readClaims(
  client: Client,
  { addresses }: ProxyState,
  { object, options }: { readonly object: ServiceImport | undefined; readonly options: ConfigMap | undefined },
): Promise<void> {
  for (const address of (object?.spec?.ips ?? []).slice(0, 2)) {
    const claim = await getOr<AddressClaim>(client, addressClaimType, { name: addressClaimName(address) });
    if (claim !== undefined) addresses.upsertClaim(claim);
  }
  addresses.setRanges(allocatedRanges(options ?? {}));
  addresses.setListed();
}

function readyEndpoints(slices: readonly EndpointSlice[]) {
  return slices.flatMap(({ endpoints, ports }) => {
    const numbers = (ports ?? []).flatMap(({ port, protocol }) => ((protocol ?? 'TCP') === 'TCP' ? (port ?? []) : []));
    const addresses = (endpoints ?? []).filter(isReadyEndpoint).flatMap((one) => one.addresses ?? []);
    return addresses.flatMap((address) => numbers.map((port) => ({ address, port })));
  });
}

async function getOr<T extends KubernetesObject>(
  client: Client,
  type: ResourceType,
  ref: { readonly namespace?: string; readonly name: string },
): Promise<T | undefined> {
  try {
    return await client.get<T>(type, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function testAt({ world }: Deps, service: string, { admin, count, dns }: ConnectivityFlags): Promise<Report> {
  const query = new URLSearchParams({ service, count: String(count), ...(dns === undefined ? {} : { dns }) });
  const transport = world.network.http({ server: admin! });
  try {
    const response = await transport.send({ method: 'GET', path: `/connectivity?${query}`, headers: {} });
    const text = Buffer.from(await readBody(response.body)).toString('utf8');
    if (response.status !== 200) throw new Error(`${admin}: ${text.trim()}`);
    return JSON.parse(text) as Report;
  } finally {
    transport.close();
  }
}
