// The command line. Loads the command that is used and no other, so that `portolan --help` starts fast. Commands and their
// flags are in `cli/`, the processes of roles in `main/`.

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { printable } from './base/text/printable.ts';
import { version } from './base/version.ts';
import { takeFlagsFromEnvironment } from './cli/environment.ts';
import { describeError, exitCodes, exitKindOf } from './cli/exit-codes.ts';
import { type Verb, verbs } from './cli/verbs.ts';
import type { ClusterSetDeps } from './cli/with-home.ts';

// Beside the compiled code. If that folder is read-only there is no cache: a demo writes nothing outside its own folder.
enableCompileCache(join(import.meta.dirname, '.compile-cache'));

const program = new Command('portolan')
  .description(
    'A control plane for federated service discovery: every service gets a name, an address and a secure way to it.',
  )
  .version(version)
  .enablePositionalOptions()
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'portolan: ')) })
  .showHelpAfterError('(portolan help lists the commands)')
  .configureHelp({ subcommandTerm: (command) => command.name() });

// Ignore EPIPE: `portolan status | head`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

interface Loader {
  readonly adds: readonly Verb[];
  readonly load: (deps: ClusterSetDeps) => Promise<unknown>;
}

/** In the order of the help. */
const loaders: readonly Loader[] = [
  {
    adds: ['demo'],
    load: async (deps) =>
      (await import('./cli/roles/demo.ts')).addDemoCommand(program, deps, {
        run: async (flags, demo) => (await import('./main/demo/process.ts')).runDemo(flags, demo),
        order: async (...order) => (await import('./main/demo/process.ts')).orderDemo(...order),
      }),
  },
  {
    adds: ['up'],
    load: async () =>
      (await import('./cli/roles/up.ts')).addUpCommand(program, async (flags) =>
        (await import('./main/up/process.ts')).runUp(flags),
      ),
  },
  {
    adds: ['api'],
    load: async () =>
      (await import('./cli/roles/api.ts')).addApiCommand(program, {
        run: async (flags) => (await import('./main/home/process.ts')).runApi(flags),
        migrate: async (...migration) => (await import('./main/home/migrate.ts')).migrateHome(...migration),
        rotate: async (...rotation) => (await import('./main/rotation/rotate-ca.ts')).rotateCa(...rotation),
      }),
  },
  {
    adds: ['agent'],
    load: async () =>
      (await import('./cli/roles/agent.ts')).addAgentCommand(program, async (flags) =>
        (await import('./main/agent/process.ts')).runAgent(flags),
      ),
  },
  {
    adds: ['dns'],
    load: async () =>
      (await import('./cli/roles/dns.ts')).addDnsCommand(program, async (flags) =>
        (await import('./main/dns/process.ts')).runDns(flags),
      ),
  },
  {
    adds: ['authority'],
    load: async () =>
      (await import('./cli/roles/authority.ts')).addAuthorityCommand(program, async (flags) =>
        (await import('./main/authority/process.ts')).runAuthority(flags),
      ),
  },
  {
    adds: ['dig'],
    load: async (deps) => (await import('./cli/dig.ts')).addDigCommand(program, deps),
  },
  {
    adds: ['peering'],
    load: async () =>
      (await import('./cli/roles/peering.ts')).addPeeringCommand(program, async (flags) =>
        (await import('./main/peering/process.ts')).runPeering(flags),
      ),
  },
  {
    adds: ['peer'],
    load: async (deps) => (await import('./cli/peer/index.ts')).addPeerCommands(program, deps),
  },
  {
    adds: ['xds'],
    load: async (deps) => {
      const xds = (await import('./cli/roles/xds.ts')).addXdsCommand(program, async (flags) =>
        (await import('./main/xds/process.ts')).runXds(flags),
      );
      (await import('./cli/xds/status.ts')).addXdsStatusCommand(xds, deps);
      (await import('./cli/xds/bootstrap.ts')).addBootstrapCommand(xds, deps);
      (await import('./cli/xds/renew.ts')).addRenewCommand(xds, deps);
      (await import('./cli/xds/drain.ts')).addDrainGatewayCommand(xds, deps);
    },
  },
  {
    adds: ['proxy'],
    load: async () =>
      (await import('./cli/roles/proxy.ts')).addProxyCommand(program, async (flags) =>
        (await import('./main/proxy/process.ts')).runProxy(flags),
      ),
  },
  {
    adds: ['test'],
    load: async (deps) => (await import('./cli/connectivity.ts')).addTestCommand(program, deps),
  },
  {
    adds: ['register', 'deregister'],
    load: async (deps) => (await import('./cli/register/register.ts')).addRegisterCommands(program, deps),
  },
  {
    adds: ['broker', 'join', 'leave', 'export', 'unexport', 'sealing', 'drain', 'shift', 'status', 'explain', 'plan'],
    load: async (deps) => (await import('./cli/clusterset/index.ts')).addClusterSetCommands(program, deps),
  },
  {
    adds: ['observe'],
    load: async (deps) => (await import('./cli/traffic/observe.ts')).addObserveCommand(program, deps),
  },
  {
    adds: ['top'],
    load: async (deps) => (await import('./cli/traffic/top.ts')).addTopCommand(program, deps),
  },
  {
    adds: ['federation'],
    load: async (deps) => (await import('./cli/federation.ts')).addFederationCommand(program, deps),
  },
  {
    adds: ['doctor'],
    load: async (deps) =>
      (await import('./cli/health/command.ts')).addDoctorCommand(program, deps, async (...step) =>
        (await import('./cli/clusterset/before-step.ts')).checkStep(...step),
      ),
  },
  {
    adds: ['dashboard'],
    load: async (deps) =>
      (await import('./cli/roles/dashboard.ts')).addDashboardCommand(program, deps.print, {
        run: async (flags) => (await import('./main/dashboard/process.ts')).runDashboardProcess(flags, deps),
        token: async (flags) => (await import('./main/dashboard/process.ts')).issueTokens(flags, deps),
      }),
  },
  {
    adds: ['trace'],
    load: async (deps) => (await import('./cli/trace/command.ts')).addTraceCommand(program, deps),
  },
  {
    adds: ['bug-report'],
    load: async (deps) => (await import('./cli/bug-report/command.ts')).addBugReportCommand(program, deps),
  },
  {
    adds: ['snapshot'],
    load: async (deps) =>
      (await import('./cli/snapshot/command.ts')).addSnapshotCommand(program, {
        save: async (...save) => (await import('./main/snapshot/commands.ts')).saveSnapshot(deps, ...save),
        list: async (...list) => (await import('./main/snapshot/commands.ts')).listSnapshots(deps, ...list),
        inspect: async (...inspect) => (await import('./main/snapshot/commands.ts')).inspectSnapshot(deps, ...inspect),
        restore: async (...restore) =>
          (await import('./main/snapshot/restore.ts')).restoreFromSnapshot(deps, ...restore),
      }),
  },
  {
    adds: ['install', 'upgrade'],
    load: async (deps) => (await import('./cli/installation/install.ts')).addInstallCommand(program, deps),
  },
  {
    adds: ['uninstall'],
    load: async (deps) => (await import('./cli/installation/uninstall.ts')).addUninstallCommand(program, deps),
  },
  {
    adds: ['coredns'],
    load: async (deps) => (await import('./cli/installation/coredns.ts')).addCorednsCommand(program, deps),
  },
  {
    adds: ['version'],
    load: async (deps) => (await import('./cli/version.ts')).addVersionCommand(program, deps),
  },
  {
    adds: ['completion'],
    load: async (deps) => (await import('./cli/completion.ts')).addCompletionCommand(program, deps),
  },
];

