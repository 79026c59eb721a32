// Tests from here whether a service of the clusterset can be reached by its name: resolves it, connects, counts who
// answered, and asks the endpoints without the proxy where that failed.

import type { Choice } from '../choose.ts';
import { type Identify, probe, resolveName } from './prober.ts';
import { at, type Outcome, type PortFindings, type Report, reportOf } from './report.ts';

export interface ConnectivityRequest {
  /** `namespace/name`. */
  readonly service: string;
  readonly isImported: boolean;
  readonly choice: Choice;
  readonly zone: string;
  readonly count: number;
  /** Resolver to ask, as HOST:PORT; the system's if absent. */
  readonly dns?: string;
  /** False to connect by address alone. */
  readonly isNameLookedUp?: boolean;
  readonly identify: Identify;
  readonly proxies?: number;
  /** Whether clients connect to its endpoints: it is headless, or the set gives no addresses. */
  readonly isByEndpoint?: boolean;
  /** Ready endpoints to ask by themselves. */
  readonly endpoints?: readonly Endpoint[];
}

interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export const countMax = 10_000;
const directMax = 20;

/** Each that a connection might lead to, and that can be asked without the proxy. */
export function endpointsOf({ ports }: Choice): readonly Endpoint[] {
  return ports
    .filter(({ protocol }) => protocol === 'TCP')
    .flatMap(({ backends }) => backends.filter(({ isBehindGateway }) => !isBehindGateway));
}

export async function testConnectivity(request: ConnectivityRequest): Promise<Report> {
  const { service, isImported, choice, zone, count } = request;
  const [namespace, name] = service.split('/');
  const fullName = `${name}.${namespace}.svc.${zone}`;
  const ips = [...new Set(choice.ports.map(({ ip }) => ip))];
  const { isByEndpoint = false } = request;
  const wanted = {
    ...{ service, isImported, name: fullName, ips, ports: choice.ports, problems: choice.problems, isByEndpoint },
  };
  const { isNameLookedUp = true } = request;
  const resolved = isNameLookedUp ? await resolveName(fullName, request.dns) : undefined;
  const ports: PortFindings[] = [];
  for (const port of choice.ports.filter(({ protocol }) => protocol === 'TCP')) {
    const found = await probe(port, count, request.identify);
    const hasFailed = Object.keys(found.outcomes).some((outcome) => outcome !== 'connected');
    const direct = hasFailed ? await askDirectly(port.backends.filter(({ via }) => via === undefined)) : undefined;
    ports.push({ ip: port.ip, port: port.port, ...found, direct });
  }
  const hasAsked = ports.some(({ direct }) => direct !== undefined);
  const endpoints = hasAsked ? {} : await askDirectly(request.endpoints ?? []);
  return reportOf({ wanted, resolved, ports, proxies: request.proxies, endpoints });
}

async function askDirectly(backends: readonly Endpoint[]): Promise<Record<string, Outcome>> {
  const nobody: Identify = () => Promise.resolve(new Map());
  const entries = await Promise.all(
    backends.slice(0, directMax).map(async ({ address, port }) => {
      const { outcomes } = await probe({ ip: address, port }, 1, nobody);
      return [at(address, port), Object.keys(outcomes)[0] as Outcome] as const;
    }),
  );
  return Object.fromEntries(entries);
}
