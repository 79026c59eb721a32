// `portolan deregister`: takes a process away from behind a Service, and the Service itself if `register` made it and
// nothing else stands behind it.

import type { Command } from 'commander';
import { madeByAnnotation, madeByRegister, registrationManager } from '../../endpoints/registration.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { isConflict, isNotFound } from '../../kube/objects/api-error.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  serviceNameLabel,
  sliceManagedByLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { type PortFlag, parseAddress, parsePorts } from './register-flags.ts';

interface DeregisterFlags extends HomeFlags, WaitFlags {
  readonly address: string;
  readonly port?: string[];
}

interface DeregisterRequest {
  readonly namespace: string;
  readonly service: string;
  readonly address: string;
  /** Empty: every process registered at that address. */
  readonly ports: readonly PortFlag[];
}

export function addDeregisterCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('deregister')
    .description(verbs.deregister)
    .argument('<namespace/name>', 'the Service; deleted too if register created it and no endpoint is left')
    .requiredOption('--address <ip>', 'address of the process')
    .option('--port <port...>', 'only the process with these ports, if several run at that address');
  addWaitOptions(addHomeOptions(command), 'no endpoint of the Service has the address').action(
    async (ref: string, flags: DeregisterFlags) => {
      const address = parseAddress(flags.address);
      const ports = parsePorts(flags.port ?? []);
      await withHome(deps, flags, async ({ client, defaultNamespace }) => {
        const { namespace, name } = parseServiceRef(ref, defaultNamespace);
        const request = { namespace, service: name, address, ports };
        for (const line of await deregister(client, request)) deps.print(line);
        await waitIfAsked(deps, flags, {
          what: `deregister ${namespace}/${name}`,
          look: async () => {
            const left = (await slicesOf(client, request)).filter((slice) => isMeant(slice, request));
            if (left.length === 0) return { done: `${address} is no endpoint of ${namespace}/${name}` };
            return { waiting: `${address} is still an endpoint of ${namespace}/${name}` };
          },
        });
      });
    },
  );
}

/** Returns one line per completed step. Nothing to do is no error: the outcome is the one that was wanted. */
async function deregister(client: Client, request: DeregisterRequest): Promise<string[]> {
  const { namespace, service, address } = request;
  const where = `${namespace}/${service}`;
  const slices = await slicesOf(client, request);
  const found = slices.filter((slice) => isMeant(slice, request));
  for (const slice of found) await deleteIfPresent(client, endpointSliceType, slice.metadata);
  const lines = [
    found.length === 0 ? `${address}: not registered behind ${where}` : `${address}: deregistered from ${where}`,
  ];
  const isEmpty = slices.length === found.length;
  if (isEmpty && (await removeOwnService(client, request))) lines.push(`removed Service ${where}`);
  return lines;
}

async function slicesOf(client: Client, { namespace, service }: DeregisterRequest): Promise<EndpointSlice[]> {
  const labelSelector = `${serviceNameLabel}=${service}`;
  const slices: EndpointSlice[] = [];
  for await (const page of client.listPaged<EndpointSlice>(endpointSliceType, { namespace, labelSelector })) {
    slices.push(...page.items);
  }
  return slices;
}

function isMeant(slice: EndpointSlice, { address, ports }: DeregisterRequest): boolean {
  if (slice.metadata.labels?.[sliceManagedByLabel] !== registrationManager) return false;
  if (slice.endpoints[0]?.addresses?.[0] !== address) return false;
  const numbers = new Set((slice.ports ?? []).map(({ port }) => port));
  return ports.length === 0 || (ports.length === numbers.size && ports.every(({ port }) => numbers.has(port)));
}

async function removeOwnService(client: Client, request: DeregisterRequest): Promise<boolean> {
  const ref = { namespace: request.namespace, name: request.service };
  try {
    const { metadata } = await client.get<Service>(serviceType, ref);
    if (metadata.annotations?.[madeByAnnotation] !== madeByRegister) return false;
    // Somebody may have registered since we looked.
    if ((await slicesOf(client, request)).length > 0) return false;
    const { uid, resourceVersion } = metadata;
    await client.delete(serviceType, ref, { preconditions: { uid, resourceVersion } });
    return true;
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return false;
    throw error;
  }
}
