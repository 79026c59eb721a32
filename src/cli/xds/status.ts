// `portolan xds status`: each proxy, what it holds, what it refused. Asks a running discovery server.

import type { Command } from 'commander';
import { readBody } from '../../base/http.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from '../table.ts';
import type { CliDeps } from '../with-home.ts';

interface ProxyReport {
  readonly id: string;
  readonly isConnected: boolean;
  readonly userAgent: string;
  readonly streams: readonly { readonly variant: string }[];
  readonly holds: Readonly<Record<string, number>>;
  readonly inFlight: number;
  readonly certificateEnds?: string;
  readonly refused: readonly {
    readonly type: string;
    readonly name: string;
    readonly message: string;
    readonly isHeldAtLastGood: boolean;
  }[];
}

interface StatusFlags {
  readonly admin: string;
  readonly output: string;
}

export function addXdsStatusCommand(xds: Command, deps: CliDeps): void {
  xds
    .command('status')
    .description('show each proxy, its resources and the rejected ones')
    .requiredOption('--admin <url>', 'the admin endpoint that portolan xds prints when it starts')
    .option(...outputOption)
    .action((flags: StatusFlags) => status(deps, flags));
}

async function status(deps: CliDeps, flags: StatusFlags): Promise<void> {
  const format = parseOutput(flags.output);
  const proxies = await ask(deps, flags.admin);
  const names = proxies.map(({ id }) => id);
  for (const line of formatOutput(format, { value: proxies, names, text: () => proxyLines(proxies) })) deps.print(line);
}

const head = [
  'PROXY',
  'STATE',
  'CLIENT',
  'CLUSTERS',
  'ENDPOINTS',
  'LISTENERS',
  'ROUTES',
  'HOSTS',
  'SECRETS',
  'UNANSWERED',
  'REFUSED',
  'CERTIFICATE ENDS',
];

function proxyLines(proxies: readonly ProxyReport[]): string[] {
  if (proxies.length === 0) return ['no proxy has connected yet'];
  const rows = proxies.map(({ id, isConnected, userAgent, streams, holds, inFlight, refused, certificateEnds }) => [
    id,
    isConnected ? (streams[0]?.variant ?? 'connected') : 'away',
    userAgent,
    ...['cluster', 'endpoints', 'listener', 'route', 'virtual-host', 'secret'].map((type) => String(holds[type] ?? 0)),
    String(inFlight),
    String(refused.length),
    certificateEnds ?? '-',
  ]);
  const refusals = proxies.flatMap(({ id, refused }) =>
    refused.map(
      ({ type, name, message, isHeldAtLastGood }) =>
        `${id} refused ${type} ${name} and keeps ${isHeldAtLastGood ? 'the last good one' : 'none'}: ${message}`,
    ),
  );
  return [...formatTable(head, rows), ...refusals];
}

async function ask({ world }: CliDeps, admin: string): Promise<ProxyReport[]> {
  const transport = world.network.http({ server: admin.replace(/\/$/, '') });
  try {
    const response = await transport.send({ method: 'GET', path: '/status', headers: {} });
    const text = Buffer.from(await readBody(response.body)).toString('utf8');
    if (response.status !== 200) throw new Error(text.trim());
    return (JSON.parse(text) as { proxies: ProxyReport[] }).proxies;
  } catch (cause) {
    throw new Error(`xds status: ${admin} does not answer as the admin endpoint of portolan xds`, { cause });
  } finally {
    transport.close();
  }
}
