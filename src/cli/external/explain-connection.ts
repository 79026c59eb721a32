// `portolan explain connection`: for a clusterset address, which clusters and hops; else under which rule of external services a
// connection falls, where it goes, and what it hides.

import type { Command } from 'commander';
import { parseIp } from '../../base/net/ip.ts';
import { listAll } from '../../clusterset/explain/set-state.ts';
import { membershipSecretName, readMembership } from '../../clusterset/membership/membership.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { builtinPlugins } from '../../external/plugins/builtin.ts';
import type { Connection, Request } from '../../external/rules/choose.ts';
import { type ConnectionExplanation, explainConnection } from '../../external/rules/explain-connection.ts';
import { defaultClusterset, type Place } from '../../external/rules/visibility.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { externalNamespace, systemNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { formatConnectionPath, readConnectionPath } from '../connection-path.ts';
import { usageError } from '../exit-codes.ts';
import { formatOutput, formatTable, outputOption, parseOutput } from '../table.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, withHome } from '../with-home.ts';

interface ConnectionFlags extends HomeFlags {
  readonly to: string;
  readonly sni?: string;
  readonly host?: string;
  readonly protocol?: string;
  readonly output: string;
}

const protocols = ['tls', 'tcp', 'http', 'http2', 'grpc'] as const;

export function addExplainConnectionCommand(explain: Command, deps: CliDeps): void {
  const command = explain
    .command('connection')
    .description(
      'show the clusters and hops of a connection to a clusterset address, or the rule of external services that it matches, its destination and the rules that lost',
    )
    .requiredOption('--to <ip:port>', 'destination of the client')
    .option('--sni <name>', 'the name in its TLS handshake')
    .option('--host <name>', 'the Host of a request')
    .option('--protocol <protocol>', `${protocols.join(', ')} (default: tls with --sni, http with --host, else tcp)`)
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Examples:
  portolan explain connection --to 243.9.0.1:80
  portolan explain connection --to 10.1.1.7:443 --sni api.example.com
  portolan explain connection --to 242.0.0.1:80 --host mongo.ext.svc.local -o json`,
    );
  addHomeOptions(command).action(async () => {
    // Options that `explain` has too are read by it.
    const flags = command.optsWithGlobals<ConnectionFlags>();
    const format = parseOutput(flags.output);
    const { connection, request } = parseConnection(flags);
    const { value, names, lines } = await withHome(deps, flags, async ({ client }) => {
      const place = await placeOf(client);
      const { address, port } = connection;
      const path = await readConnectionPath(client, { clock: deps.world.clock, self: place.cluster, address, port });
      if (path !== undefined)
        return { value: path, names: [path.service], lines: () => formatConnectionPath(flags.to, path) };
      const explanation = await externalRule(client, place, { connection, request });
      const { rule } = explanation;
      const ruleNames = rule === undefined ? [] : [rule.resource];
      return { value: explanation, names: ruleNames, lines: () => formatConnection(flags, explanation) };
    });
    for (const line of formatOutput(format, { value, names, text: lines })) deps.print(line);
  });
}

export function parseConnection(flags: Pick<ConnectionFlags, 'to' | 'sni' | 'host' | 'protocol'>): {
  connection: Connection;
  request?: Request;
} {
  const parts = /^\[?([^\]]+)\]?:(\d{1,5})$/.exec(flags.to);
  const address = parseIp(parts?.[1] ?? '');
  const port = Number(parts?.[2]);
  if (address === undefined || port < 1 || port > 65_535)
    throw usageError(`--to ${JSON.stringify(flags.to)}: write IP:PORT, such as 10.1.1.7:443 or [fd00::1]:443`);
  if (flags.sni !== undefined && flags.host !== undefined)
    throw usageError('--sni and --host: give one; Host is hidden inside TLS');
  const guess = flags.sni === undefined ? (flags.host === undefined ? 'tcp' : 'http') : 'tls';
  const protocol = protocols.find((one) => one === (flags.protocol ?? guess));
  if (protocol === undefined) throw usageError(`--protocol ${flags.protocol}: write ${protocols.join(', ')}`);
  if (flags.sni !== undefined && protocol !== 'tls')
    throw usageError(`--sni: ${protocol} has none; use --protocol tls`);
  if (flags.host !== undefined && (protocol === 'tls' || protocol === 'tcp'))
    throw usageError(`--host: ${protocol} has none; use --protocol http, http2 or grpc`);
  const application = protocol === 'http' ? 'http1' : protocol === 'tcp' ? undefined : 'http2';
  const transport: Connection['transport'] =
    protocol === 'tls' ? { kind: 'tls', sni: flags.sni } : { kind: 'plain', application };
  const request = flags.host === undefined ? {} : { request: { host: flags.host } };
  return { connection: { address, port, transport }, ...request };
}

async function externalRule(
  client: Client,
  place: Place,
  { connection, request }: ReturnType<typeof parseConnection>,
): Promise<ConnectionExplanation> {
  const services = await listAll<MeshExternalService>(client, meshExternalServiceType, { namespace: systemNamespace });
  const input = { services, place, plugins: builtinPlugins, secrets: await readSecrets(client) };
  return explainConnection(input, connection, request);
}

async function readSecrets(client: Client): Promise<(name: string, key: string) => string | undefined> {
  const secrets = await listAll<Secret>(client, secretType, { namespace: externalNamespace });
  const byName = new Map(secrets.map((secret) => [secret.metadata.name, secret]));
  return (name, key) => byName.get(name)?.data?.[key];
}

async function placeOf(client: Client): Promise<Place> {
  const secret = await getOrUndefined<Secret>(client, secretType, {
    namespace: systemNamespace,
    name: membershipSecretName,
  });
  if (secret === undefined) return { clusterset: defaultClusterset, cluster: '' };
  const { clusterset, clusterId } = readMembership(secret);
  return { clusterset, cluster: clusterId };
}

export function formatConnection(flags: Pick<ConnectionFlags, 'to'>, explanation: ConnectionExplanation): string[] {
  const { rule, destination, listener, hides, notes } = explanation;
  const listeners = {
    inspected: 'the one that looks at the first bytes',
    plain: 'the one that does not look inside',
    none: 'none, the kernel does not redirect it',
  };
  return [
    `connection  ${flags.to}`,
    `rule        ${rule === undefined ? 'none: treated as without Portolan' : `${rule.resource} ${rule.field}: ${rule.match}`}`,
    `goes to     ${destination}`,
    ...(rule === undefined ? [] : [`cluster     ${rule.cluster}`]),
    `listener    ${listeners[listener]}`,
    ...(hides.length === 0
      ? []
      : [
          '',
          ...formatTable(
            ['HIDDEN', 'MATCH', 'WHY'],
            hides.map((one) => [one.resource, one.match, one.why]),
          ),
        ]),
    ...notes.map((note) => `note: ${note}`),
  ];
}
