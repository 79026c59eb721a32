// The verbs about clustersets, and those of `portolan broker` for the admin of one.

import type { Command } from 'commander';
import { addStatusCommand } from '../health/status.ts';
import { verbs } from '../verbs.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { addBrokerAcceptCommand } from './broker-accept.ts';
import { addBrokerInitCommand } from './broker-init.ts';
import { addBrokerRemoveCommand } from './broker-remove.ts';
import { addBrokerTokenCommand } from './broker-token.ts';
import { addDrainCommand } from './drain.ts';
import { addExplainCommand } from './explain.ts';
import { addExportCommand } from './export.ts';
import { addJoinCommand } from './join.ts';
import { addLeaveCommand } from './leave.ts';
import { addPlanCommand } from './plan.ts';
import { addSealingCommands } from './sealing.ts';
import { addShiftCommand } from './shift.ts';
import { addUnexportCommand } from './unexport.ts';

export function addClusterSetCommands(program: Command, deps: ClusterSetDeps): void {
  addBrokerCommands(program, deps);
  addJoinCommand(program, deps);
  addLeaveCommand(program, deps);
  addExportCommand(program, deps);
  addUnexportCommand(program, deps);
  addSealingCommands(program, deps);
  addDrainCommand(program, deps);
  addShiftCommand(program, deps);
  addStatusCommand(program, deps);
  addExplainCommand(program, deps);
  addPlanCommand(program, deps);
}

function addBrokerCommands(program: Command, deps: ClusterSetDeps): void {
  const broker = program.command('broker').description(verbs.broker);
  addBrokerInitCommand(broker, deps);
  addBrokerTokenCommand(broker, deps);
  addBrokerAcceptCommand(broker, deps);
  addBrokerRemoveCommand(broker, deps);
}
