// `portolan peer …`: the verbs for other meshes. Each reads and writes facts in this mesh's home; the peering process
// does the rest.

import type { Command } from 'commander';
import { exitCodes, usageError } from '../exit-codes.ts';
import { readToken } from '../given-token.ts';
import { outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { addByHand, addByToken, makeToken, ownCard, type PeerHome, removePeer } from './add.ts';
import { exportToPeers } from './export.ts';
import { listRoutes } from './routes.ts';
import { diffPeer, listPeers, listServices, type PeerReport, retryPeer, showPeer } from './show.ts';

export interface PeerDeps extends CliDeps {
  readonly setExitCode: (code: number) => void;
}

interface PeerFlags extends HomeFlags {
  readonly namespace: string;
}

interface OutputFlags extends PeerFlags {
  readonly output: string;
}

interface AddFlags extends PeerFlags {
  readonly tokenFile?: string;
  readonly token?: string;
  readonly address?: string;
  readonly domain?: string;
  readonly bundle?: string;
  readonly identity: string[];
  readonly allow: string[];
}

interface DiffFlags extends PeerFlags {
  readonly all?: boolean;
  readonly cert?: string;
  readonly key?: string;
}

interface TokenFlags extends PeerFlags {
  readonly allow: string[];
  readonly validFor: string;
}

export function addPeerCommands(program: Command, deps: PeerDeps): void {
  const peer = program.command('peer').description(verbs.peer);
  const verb = (name: string, description: string) =>
    addHomeOptions(peer.command(name).description(description)).option(
      '--namespace <name>',
      'namespace of Peers',
      'portolan-system',
    );
  const run = async (flags: PeerFlags, work: (home: PeerHome) => Promise<readonly string[]>) => {
    const lines = await withHome(deps, flags, ({ client }) => work({ client, namespace: flags.namespace }));
    for (const line of lines) deps.print(line);
  };
  const nowMs = () => deps.world.clock.wallMs();
  const tell = ({ lines, isSilent }: PeerReport) => {
    if (isSilent) deps.setExitCode(exitCodes.notReady);
    return lines;
  };

  verb('token <name>', 'a one-use introduction for the mesh that will be peer <name> here')
    .option('--allow <domain...>', 'domains that names of its services may have; * is any', [])
    .option('--valid-for <minutes>', 'validity of the token', '60')
    .action((name: string, flags: TokenFlags) =>
      run(flags, async (home) => [await makeToken(home, tokenRequest(deps, name, flags))]),
    );
  verb('add <name>', 'add another mesh as <name>, by its token or by address and roots')
    .option('--token <token>', 'the token that portolan peer token printed on the other side; - reads standard input')
    .option('--token-file <file>', 'read that token from this file; - is standard input')
    .option('--address <host:port>', 'address of its peering server; without it services are only shared, not imported')
    .option('--domain <trust-domain>', 'its trust domain')
    .option('--bundle <file>', 'its root certificates in PEM')
    .option('--identity <spiffe-id...>', 'allowed identities of its certificate', [])
    .option('--allow <domain...>', 'domains that names of its services may have; * is any', [])
    .addHelpText('after', examples)
    .action(async (name: string, flags: AddFlags) => {
      const token = await readToken(deps.host, { argument: flags.token, file: flags.tokenFile });
      await run(flags, (home) => add(home, name, { ...flags, token }));
    });
  verb('export <namespace/name>', 'share a Service of this cluster with peers')
    .option('--to <peer...>', 'the peers', [])
    .action((text: string, flags: PeerFlags & { readonly to: string[] }) =>
      run(flags, (home) => exportToPeers(home, { service: parseServiceRef(text, 'default'), peers: flags.to })),
    );
  verb('list', 'list all peers and their state').action((flags: PeerFlags) =>
    run(flags, async (home) => tell(await listPeers(home, nowMs()))),
  );
  verb('status <name>', 'show one peer: both directions, lag, refusals').action((name: string, flags: PeerFlags) =>
    run(flags, async (home) => tell(await showPeer(home, name, nowMs()))),
  );
  verb('services [name]', 'list the services of one peer or of all, with names, ingress and identity')
    .option(...outputOption)
    .action((name: string | undefined, flags: OutputFlags) =>
      run(flags, (home) => listServices(home, name, parseOutput(flags.output))),
    );
  verb('routes [name]', 'print the routes for the ingress: SNI, backends and allowed clients')
    .option(...outputOption)
    .action((name: string | undefined, flags: OutputFlags) =>
      run(flags, (home) => listRoutes(home, name, parseOutput(flags.output))),
    );
  verb('diff <name>', 'compare its catalog with the stored services; exit code 7 if they differ')
    .option('--all', 'also show equal services')
    .option('--cert <file>', 'own certificate in PEM, if portolan peering runs with --cert')
    .option('--key <file>', 'its key in PEM')
    .action((name: string, flags: DiffFlags) =>
      run(flags, async (home) => {
        const { lines, isEqual } = await diffPeer(home, name, { isAll: flags.all === true, ...filesIn(flags) });
        if (!isEqual) deps.setExitCode(exitCodes.notReady);
        return lines;
      }),
    );
  verb('bundle', 'print the own root certificates in PEM, for peers other than Portolan').action((flags: PeerFlags) =>
    run(flags, async (home) => [(await ownCard(home)).bundle.trimEnd()]),
  );
  verb('retry <name>', 'try again after a refusal').action((name: string, flags: PeerFlags) =>
    run(flags, ({ client, namespace }) => retryPeer(client, namespace, name, new Date(nowMs()).toISOString())),
  );
  verb('remove <name>', 'remove a peer and its services').action((name: string, flags: PeerFlags) =>
    run(flags, (home) => removePeer(home, name)),
  );
}

function tokenRequest(deps: PeerDeps, peer: string, flags: TokenFlags) {
  const minutes = Number(flags.validFor);
  if (!(minutes > 0)) throw usageError(`--valid-for ${flags.validFor}: expected a number of minutes above 0`);
  const secret = Buffer.from(deps.world.random.bytes(32)).toString('base64url');
  return { peer, allowedDomains: flags.allow, expiresMs: deps.world.clock.wallMs() + minutes * 60_000, secret };
}

function filesIn({ cert, key }: DiffFlags) {
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined || key === undefined) throw usageError('--cert and --key go together');
  return { files: { certificate: cert, key } };
}

function add(home: PeerHome, name: string, flags: AddFlags): Promise<readonly string[]> {
  const { token, address, domain, bundle, identity: identities, allow: allowedDomains } = flags;
  if (token !== undefined) return addByToken(home, token, { name, allowedDomains });
  if (domain === undefined || bundle === undefined)
    throw usageError(`peer add ${name}: give --token, or --domain and --bundle`);
  return addByHand(home, { name, address, domain, bundleFile: bundle, identities, allowedDomains });
}

const examples = `
Two meshes, in two commands:
  east$ portolan peer token west --allow west.example
  west$ portolan peer add east --allow east.example --token portolan-peer-…`;
