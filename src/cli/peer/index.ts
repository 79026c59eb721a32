// `portolan peer …`: the verbs for other meshes. Each reads and writes facts in this mesh's home; the peering process
// does the rest.

import type { Command } from 'commander';
import { parseHostPort } from '../../base/net/host-port.ts';
import { exitCodes, usageError } from '../exit-codes.ts';
import { readToken } from '../given-token.ts';
import { isLoopbackHost } from '../reachable.ts';
import { formatOutput, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, type Look, type WaitFlags, waitIfAsked } from '../wait.ts';
import { addHomeOptions, type CliDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { addByHand, addByToken, makeToken, ownCard, type PeerHome, removePeer } from './add.ts';
import { exportToPeers } from './export.ts';
import { lookGone, lookIntroduced, lookSynced, lookTaken } from './look.ts';
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

interface ExportFlags extends PeerFlags, WaitFlags {
  readonly to: string[];
}

interface AddFlags extends PeerFlags, WaitFlags {
  readonly tokenFile?: string;
  readonly token?: string;
  readonly address?: string;
  readonly domain?: string;
  readonly bundle?: string;
  readonly identity: string[];
  readonly allow: string[];
}

interface DiffFlags extends OutputFlags {
  readonly all?: boolean;
  readonly cert?: string;
  readonly key?: string;
}

interface TokenFlags extends PeerFlags, WaitFlags {
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

  const waiting = (flags: WaitFlags & PeerFlags, what: string, look: (home: PeerHome) => Promise<Look>) =>
    withHome(deps, flags, ({ client }) =>
      waitIfAsked(deps, flags, { what, look: () => look({ client, namespace: flags.namespace }) }),
    );

  addWaitOptions(
    verb('token <name>', 'a one-use introduction for the mesh that will be peer <name> here')
      .option('--allow <domain...>', 'domains that names of its services may have; * is any', [])
      .option('--valid-for <minutes>', 'validity of the token', '60'),
    'the other side has used it',
    3600,
  ).action(async (name: string, flags: TokenFlags) => {
    const [token, address] = await withHome(deps, flags, async ({ client }) => {
      const home = { client, namespace: flags.namespace };
      return [await makeToken(home, tokenRequest(deps, name, flags)), (await ownCard(home)).address] as const;
    });
    // On standard error: the output is the token alone, for scripts.
    if (isLoopbackHost(parseHostPort(address, 0)?.host ?? ''))
      deps.warn?.(
        `warning: other machines cannot reach ${address}; start portolan peering with --advertise HOST:PORT, or portolan up with --advertise HOST`,
      );
    deps.print(token);
    await waiting(flags, `peer token ${name}`, (home) => lookIntroduced(home, name));
  });
  const addVerb = verb('add <name>', 'add another mesh as <name>, by its token or by address and roots')
    .option('--token <token>', 'the token that portolan peer token printed on the other side; - reads standard input')
    .option('--token-file <file>', 'read that token from this file; - is standard input')
    .option('--address <host:port>', 'address of its peering server; without it services are only shared, not imported')
    .option('--domain <trust-domain>', 'its trust domain')
    .option('--bundle <file>', 'its root certificates in PEM')
    .option('--identity <spiffe-id...>', 'allowed identities of its certificate', [])
    .option('--allow <domain...>', 'domains that names of its services may have; * is any', [])
    .addHelpText('after', examples);
  addWaitOptions(addVerb, 'its services are stored').action(async (name: string, flags: AddFlags) => {
    const token = await readToken(deps.host, { argument: flags.token, file: flags.tokenFile });
    await run(flags, (home) => add(home, name, { ...flags, token }));
    await waiting(flags, `peer add ${name}`, (home) => lookSynced(home, name));
  });
  addWaitOptions(
    verb('export <namespace/name>', 'share a Service of this cluster with peers').option(
      '--to <peer...>',
      'the peers',
      [],
    ),
    'all these peers have taken it',
  ).action(async (text: string, flags: ExportFlags) => {
    const service = parseServiceRef(text, 'default');
    await run(flags, (home) => exportToPeers(home, { service, peers: flags.to }));
    await waiting(flags, `peer export ${text}`, (home) => lookTaken(home, service));
  });
  verb('list', 'list all peers and their state')
    .option(...outputOption)
    .action((flags: OutputFlags) =>
      run(flags, async (home) => tell(await listPeers(home, nowMs(), parseOutput(flags.output)))),
    );
  verb('status <name>', 'show one peer: both directions, lag, refusals')
    .option(...outputOption)
    .action((name: string, flags: OutputFlags) =>
      run(flags, async (home) =>
        tell(await showPeer(home, name, { nowMs: nowMs(), format: parseOutput(flags.output) })),
      ),
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
    .option(...outputOption)
    .action((name: string, flags: DiffFlags) =>
      run(flags, async (home) => {
        const format = parseOutput(flags.output);
        const { lines, isEqual } = await diffPeer(home, name, { isAll: flags.all === true, ...filesIn(flags) });
        if (!isEqual) deps.setExitCode(exitCodes.notReady);
        return formatOutput(format, { value: { isEqual, lines }, names: [name], text: () => lines });
      }),
    );
  verb('bundle', 'print the own root certificates in PEM, for peers other than Portolan').action((flags: PeerFlags) =>
    run(flags, async (home) => [(await ownCard(home)).bundle.trimEnd()]),
  );
  addWaitOptions(verb('retry <name>', 'try again after a refusal'), 'its services are stored').action(
    async (name: string, flags: PeerFlags & WaitFlags) => {
      await run(flags, ({ client, namespace }) => retryPeer(client, namespace, name, new Date(nowMs()).toISOString()));
      await waiting(flags, `peer retry ${name}`, (home) => lookSynced(home, name));
    },
  );
  addWaitOptions(verb('remove <name>', 'remove a peer and its services'), 'its services are gone').action(
    async (name: string, flags: PeerFlags & WaitFlags) => {
      await run(flags, (home) => removePeer(home, name));
      await waiting(flags, `peer remove ${name}`, (home) => lookGone(home, name));
    },
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
