// The verbs about clustersets, for the parts list.

import type { Command } from 'commander';
import { addBrokerCommands } from './broker.ts';
import type { ClusterSetDeps } from './clusterset-deps.ts';
import { addJoinCommand } from './join.ts';
import { addLeaveCommand } from './leave.ts';

export function addClusterSetCommands(program: Command, deps: ClusterSetDeps): void {
  addBrokerCommands(program, deps);
  addJoinCommand(program, deps);
  addLeaveCommand(program, deps);
}
