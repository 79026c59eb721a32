// `portolan dig`: asks a running DNS server why a name gets the answer it gets, over its admin endpoint. A name that the
// server passes on to a federation's authority is explained there too, if that is known.

import type { Command } from 'commander';
import { readBody } from '../base/http.ts';
import { type Explanation, formatExplanation } from '../dns/explain/explanation.ts';
import { usageError } from './exit-codes.ts';
import { formatOutput, type OutputFormat, outputOption, parseOutput } from './table.ts';
import { verbs } from './verbs.ts';
import type { CliDeps } from './with-home.ts';

interface DigFlags {
  readonly from?: string;
  readonly admin?: string;
  readonly authorityAdmin?: string;
  readonly dir?: string;
  readonly output: string;
}

export function addDigCommand(program: Command, deps: CliDeps): void {
  program
    .command('dig')
    .description(verbs.dig)
    .argument('<name>', 'the name in full, such as checkout.shop.svc.clusterset.local')
    .argument('[type]', 'A, AAAA, SRV, PTR, TXT, MX, HTTPS or any other, or TYPE65', 'A')
    .option('--from <cluster>', 'the cluster of the client')
    .option('--admin <url>', 'admin endpoint of the resolver, which it prints at start')
    .option(
      '--authority-admin <url>',
      "admin endpoint of the federation's authority, for names that are forwarded to it",
    )
    .option('--dir <dir>', 'the folder of a running demo (default: .portolan/demo, if neither URL is given)')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Examples:
  portolan dig checkout.shop.svc.clusterset.local --from west
  portolan dig checkout.shop.world.svc.federation --from south
  portolan dig _http._tcp.db.shop.svc.clusterset.local SRV --admin http://127.0.0.1:9153 -o json | jq .records`,
    )
    .action(async (name: string, type: string, flags: DigFlags) => {
      const format = parseOutput(flags.output);
      const steps = await dig(deps, { name, type, ...flags });
      for (const line of formatSteps(steps, format)) deps.print(line);
    });
}

export interface DigRequest {
  readonly name: string;
  readonly type: string;
  readonly from?: string;
  readonly admin?: string;
  readonly authorityAdmin?: string;
  readonly dir?: string;
}

/** The resolver's explanation, then the authority's if it was asked. */
export async function dig(deps: CliDeps, request: DigRequest): Promise<Explanation[]> {
  const { admin, authorityAdmin, asks } = await placesOf(deps, request);
  const first = await explain(deps, admin, { ...request, from: asks });
  if (first.handler !== 'stub' || authorityAdmin === undefined) return [first];
  const second = await explain(deps, authorityAdmin, { ...request, from: request.from ?? first.from });
  return [first, second];
}

interface Places {
  readonly admin: string;
  readonly authorityAdmin: string | undefined;
  /** The cluster that endpoint shall answer for: none if it stands in that cluster itself. */
  readonly asks: string | undefined;
}

interface DemoPlaces {
  readonly clusters: Readonly<Record<string, { readonly admin: string }>>;
  readonly federation: { readonly admin: string };
}

const defaultDemo = '.portolan/demo';

async function placesOf({ host }: CliDeps, request: DigRequest): Promise<Places> {
  const { admin, authorityAdmin, from, dir } = request;
  if (admin !== undefined) return { admin, authorityAdmin, asks: from };
  if (authorityAdmin !== undefined) return { admin: authorityAdmin, authorityAdmin: undefined, asks: from };
  const folder = dir ?? defaultDemo;
  const text = await host.readText(`${folder}/demo.json`);
  if (text === undefined)
    throw new Error(`dig: no demo runs in ${folder}; give --admin URL, as portolan dns prints it, or --dir of a demo`);
  const demo = JSON.parse(text) as DemoPlaces;
  const ids = Object.keys(demo.clusters);
  const cluster = demo.clusters[from ?? ids[0] ?? ''];
  if (cluster === undefined) throw usageError(`--from ${from}: the demo has ${ids.join(', ')}`);
  return { admin: cluster.admin, authorityAdmin: demo.federation.admin, asks: undefined };
}

async function explain({ world }: CliDeps, admin: string, request: DigRequest): Promise<Explanation> {
  const query = new URLSearchParams({ name: request.name, type: request.type });
  if (request.from !== undefined) query.set('from', request.from);
  const transport = world.network.http({ server: admin.replace(/\/$/, '') });
  try {
    const response = await transport.send({ method: 'GET', path: `/explain?${query}`, headers: {} });
    const text = Buffer.from(await readBody(response.body)).toString('utf8');
    if (response.status !== 200) throw new Error(text.trim());
    return JSON.parse(text) as Explanation;
  } catch (cause) {
    throw new Error(`dig ${request.name}: ${admin}`, { cause });
  } finally {
    transport.close();
  }
}

function formatSteps(steps: readonly Explanation[], format: OutputFormat): readonly string[] {
  const [first, second] = steps;
  return formatOutput(format, {
    value: second ? { ...first, authority: second } : first,
    names: steps.flatMap(({ name }) => name),
    text: () => steps.map((step, i) => `${i === 0 ? '' : 'asked there: '}${formatExplanation(step).trimEnd()}`),
  });
}
