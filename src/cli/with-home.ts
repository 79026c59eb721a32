// Shared by all commands that use a home: the options that choose it, and a client that is closed afterwards.

import type { Command } from 'commander';
import type { Host } from '../base/host.ts';
import type { World } from '../base/world.ts';
import { type Client, createClient } from '../kube/client/client.ts';
import { findHome, type HomeAccess } from '../kube/client/kubeconfig.ts';
import { usageError } from './exit-codes.ts';

export interface CliDeps {
  readonly world: World;
  readonly host: Host;
  /** One line for the person. */
  readonly print: (line: string) => void;
  /** One line for the person that is no part of the output: on standard error. */
  readonly warn?: (line: string) => void;
  /** The current step of long work: on standard error, if that is a terminal. */
  readonly progress?: (line: string) => void;
  /** Before a page that replaces the one before; does nothing where output is no terminal. */
  readonly clearScreen?: () => void;
  /** Resolves when the process is told to end. Before that call a signal ends it at once. */
  readonly untilTold?: () => Promise<void>;
}

export interface HomeFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export interface OpenHome {
  readonly client: Client;
  /** Its URL. */
  readonly server: string;
  readonly defaultNamespace: string;
}

export function addHomeOptions(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'kubeconfig of the home (default: $KUBECONFIG, ~/.kube/config, or the Pod that it runs in)',
    )
    .option('--context <name>', 'a context of that file other than its current one');
}

/** Flags of commands that read several homes at once. */
export interface HomesFlags {
  readonly kubeconfig?: string[];
  readonly context?: string[];
}

export function addHomesOptions(command: Command): Command {
  return command
    .option('--kubeconfig <file...>', 'the homes to look at (default: as for every command)')
    .option('--context <name...>', 'contexts of these files; each is one home');
}

/** Each context of each file; the current one where none is named. */
export function homesOf({ kubeconfig, context }: HomesFlags): HomeFlags[] {
  const contexts = context ?? [undefined];
  return (kubeconfig ?? [undefined]).flatMap((file) => contexts.map((name) => ({ kubeconfig: file, context: name })));
}

/** Takes what it needs of all the flags of a command: some have a `--host` of their own. */
export function findHomeOf(deps: Pick<CliDeps, 'host' | 'world'>, flags: HomeFlags): Promise<HomeAccess> {
  const { kubeconfig, context } = flags;
  return findHome({ host: deps.host, clock: deps.world.clock, kubeconfig, context });
}

export async function withHome<T>(deps: CliDeps, flags: HomeFlags, run: (home: OpenHome) => Promise<T>): Promise<T> {
  const access = await findHomeOf(deps, flags);
  const client = createClient(deps.world.network.http(access), { world: deps.world, userAgent: 'portolan-cli' });
  try {
    return await run({ client, server: access.server, defaultNamespace: access.defaultNamespace });
  } finally {
    client.close();
  }
}

/** `NS/NAME`, or `NAME` in the namespace of the context. */
export function parseServiceRef(text: string, defaultNamespace: string): { namespace: string; name: string } {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || first === '' || second === '') {
    throw usageError(`service ${JSON.stringify(text)}: write NAMESPACE/NAME, such as shop/checkout`);
  }
  return second === undefined ? { namespace: defaultNamespace, name: first } : { namespace: first, name: second };
}

export interface ClusterSetDeps extends CliDeps {
  /** For pipelines: what the process ends with if nothing throws. */
  readonly setExitCode: (code: number) => void;
}

/** Names of the definitions in deploy/crds that a broker and a member's home serve. */
export const brokerDefinitions: readonly string[] = [
  'clustersets',
  'clusters',
  'serviceshards',
  'endpointshards',
  'sealedrecords',
  'heartbeats',
  'livenessreports',
  'serviceimports',
  'federatedservices',
  'federations',
  'hostnamegenerators',
  'meshexternalservices',
];

export const homeDefinitions: readonly string[] = [
  'clusterproperties',
  'serviceexports',
  'serviceimports',
  'serviceaccesspolicies',
  'serviceexportpolicies',
  'serviceimportpolicies',
  'trafficshifts',
  'addressclaims',
  'hostnamegenerators',
  'meshexternalservices',
];

const peeringDefinitions: readonly string[] = ['peers', 'peerexports', 'peerservices'];

export const allDefinitions: readonly string[] = [
  ...new Set([...homeDefinitions, ...brokerDefinitions, ...peeringDefinitions]),
];

export const defaultClusterSet = 'clusterset';
