// The command line: picks a role or a verb and hands over. What a role is made of is in `main/`, what a person types in
// `cli/`; both are loaded only when asked for, so that `portolan --help` is quick.

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { createRealHost } from './base/real/host.ts';
import { createRealWorld } from './base/real/world.ts';
import { version } from './base/version.ts';
import { addClusterSetCommands } from './cli/clusterset/index.ts';
import { addCompletionCommand } from './cli/completion.ts';
import { addTestCommand } from './cli/connectivity.ts';
import { addDigCommand } from './cli/dig.ts';
import { takeFlagsFromEnvironment } from './cli/environment.ts';
import { describeError, exitCodes, exitKindOf } from './cli/exit-codes.ts';
import { addInstallCommand } from './cli/installation/install.ts';
import { addUninstallCommand } from './cli/installation/uninstall.ts';
import { addPeerCommands } from './cli/peer/index.ts';
import { addRegisterCommands } from './cli/register/register.ts';
import { addAgentCommand } from './cli/roles/agent.ts';
import { addApiCommand } from './cli/roles/api.ts';
import { addDemoCommand } from './cli/roles/demo.ts';
import { addDnsCommand } from './cli/roles/dns.ts';
import { addPeeringCommand } from './cli/roles/peering.ts';
import { addProxyCommand } from './cli/roles/proxy.ts';
import { addUpCommand } from './cli/roles/up.ts';
import { addXdsCommand } from './cli/roles/xds.ts';
import { addVersionCommand } from './cli/version.ts';
import { addBootstrapCommand } from './cli/xds/bootstrap.ts';
import { addXdsStatusCommand } from './cli/xds/status.ts';

// Beside what was compiled, and nowhere if that is not ours to write: a demo leaves nothing outside its folder.
enableCompileCache(join(import.meta.dirname, '.compile-cache'));

const program = new Command('portolan')
  .description(
    'A control plane for federated service discovery: every service gets a name, an address and a secure way to it.',
  )
  .version(version)
  .enablePositionalOptions()
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'portolan: ')) })
  .showHelpAfterError('(portolan help shows what there is)');

// Whoever reads our output may have read enough: `portolan status | head`. What we do goes on; only nobody listens.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const hands = {
  world: createRealWorld(),
  host: createRealHost(),
  print: (text: string) => process.stdout.write(`${text}\n`),
  setExitCode: (code: number) => {
    process.exitCode = code;
  },
};

// What a role consists of is loaded when it is started.
addDemoCommand(program, hands, {
  run: async (flags, deps) => (await import('./main/demo/process.ts')).runDemo(flags, deps),
  order: async (...order) => (await import('./main/demo/process.ts')).orderDemo(...order),
});
addUpCommand(program, async (flags) => (await import('./main/home-process.ts')).runUp(flags));
addApiCommand(program, {
  run: async (flags) => (await import('./main/home-process.ts')).runApi(flags),
  rotate: async (...rotation) => (await import('./main/home-process.ts')).rotateCa(...rotation),
});
addAgentCommand(program, async (flags) => (await import('./main/agent-process.ts')).runAgent(flags));
addDnsCommand(program, async (flags) => (await import('./main/dns-process.ts')).runDns(flags));
addDigCommand(program, hands);
addPeeringCommand(program, async (flags) => (await import('./main/peering-process.ts')).runPeering(flags));
addPeerCommands(program, hands);
const xds = addXdsCommand(program, async (flags) => (await import('./main/xds-process.ts')).runXds(flags));
addXdsStatusCommand(xds, hands);
addBootstrapCommand(xds, hands);
addProxyCommand(program, async (flags) => (await import('./main/proxy-process.ts')).runProxy(flags));
addTestCommand(program, hands);
addRegisterCommands(program, hands);
addClusterSetCommands(program, hands);
addInstallCommand(program, hands);
addUninstallCommand(program, hands);
addVersionCommand(program, hands);
addCompletionCommand(program, hands);

for (const command of program.commands) {
  command.showHelpAfterError(`(portolan ${command.name()} --help shows what it takes)`);
}

takeFlagsFromEnvironment(program);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has said what is wrong with the command line, or printed the help that was asked for.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
  else {
    process.stderr.write(`portolan: ${describeError(error)}\n`);
    process.exitCode = exitCodes[exitKindOf(error)];
  }
}
