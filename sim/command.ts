// Runs CLI commands in a simulated clusterset, at one cluster's home, which knows the broker by its membership as
// after a join.

import { Command } from 'commander';
import { stringify } from 'yaml';
import type { Host } from '../src/base/host.ts';
import { checkStep } from '../src/cli/clusterset/before-step.ts';
import { addClusterSetCommands } from '../src/cli/clusterset/index.ts';
import { addDoctorCommand } from '../src/cli/health/command.ts';
import { addTraceCommand } from '../src/cli/trace/command.ts';
import type { ClusterSetDeps } from '../src/cli/with-home.ts';
import { membershipRef } from '../src/clusterset/explain/consult.ts';
import { membershipSecret } from '../src/clusterset/membership/membership.ts';
import type { Client } from '../src/kube/client/client.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { memberNamespace, type SimClusterSet, setName } from './clusterset.ts';

export interface CommandDesk {
  readonly deps: ClusterSetDeps;
  readonly home: Client;
  /** Files for `-f`, by name. */
  readonly files: Map<string, string>;
  /** Output of the last command, and its exit code. */
  printed: string[];
  exitCode: number;
}

/** A desk for running commands in this cluster, with the rights of its agent at the broker. */
export async function openDesk(set: SimClusterSet, id: string): Promise<CommandDesk> {
  const home = set.home(id).admin;
  await keepMembership(set, id, home);
  const files = new Map([['home.kubeconfig', kubeconfigOf(set.home(id).url)]]);
  const host: Host = {
    environment: { KUBECONFIG: 'home.kubeconfig' },
    readText: async (path) => files.get(path),
    run: async ({ program }) => {
      throw new Error(`${program}: there are no programs in a simulation`);
    },
  };
  const desk: CommandDesk = {
    home,
    files,
    printed: [],
    exitCode: 0,
    deps: {
      world: set.simulation.world(`agent-${id}`),
      host,
      print: (line) => void desk.printed.push(line),
      setExitCode: (code) => {
        desk.exitCode = code;
      },
    },
  };
  return desk;
}

/** Resolves to what was printed. Words are separated by single spaces. */
export async function typeAt(desk: CommandDesk, words: string): Promise<string[]> {
  desk.printed = [];
  desk.exitCode = 0;
  const program = new Command().exitOverride();
  addClusterSetCommands(program, desk.deps);
  addDoctorCommand(program, desk.deps, checkStep);
  addTraceCommand(program, desk.deps);
  await program.parseAsync(words.split(' '), { from: 'user' });
  return desk.printed;
}

/** Writes the membership that joining leaves in a home. */
export async function keepMembership(set: SimClusterSet, id: string, home: Client): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } };
  await home.create(namespaceType, namespace).catch(() => {});
  const { object } = membershipSecret({
    clusterset: setName,
    clusterId: id,
    namespace: memberNamespace(id),
    accountNamespace: `${setName}-members`,
    accountName: id,
    server: set.broker.url,
    certificateAuthority: '',
    token: `agent-${id}`,
    tokenIssuedAt: '',
    tokenExpiresAt: '',
  });
  await home.delete(secretType, membershipRef).catch(() => {});
  await home.create(secretType, object);
}

/** Kubeconfig of an admin at this home. */
export function kubeconfigOf(url: string): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'home', cluster: { server: url } }],
    users: [{ name: 'admin', user: { token: 'admin' } }],
    contexts: [{ name: 'home', context: { cluster: 'home', user: 'admin' } }],
    'current-context': 'home',
  });
}
