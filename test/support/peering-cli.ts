// The peering role and the peer verbs as a program of their own, for tests that start and kill them.

import { Command } from 'commander';
import { errorText } from '../../src/base/log.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { exitCodes, exitKindOf } from '../../src/cli/exit-codes.ts';
import { addPeerCommands } from '../../src/cli/peer/index.ts';
import { addPeeringCommand } from '../../src/cli/roles/peering.ts';
import { runPeering } from '../../src/main/peering/process.ts';

const program = new Command('portolan');
addPeeringCommand(program, runPeering);
addPeerCommands(program, {
  world: createRealWorld(),
  host: createRealHost(),
  print: (text) => process.stdout.write(`${text}\n`),
  setExitCode: (code) => {
    process.exitCode = code;
  },
});

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`portolan: ${errorText(error)}\n`);
  process.exitCode = exitCodes[exitKindOf(error)];
}
