// A simulated Kubernetes that runs no Pods, and commands that a person runs at it.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Host } from '../src/base/host.ts';
import { silentLog } from '../src/base/log.ts';
import { generatePrivateKey } from '../src/base/x509/edge/keys.ts';
import { describeError, exitCodes, exitKindOf } from '../src/cli/exit-codes.ts';
import type { ClusterSetDeps } from '../src/cli/with-home.ts';
import { createApi } from '../src/home/api.ts';
import { customResourceDefinitionKind } from '../src/home/kinds/custom-resource-definition.ts';
import { builtinKinds, securityKinds } from '../src/home/kinds/index.ts';
import { createMemoryStore } from '../src/home/open-store.ts';
import { ensureBootstrap } from '../src/home/security/bootstrap.ts';
import { createAccess } from '../src/home/security/create-access.ts';
import { createClient } from '../src/kube/client/client.ts';
import { kindRules } from '../src/main/home/kind-rules.ts';
import { kubeconfigOf } from './command.ts';
import { Simulation } from './virtual-world.ts';

const url = 'https://kubernetes';
const kubernetes = Buffer.from(JSON.stringify({ major: '1', minor: '33', gitVersion: 'v1.33.0' }));
const clientCertificate = { commonName: 'admin', organizations: ['system:masters'] };

/** `add` gives the program its commands. */
export async function startSimulatedKubernetes(add: (program: Command, deps: ClusterSetDeps) => void) {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('home');
  const store = createMemoryStore({ world });
  const access = await createAccess({ world, store, log: silentLog, serviceAccountKey: generatePrivateKey() });
  const extra = [...securityKinds(access), customResourceDefinitionKind];
  const kinds = builtinKinds({ serviceRanges: ['10.96.0.0/16'], random: world.random, extra });
  const api = await createApi({ world, store, kinds, access, log: silentLog, kindRules });
  await api.start();
  await ensureBootstrap({ handle: api.handle });
  simulation.network.listen(url, async (request) =>
    request.path === '/version'
      ? { status: 200, headers: { 'content-type': 'application/json' }, body: kubernetes }
      : api.handle({ ...request, clientCertificate }),
  );
  const person = simulation.world('person');
  const client = createClient(person.network.http({ server: url }), { world: person, userAgent: 'test' });
  const run = async (words: string) => {
    const lines: string[] = [];
    const program = new Command();
    const host: Host = {
      environment: { KUBECONFIG: '/kubeconfig' },
      readText: async (path) => (path === '/kubeconfig' ? kubeconfigOf(url) : readFileSync(path, 'utf8')),
      run: async () => ({ kind: 'not started', reason: 'no programs here', isMissing: true }),
    };
    const deps = { world: person, host, print: (line: string) => void lines.push(line), setExitCode: () => {} };
    add(program, deps);
    try {
      await simulation.time.settle(program.parseAsync(words.split(' '), { from: 'user' }));
      return { exitCode: 0, lines };
    } catch (error) {
      return { exitCode: exitCodes[exitKindOf(error)], lines: [...lines, describeError(error)] };
    }
  };
  return { run, client, settle: <T>(work: Promise<T>) => simulation.time.settle(work) };
}
