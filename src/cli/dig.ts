// `portolan dig`: asks a running DNS server why a name gets the answer it gets, over its admin endpoint. A name that the
// server passes on to a federation's authority is explained there too, if that is known.

import type { Command } from 'commander';
import { readBody } from '../base/http.ts';
import { type Explanation, formatExplanation } from '../dns/explain/explanation.ts';
import { PartAdmin } from '../kube/client/part-admin.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { type PartName, partLabel, partState } from '../kube/objects/part-lease.ts';
import { notFoundError, usageError } from './exit-codes.ts';
import { formatOutput, type OutputFormat, outputOption, parseOutput } from './table.ts';
import { verbs } from './verbs.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, withHome } from './with-home.ts';

interface DigFlags extends HomeFlags {
  readonly from?: string;
  readonly brokerKubeconfig?: string;
  readonly admin?: string;
  readonly authorityAdmin?: string;
  readonly dir?: string;
  readonly output: string;
}

export function addDigCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('dig')
    .description(verbs.dig)
    .argument('<name>', 'the name in full, such as checkout.shop.svc.clusterset.local')
    .argument('[type]', 'A, AAAA, SRV, PTR, TXT, MX, HTTPS or any other, or TYPE65', 'A')
    .option('--from <cluster>', 'the cluster of the client')
    .option(
      '--broker-kubeconfig <file>',
      'the broker, to ask the authority of a federation for names that are forwarded',
    )
    .option('--admin <url>', 'admin endpoint of the resolver, in place of the way through the home')
    .option(
      '--authority-admin <url>',
      "admin endpoint of the federation's authority, for names that are forwarded to it",
    )
    .option('--dir <dir>', 'the folder of a running demo (default: .portolan/demo, if no home is given)')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Asks a resolver that reports in the home, through the home. Examples:
  portolan dig checkout.shop.svc.clusterset.local --kubeconfig west.kubeconfig
  portolan dig checkout.shop.world.svc.federation --kubeconfig west.kubeconfig --broker-kubeconfig broker.kubeconfig
  portolan dig checkout.shop.svc.clusterset.local --from west
  portolan dig _http._tcp.db.shop.svc.clusterset.local SRV --admin http://127.0.0.1:9153 -o json | jq .records`,
    );
  addHomeOptions(command).action(async (name: string, type: string, flags: DigFlags) => {
    const format = parseOutput(flags.output);
    const steps = await dig(deps, { name, type, ...flags });
    for (const line of formatSteps(steps, format)) deps.print(line);
  });
}

export interface DigRequest extends HomeFlags {
  readonly name: string;
  readonly type: string;
  readonly from?: string;
  readonly brokerKubeconfig?: string;
  readonly admin?: string;
  readonly authorityAdmin?: string;
  readonly dir?: string;
}

/** The resolver's explanation, then the authority's if it was asked. */
export async function dig(deps: CliDeps, request: DigRequest): Promise<Explanation[]> {
  const { resolver, authority, asks } = await placesOf(deps, request);
  const first = await resolver(queryOf(request, asks));
  if (first.handler !== 'stub' || authority === undefined) return [first];
  const second = await authority(queryOf(request, request.from ?? first.from));
  return [first, second];
}

function queryOf({ name, type }: DigRequest, from: string | undefined): string {
  return `/explain?${new URLSearchParams({ name, type, ...(from === undefined ? {} : { from }) })}`;
}

type Ask = (path: string) => Promise<Explanation>;

interface Places {
  readonly resolver: Ask;
  readonly authority: Ask | undefined;
  /** The cluster that the resolver shall answer for: none if it stands in that cluster itself. */
  readonly asks: string | undefined;
}

interface DemoPlaces {
  readonly clusters: Readonly<Record<string, { readonly admin: string }>>;
  readonly federation: { readonly admin: string };
}

const defaultDemo = '.portolan/demo';

async function placesOf(deps: CliDeps, request: DigRequest): Promise<Places> {
  const { admin, authorityAdmin, from, dir, kubeconfig, context } = request;
  const at = (url: string): Ask => directly(deps, request.name, url);
  if (admin !== undefined)
    return {
      resolver: at(admin),
      authority: authorityAdmin === undefined ? undefined : at(authorityAdmin),
      asks: from,
    };
  if (authorityAdmin !== undefined) return { resolver: at(authorityAdmin), authority: undefined, asks: from };
  const isHomeGiven = kubeconfig !== undefined || context !== undefined;
  const demo = isHomeGiven ? undefined : await readDemo(deps, dir ?? defaultDemo);
  if (demo === undefined && dir !== undefined) throw new Error(`dig: no demo runs in ${dir}`);
  if (demo === undefined) {
    const broker = request.brokerKubeconfig;
    const authority = broker === undefined ? undefined : throughHome(deps, { kubeconfig: broker }, 'authority');
    return { resolver: throughHome(deps, request, 'dns'), authority, asks: from };
  }
  const ids = Object.keys(demo.clusters);
  const cluster = demo.clusters[from ?? ids[0] ?? ''];
  if (cluster === undefined) throw usageError(`--from ${from}: the demo has ${ids.join(', ')}`);
  return { resolver: at(cluster.admin), authority: at(demo.federation.admin), asks: undefined };
}

async function readDemo({ host }: CliDeps, folder: string): Promise<DemoPlaces | undefined> {
  const text = await host.readText(`${folder}/demo.json`);
  return text === undefined ? undefined : (JSON.parse(text) as DemoPlaces);
}

/** The home passes the question on to a part of it that reports. */
function throughHome(deps: CliDeps, flags: HomeFlags, part: PartName): Ask {
  return (path) =>
    withHome(deps, flags, async ({ client, server }) => {
      const labelSelector = `${partLabel}=${part}`;
      const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector });
      const nowMs = deps.world.clock.wallMs();
      const lease = items.find((one) => partState(one, nowMs).kind === 'reported');
      if (lease === undefined)
        throw notFoundError(
          `dig: no ${part === 'dns' ? 'resolver' : part} reports at ${server}; start portolan ${part} there, or give --admin URL, as it prints it`,
        );
      return new PartAdmin(client).ask<Explanation>(lease, path);
    });
}

function directly({ world }: CliDeps, name: string, admin: string): Ask {
  return async (path) => {
    const transport = world.network.http({ server: admin.replace(/\/$/, '') });
    try {
      const response = await transport.send({ method: 'GET', path, headers: {} });
      const text = Buffer.from(await readBody(response.body)).toString('utf8');
      if (response.status !== 200) throw new Error(text.trim());
      return JSON.parse(text) as Explanation;
    } catch (cause) {
      throw new Error(`dig ${name}: ${admin}`, { cause });
    } finally {
      transport.close();
    }
  };
}

function formatSteps(steps: readonly Explanation[], format: OutputFormat): readonly string[] {
  const [first, second] = steps;
  return formatOutput(format, {
    value: second ? { ...first, authority: second } : first,
    names: steps.flatMap(({ name }) => name),
    text: () => steps.map((step, i) => `${i === 0 ? '' : 'asked there: '}${formatExplanation(step).trimEnd()}`),
  });
}
