// What a person types, in a simulated clusterset: the commands of the CLI at one cluster's home, which knows the broker by
// its membership as after a join.

import { createRealHost } from '../src/base/real/host.ts';
import type { ClusterSetDeps } from '../src/cli/clusterset-deps.ts';
import { membershipRef } from '../src/cli/membership.ts';
import type { Client } from '../src/client/client.ts';
import { membershipSecret, systemNamespace } from '../src/model/membership.ts';
import { namespaceType } from '../src/model/namespace.ts';
import { secretType } from '../src/model/secret.ts';
import { memberNamespace, type SimClusterSet, setName } from './clusterset.ts';

export interface CommandDesk {
  readonly deps: ClusterSetDeps;
  readonly home: Client;
  /** What was printed, and the code a pipeline would see. */
  readonly printed: string[];
  exitCode: number;
}

/** The desk of whoever runs commands in this cluster, with the rights of its agent at the broker. */
export async function openDesk(set: SimClusterSet, id: string): Promise<CommandDesk> {
  const home = set.home(id).admin;
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
  const desk: CommandDesk = {
    home,
    printed: [],
    exitCode: 0,
    deps: {
      world: set.simulation.world(`agent-${id}`),
      host: createRealHost(),
      print: (line) => void desk.printed.push(line),
      setExitCode: (code) => {
        desk.exitCode = code;
      },
    },
  };
  return desk;
}
