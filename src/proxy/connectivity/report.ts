// The result of a connectivity test, with the cause of a failure. Pure.

export type Outcome = 'connected' | 'refused' | 'timed out' | 'unreachable';

/** The service as the home has it. */
interface Wanted {
  /** `namespace/name`. */
  readonly service: string;
  readonly isImported: boolean;
  readonly name: string;
  readonly ips: readonly string[];
  readonly ports: readonly WantedPort[];
  readonly problems: readonly string[];
  /** Whether clients connect to its endpoints: it is headless, or the set gives no addresses. */
  readonly isByEndpoint?: boolean;
}

interface WantedPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
  readonly backends: readonly { readonly address: string; readonly port: number; readonly cluster: string }[];
}

export interface Findings {
  readonly wanted: Wanted;
  /** Undefined if the name was not looked up. */
  readonly resolved: undefined | { readonly addresses: readonly string[] } | { readonly error: string };
  readonly ports: readonly PortFindings[];
  /** Proxies that reported to the home lately; undefined if not read. */
  readonly proxies?: number;
  /** Ready endpoints that were asked by themselves: `ADDRESS:PORT` and the outcome. */
  readonly endpoints?: Readonly<Record<string, Outcome>>;
}

export interface PortFindings {
  readonly ip: string;
  readonly port: number;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  /** `ADDRESS:PORT` to how many connections it had; empty if that could not be seen. */
  readonly answeredBy: Readonly<Record<string, number>>;
  /** Endpoints asked without the proxy, after something failed. */
  readonly direct?: Readonly<Record<string, Outcome>>;
}

export interface Report {
  readonly service: string;
  readonly name: string;
  readonly isFine: boolean;
  readonly lines: readonly string[];
  readonly problems: readonly string[];
  readonly ports: readonly PortFindings[];
}

export function reportOf(findings: Findings): Report {
  const { wanted, resolved } = findings;
  const problems = [...wantedProblems(wanted), ...nameProblems(findings)];
  const lines =
    resolved === undefined
      ? []
      : [
          'error' in resolved
            ? `${wanted.name}: ${resolved.error}`
            : `${wanted.name}: ${resolved.addresses.join(', ')}`,
        ];
  for (const port of findings.ports) {
    lines.push(...portLines(port, wanted));
    problems.push(...portProblems(port, findings));
  }
  problems.push(...deadEndpoints(findings));
  if (wanted.isByEndpoint === true) lines.push(...endpointLines(findings));
  const untried = wanted.ports.filter(({ protocol }) => protocol !== 'TCP');
  for (const text of new Set(untried.map(({ port, protocol }) => `${port}/${protocol}`)))
    lines.push(`port ${text}: not tried, only TCP shows whether an endpoint answers`);
  const { service, name } = wanted;
  return {
    service,
    name,
    isFine: problems.length === 0,
    lines,
    problems: [...new Set(problems)],
    ports: findings.ports,
  };
}

function deadEndpoints({ endpoints = {} }: Findings): string[] {
  return Object.entries(endpoints)
    .filter(([, outcome]) => outcome !== 'connected')
    .map(([endpoint, outcome]) => `endpoint ${endpoint} is called ready and does not answer: ${outcome}`);
}

function endpointLines({ endpoints = {} }: Findings): string[] {
  const count = Object.values(endpoints).filter((outcome) => outcome === 'connected').length;
  const asked = Object.keys(endpoints).length;
  return [`it has no clusterset IP, clients connect to its endpoints: ${count} of ${asked} that were asked answer`];
}

function wantedProblems({ service, isImported, ips, ports, problems, isByEndpoint }: Wanted): string[] {
  if (!isImported) return [`no ServiceImport ${service} in this cluster: see portolan explain ${service}`];
  if (ips.length === 0 && isByEndpoint === true) return [];
  if (ips.length === 0)
    return problems.length > 0
      ? [...problems]
      : [`ServiceImport ${service} has no clusterset IP that is served: see its condition Ready`];
  return [
    ...problems,
    ...ports
      .filter(({ backends }) => backends.length === 0)
      .map(({ port, protocol }) => `port ${port}/${protocol} has no ready endpoint: connections are refused`),
  ];
}

function nameProblems({ wanted: { name, ips }, resolved }: Findings): string[] {
  if (ips.length === 0 || resolved === undefined) return [];
  if ('error' in resolved)
    return [
      `${name} does not resolve here (${resolved.error}): point resolv.conf to portolan dns, or ask by --dns HOST:PORT`,
    ];
  const other = resolved.addresses.filter((address) => !ips.includes(address));
  return other.length === 0 ? [] : [`${name} resolves to ${other.join(', ')}, but the import has ${ips.join(', ')}`];
}

function portLines({ ip, port, outcomes, answeredBy }: PortFindings, wanted: Wanted): string[] {
  const counts = Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`);
  const lines = [`${at(ip, port)}: ${counts.join(', ')}`];
  const clusterOf = new Map<string, string>(
    wanted.ports.flatMap(({ backends }) =>
      backends.map((each) => [at(each.address, each.port), each.cluster] as const),
    ),
  );
  for (const [endpoint, count] of Object.entries(answeredBy).sort(([a], [b]) => (a < b ? -1 : 1)))
    lines.push(`  ${count} by ${endpoint}, cluster ${clusterOf.get(endpoint) ?? 'unknown'}`);
  if ((outcomes.connected ?? 0) > 0 && Object.keys(answeredBy).length === 0)
    lines.push(
      '  which endpoint answered cannot be seen here: run it as root with conntrack installed, or at the proxy by --admin URL',
    );
  return lines;
}

function portProblems(found: PortFindings, { wanted, proxies }: Findings): string[] {
  const { ip, port, outcomes, direct = {} } = found;
  const { connected: _connected, ...failures } = outcomes;
  const failed = Object.entries(failures).map(([outcome, count]) => `${count} ${outcome}`);
  if (failed.length === 0) return [];
  const backends =
    wanted.ports.find((each) => each.ip === ip && each.port === port && each.protocol === 'TCP')?.backends ?? [];
  if (backends.length === 0) return [];
  const dead = Object.entries(direct).filter(([, outcome]) => outcome !== 'connected');
  const what = `${at(ip, port)}: ${failed.join(', ')}`;
  if (dead.length > 0) {
    const text = dead.map(([endpoint, outcome]) => `${endpoint} ${outcome}`).join(', ');
    return [
      `${what}; asked without the proxy: ${text}. The network between the clusters does not carry them, or nothing listens there`,
    ];
  }
  if (proxies === 0)
    return [`${what}; the endpoints answer, but no proxy reports in this cluster: run portolan proxy on each node`];
  return [
    `${what}; the endpoints answer without the proxy: see portolan proxy's log and /status on this node, and sysctl net.ipv4.ip_forward`,
  ];
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function at(ip: string, port: number | string): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
