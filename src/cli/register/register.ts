// `portolan register`: puts a process on some machine behind a Service. Doing it twice is doing it once.

import type { Command } from 'commander';
import type { HealthCheck } from '../../endpoints/health-check.ts';
import {
  madeByAnnotation,
  madeByRegister,
  matchPorts,
  type Registration,
  registrationName,
  registrationSlice,
} from '../../endpoints/registration.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import { apply, createIfAbsent, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { exportService, refuseSystem, waitForExport } from '../clusterset/export.ts';
import { refusedError, usageError } from '../exit-codes.ts';
import { exportToPeers } from '../peer/export.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, parseTimeout, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { addDeregisterCommand } from './deregister.ts';
import { type CheckFlags, type PortFlag, parseAddress, parseCheck, parsePorts } from './register-flags.ts';

interface RegisterFlags extends HomeFlags, CheckFlags, WaitFlags {
  readonly address: string;
  readonly port: string[];
  readonly zone?: string;
  readonly loadBalancer?: string;
  readonly headless?: boolean;
  readonly export?: boolean;
  readonly peer: string[];
}

export interface RegisterRequest {
  readonly namespace: string;
  readonly service: string;
  readonly address: string;
  readonly ports: readonly PortFlag[];
  readonly check?: HealthCheck;
  readonly zone?: string;
  /** Whether the Service is made headless. */
  readonly isHeadless?: boolean;
}

/** A Service that vanished is created anew; more often than this, another writer is working against us. */
const attemptsMax = 3;

export function addRegisterCommands(program: Command, deps: CliDeps): void {
  const command = program
    .command('register')
    .description(verbs.register)
    .argument('<namespace/name>', 'the Service; created without a selector if it does not exist')
    .requiredOption('--address <ip>', 'address of the process')
    .requiredOption('--port <port...>', 'its ports: 8080, http=8080, http=80:8080 (the Service offers 80), dns=53/udp')
    .option(
      '--check <how>',
      'tcp, tcp:PORT, or http://HOST[:PORT]/PATH (2xx and 3xx pass); always connects to --address',
    )
    .option('--interval <time>', 'time between checks (default: 5s)')
    .option('--check-timeout <time>', 'time limit of a check (default: 2s)')
    .option('--rise <n>', 'passed checks in a row until it is ready (default: 1)')
    .option('--fall <n>', 'failed checks in a row until it is not ready (default: 3)')
    .option('--zone <zone>', 'its zone, for clients that prefer near endpoints')
    .option(
      '--load-balancer <ip>',
      'address at which other clusters reach the Service, for federated names; its type becomes LoadBalancer',
    )
    .option('--headless', 'a Service without an address of its own: its name leads to the processes')
    .option('--export', 'also export the Service to the clusterset')
    .option('--peer <name...>', 'also share the Service with these peers', [])
    .addHelpText('after', examples);
  addWaitOptions(addHomeOptions(command), 'it is ready, and exported if that was asked for').action(
    async (ref: string, flags: RegisterFlags) => {
      const ports = parsePorts(flags.port);
      const address = parseAddress(flags.address);
      const check = parseCheck(flags, ports[0]!.port);
      const balancer = flags.loadBalancer && parseAddress(flags.loadBalancer, '--load-balancer');
      await withHome(deps, flags, async ({ client, defaultNamespace }) => {
        const { namespace, name } = parseServiceRef(ref, defaultNamespace);
        if (flags.headless && balancer)
          throw usageError('--load-balancer: a headless Service has no address; leave one out');
        const request = {
          ...{ namespace, service: name, address, ports, check, zone: flags.zone },
          isHeadless: flags.headless === true,
        };
        for (const line of await register(client, request)) deps.print(line);
        if (balancer) deps.print(await addLoadBalancer(client, { namespace, name }, balancer));
        await offer(deps, flags, { client, namespace, name });
        await waitIfAsked(deps, flags, {
          what: `register ${namespace}/${name}`,
          look: () => lookAtSlice(client, { namespace, service: name, address }),
        });
        const timeoutMs = parseTimeout(flags.timeout);
        if (flags.wait && flags.export)
          deps.print(await waitForExport(deps, { home: client, namespace, name, timeoutMs }));
      });
    },
  );
  addDeregisterCommand(program, deps);
}

/** Where no cloud gives a Service its address, the machine itself has one. Several machines may add theirs. */
async function addLoadBalancer(
  client: Client,
  ref: { readonly namespace: string; readonly name: string },
  ip: string,
): Promise<string> {
  await client.patch(serviceType, ref, { kind: 'merge', body: { spec: { type: 'LoadBalancer' } } });
  const present = await client.get<Service>(serviceType, ref);
  const ingress = present.status?.loadBalancer?.ingress ?? [];
  const isThere = ingress.some((one) => one.ip === ip);
  const status = { ...present.status, loadBalancer: { ingress: [...ingress, ...(isThere ? [] : [{ ip }])] } };
  await client.updateStatus(serviceType, { ...present, status });
  return `${ref.namespace}/${ref.name} is reached at ${ip} by other clusters`;
}

interface OfferedService {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
}

/** To the clusterset and to peers, as far as it was asked for. */
async function offer(deps: CliDeps, flags: RegisterFlags, service: OfferedService): Promise<void> {
  const { client, namespace, name } = service;
  if (flags.export) {
    refuseSystem(namespace, false);
    for await (const line of exportService(deps, { home: client, namespace, name })) deps.print(line);
  }
  if (flags.peer.length === 0) return;
  const home = { client, namespace: systemNamespace };
  for (const line of await exportToPeers(home, { service: { namespace, name }, peers: flags.peer })) deps.print(line);
}

