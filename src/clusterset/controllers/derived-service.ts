// Keeps the derived Service of an import and takes its cluster IP as the import's. One that is lost is made again with the
// address it had, where the home lets us.

import { errorText } from '../../base/log.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply } from '../../kube/client/apply.ts';
import { isForbidden, isInvalid } from '../../kube/objects/api-error.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { AgentContext } from '../copies/context.ts';
import {
  type DerivedRequest,
  derivedFor,
  derivedServiceName,
  planDerivedService,
  withTraffic,
} from '../rules/derived-service.ts';
import { formatServiceKey, type ServiceKey } from '../rules/names.ts';
import { type AddressFacts, type HeldAddresses, nothingHeld } from './addresses/import-addresses.ts';

const grantText =
  'the agent needs the right to write Services: set agent.writeServices=true (portolan install, Helm), or apply deploy/manifests/services.yaml';
const rightRetryMs = 30_000;

export async function holdDerived(context: AgentContext, facts: AddressFacts): Promise<HeldAddresses> {
  const { service, merge } = facts;
  const name = derivedServiceName(service);
  const present = context.copies.services.get(`${service.namespace}/${name}`);
  // An import keeps the address it had until a derived Service takes its place.
  const kept = {
    ...nothingHeld,
    ips: present === undefined ? (facts.present?.spec.ips ?? []) : addressesOf(present),
    isDerived: present !== undefined,
    retryMs: rightRetryMs,
  };
  if (present !== undefined && derivedFor(present) !== formatServiceKey(service))
    return {
      ...kept,
      ips: facts.present?.spec.ips ?? [],
      isDerived: false,
      problem: `Service ${name} is somebody else's; delete it`,
    };
  // One that is there stays as it was: an import keeps its address while its ports are in dispute.
  if (!merge.ports.some(({ isExposed }) => isExposed))
    return {
      ...kept,
      problem: 'a derived Service needs a port, and the exporters have none in common or declare none',
    };
  try {
    const request = { service, merge, ips: present === undefined ? (facts.present?.spec.ips ?? []) : [] };
    return { ...nothingHeld, ips: addressesOf(await bring(context, present, request)) };
  } catch (error) {
    if (isForbidden(error)) return { ...kept, problem: `${errorText(error)}; ${grantText}` };
    if (isInvalid(error)) return { ...kept, problem: errorText(error) };
    throw error;
  }
}

function addressesOf(service: Service | undefined): string[] {
  return (service?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '');
}

async function bring({ home }: AgentContext, present: Service | undefined, request: DerivedRequest): Promise<Service> {
  const write = async (asked: DerivedRequest) => {
    const change = (there: Service | undefined) =>
      there === undefined ? planDerivedService(asked) : withTraffic(there, asked);
    return (await apply<Service>({ client: home, type: serviceType, present, change })).object;
  };
  if (request.ips.length === 0) return write(request);
  try {
    return await write(request);
  } catch (error) {
    // Somebody has it by now, or it is no address of this cluster: another one is better than none.
    if (!isInvalid(error)) throw error;
    return write({ ...request, ips: [] });
  }
}

/** For an import that is gone, or has an address of another kind. */
export async function dropDerived({ copies, home }: AgentContext, service: ServiceKey): Promise<void> {
  const present = copies.services.get(`${service.namespace}/${derivedServiceName(service)}`);
  if (present !== undefined && derivedFor(present) === formatServiceKey(service))
    await deleteIfPresent(home, serviceType, present.metadata);
}
