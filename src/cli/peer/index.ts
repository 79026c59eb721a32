// `portolan peer …`: the verbs for other meshes. Each reads and writes facts in this mesh's home; the peering process
// does the rest.

import type { Command } from 'commander';
import { exitCodes, usageError } from '../exit-codes.ts';
import { outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, withHome } from '../with-home.ts';
import { addByHand, addByToken, makeToken, ownCard, type PeerHome, removePeer } from './add.ts';
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
      'where Peers lie',
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
    .option('--allow <domain...>', 'domains under which it may name services; * is any', [])
    .option('--valid-for <minutes>', 'how long it can be used', '60')
    .action((name: string, flags: TokenFlags) =>
      run(flags, async (home) => [await makeToken(home, tokenRequest(deps, name, flags))]),
    );
  verb('add <name>', 'know another mesh as <name>: by its token, or by hand')
    .option('--token <token>', 'from portolan peer token over there; tells it of us too')
    .option('--address <host:port>', 'where its catalog is; without it we only serve it')
    .option('--domain <trust-domain>', 'its trust domain')
    .option('--bundle <file>', 'its root certificates in PEM')
    .option('--identity <spiffe-id...>', 'identities its certificate must have one of', [])
    .option('--allow <domain...>', 'domains under which it may name services; * is any', [])
    .addHelpText('after', examples)
    .action((name: string, flags: AddFlags) => run(flags, (home) => add(home, name, flags)));
  verb('list', 'all peers and how they are').action((flags: PeerFlags) =>
    run(flags, async (home) => tell(await listPeers(home, nowMs()))),
  );
  verb('status <name>', 'one peer: both directions, lag, refusals').action((name: string, flags: PeerFlags) =>
    run(flags, async (home) => tell(await showPeer(home, name, nowMs()))),
  );
  verb('services [name]', 'what it, or every peer, shares with us, and all that it takes to use it')
    .option(...outputOption)
    .action((name: string | undefined, flags: OutputFlags) =>
      run(flags, (home) => listServices(home, name, parseOutput(flags.output))),
    );
  verb('routes [name]', 'what we share, as our ingress needs it: SNI, backends, and whose clients may come')
    .option(...outputOption)
    .action((name: string | undefined, flags: OutputFlags) =>
      run(flags, (home) => listRoutes(home, name, parseOutput(flags.output))),
    );
  verb('diff <name>', 'compare its catalog with what we hold, service by service; exit code 7 if they differ')
    .option('--all', 'show equal ones too')
    .option('--cert <file>', 'our certificate in PEM, if portolan peering was started with --cert')
    .option('--key <file>', 'its key in PEM')
    .action((name: string, flags: DiffFlags) =>
      run(flags, async (home) => {
        const { lines, isEqual } = await diffPeer(home, name, { isAll: flags.all === true, ...filesIn(flags) });
        if (!isEqual) deps.setExitCode(exitCodes.notReady);
        return lines;
      }),
    );
  verb('bundle', 'our own root certificates in PEM, for peers that are not Portolan').action((flags: PeerFlags) =>
    run(flags, async (home) => [(await ownCard(home)).bundle.trimEnd()]),
  );
  verb('retry <name>', 'try again after a refusal').action((name: string, flags: PeerFlags) =>
    run(flags, ({ client, namespace }) => retryPeer(client, namespace, name, new Date(nowMs()).toISOString())),
  );
  verb('remove <name>', 'part from it; what it shared goes at once').action((name: string, flags: PeerFlags) =>
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