const [first, second] = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const wanted = first === 'help' ? second : first;
let deps: ClusterSetDeps | undefined;
for (const { adds, load } of loaders) {
  // A completion script lists the options of every command.
  if (wanted === 'completion' || adds.some((verb) => verb === wanted)) await load((deps ??= await createDeps()));
  else for (const verb of adds) program.command(verb).description(verbs[verb]);
}

async function createDeps(): Promise<ClusterSetDeps> {
  const [{ createRealWorld }, { createRealHost }] = await Promise.all([
    import('./base/real/world.ts'),
    import('./base/real/host.ts'),
  ]);
  return {
    world: createRealWorld(),
    host: createRealHost(),
    print: (text) => process.stdout.write(`${printable(text)}\n`),
    warn: (text) => process.stderr.write(`${printable(text)}\n`),
    progress: (text) => {
      if (process.stderr.isTTY) process.stderr.write(`${printable(text)}\n`);
    },
    clearScreen: () => {
      if (process.stdout.isTTY) process.stdout.write('\x1b[2J\x1b[H');
    },
    setExitCode: (code) => {
      process.exitCode = code;
    },
    untilTold: () =>
      new Promise((resolve) => {
        for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
      }),
  };
}

pointToHelp(program, 'portolan');

/** An error names the help of the command that it is about. */
function pointToHelp(parent: Command, path: string): void {
  for (const command of parent.commands) {
    const own = `${path} ${command.name()}`;
    command.showHelpAfterError(`(${own} --help lists its options)`);
    pointToHelp(command, own);
  }
}

takeFlagsFromEnvironment(program);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has printed the error, or the requested help.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
  else {
    process.stderr.write(`portolan: ${printable(describeError(error))}\n`);
    process.exitCode = exitCodes[exitKindOf(error)];
  }
}
