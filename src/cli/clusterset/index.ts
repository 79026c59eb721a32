// The verbs about clustersets, for the parts list.

import type { Command } from 'commander';
import { addBrokerCommands } from './broker.ts';
import type { ClusterSetDeps } from './deps.ts';
import { addExplainCommand } from './explain.ts';
import { addExportCommand } from './export.ts';
import { addJoinCommand } from './join.ts';
import { addLeaveCommand } from './leave.ts';
import { addPlanCommand } from './plan.ts';
import { addStatusCommand } from './status.ts';
import { addUnexportCommand } from './unexport.ts';

export function addClusterSetCommands(program: Command, deps: ClusterSetDeps): void {
  addBrokerCommands(program, deps);
  addJoinCommand(program, deps);
  addLeaveCommand(program, deps);
  addExportCommand(program, deps);
  addUnexportCommand(program, deps);
  addStatusCommand(program, deps);
  addExplainCommand(program, deps);
  addPlanCommand(program, deps);
}
