// `portolan broker`: what the admin of a clusterset types.

import type { Command } from 'commander';
import { addBrokerAcceptCommand } from './broker-accept.ts';
import { addBrokerInitCommand } from './broker-init.ts';
import { addBrokerRemoveCommand } from './broker-remove.ts';
import { addBrokerTokenCommand } from './broker-token.ts';
import type { ClusterSetDeps } from './deps.ts';

export function addBrokerCommands(program: Command, deps: ClusterSetDeps): void {
  const broker = program.command('broker').description('lay out a clusterset and say who is a member');
  addBrokerInitCommand(broker, deps);
  addBrokerTokenCommand(broker, deps);
  addBrokerAcceptCommand(broker, deps);
  addBrokerRemoveCommand(broker, deps);
}