async function lookAtSlice(
  client: Client,
  at: Pick<RegisterRequest, 'namespace' | 'service' | 'address'>,
): Promise<Look> {
  const labelSelector = `${serviceNameLabel}=${at.service}`;
  const { items } = await client.list<EndpointSlice>(endpointSliceType, { namespace: at.namespace, labelSelector });
  const own = items
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ addresses }) => addresses?.[0] === at.address);
  const isReady = own.length > 0 && own.every(({ conditions }) => conditions?.ready !== false);
  return isReady ? { done: `${at.address} is ready` } : { waiting: `${at.address} has not passed its checks yet` };
}

const examples = `
Without --check the process is ready at once. With one it is ready when its checks say so, as long as the home's
registration controller runs. Registering again with the same address and ports changes nothing but the check and the zone.

Examples:
  portolan register shop/checkout --address 10.0.0.7 --port 8080 --check tcp
  portolan register shop/checkout --address 10.0.0.7 --port 8080 --export --wait
  portolan register shop/checkout --address 10.0.0.7 --port http=8080 --port metrics=9090 --check http://checkout:8080/healthz
`;

/** Returns one line per completed step. */
export async function register(client: Client, request: RegisterRequest): Promise<string[]> {
  const what = `register ${request.namespace}/${request.service}`;
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const { service, wasMade } = await ensureService(client, request, what);
    const registration = registrationFor(request, service, what);
    const outcome = await ensureSlice(client, registration, service);
    // `deregister` of the last other process may have removed the Service between our two steps.
    if (await isStillThere(client, service)) return describe(registration, { wasMade, outcome });
  }
  throw new Error(
    `${what}: the Service was removed ${attemptsMax} times while registering; does another process deregister it in a loop?`,
  );
}

async function ensureService(
  client: Client,
  request: RegisterRequest,
  what: string,
): Promise<{ service: Service; wasMade: boolean }> {
  try {
    const { object, outcome } = await createIfAbsent(client, serviceType, newService(request));
    return { service: object, wasMade: outcome === 'created' };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new Error(
      `${what}: there is no namespace ${request.namespace}; make it with kubectl create namespace ${request.namespace}`,
      { cause: error },
    );
  }
}

function newService({ namespace, service, ports, isHeadless }: RegisterRequest): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: service,
      namespace,
      labels: { 'app.kubernetes.io/managed-by': 'portolan' },
      annotations: { [madeByAnnotation]: madeByRegister },
    },
    spec: {
      ...(isHeadless ? { clusterIP: 'None' } : {}),
      ports: ports.map(({ name, protocol, port, servicePort }) => ({
        ...(name === '' ? {} : { name }),
        protocol,
        port: servicePort,
        targetPort: port,
      })),
    },
  };
}

function registrationFor(request: RegisterRequest, service: Service, what: string): Registration {
  if (Object.keys(service.spec?.selector ?? {}).length > 0) {
    throw refusedError(
      `${what}: that Service has a selector, so its endpoints are the Pods it selects; register under another name, or remove the selector`,
    );
  }
  if (request.isHeadless && service.spec?.clusterIP !== 'None') {
    throw refusedError(
      `${what}: that Service has the address ${service.spec?.clusterIP}; leave --headless out, or register under another name`,
    );
  }
  if (service.spec?.type === 'ExternalName') {
    throw refusedError(`${what}: that Service is an ExternalName, which has no endpoints; register under another name`);
  }
  const match = matchPorts(
    service,
    request.ports.map(({ name, protocol, port }) => ({ name, protocol, port })),
  );
  if (match.kind === 'mismatch')
    throw usageError(`${what}: ${match.problem}; name one of them with --port NAME=NUMBER`);
  return { ...request, ports: match.ports };
}

const outcomes = { created: 'registered', updated: 'changed', unchanged: 'already registered' } as const;

type Outcome = (typeof outcomes)[keyof typeof outcomes];

async function ensureSlice(client: Client, registration: Registration, service: Service): Promise<Outcome> {
  const ref = { namespace: registration.namespace, name: registrationName(registration) };
  const present = await getOrUndefined<EndpointSlice>(client, endpointSliceType, ref);
  // A check that succeeded keeps the slice ready, so what is wanted depends on what is there.
  const change = (there: EndpointSlice | undefined) =>
    replaceWith(registrationSlice(registration, service, there))(there);
  const { outcome } = await apply({ client, type: endpointSliceType, present, change, onConflict: 'retry' });
  return outcomes[outcome];
}

async function isStillThere(client: Client, service: Service): Promise<boolean> {
  const { uid, deletionTimestamp } =
    (await getOrUndefined<Service>(client, serviceType, service.metadata))?.metadata ?? {};
  return uid === service.metadata.uid && deletionTimestamp === undefined;
}

function describe(registration: Registration, { wasMade, outcome }: { wasMade: boolean; outcome: Outcome }): string[] {
  const { namespace, service, address, ports, check } = registration;
  const numbers = ports.map(({ name, port }) => (name === '' ? String(port) : `${name}=${port}`)).join(', ');
  const lines = [`${address} (${numbers}): ${outcome} behind ${namespace}/${service}`];
  if (wasMade) lines.unshift(`made Service ${namespace}/${service}`);
  if (check !== undefined && outcome !== 'already registered')
    lines.push(`ready when its check succeeds ${check.rise} time(s)`);
  return lines;
}
