// For tests: the commands of a person at one member of a simulated clusterset, whose homes can be slow or hang.

import { Command } from 'commander';
import { memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../../../sim/clusterset.ts';
import type { Host } from '../../base/host.ts';
import type { HttpRequest } from '../../base/http.ts';
import { sleep } from '../../base/world.ts';
import { membershipSecret } from '../../clusterset/membership/membership.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { describeError, exitCodes, exitKindOf } from '../exit-codes.ts';
import type { ClusterSetDeps } from '../with-home.ts';

type AddCommand = (program: Command, deps: ClusterSetDeps) => void;

interface Run {
  readonly out: string;
  readonly exitCode: number;
  /** By the clock of the one who waits. */
  readonly tookMs: number;
}

interface MemberOptions extends Pick<SimClusterSetOptions, 'clusters' | 'set'> {
  readonly agents?: readonly string[];
  /** How long a home or the broker takes over a request of the command; Infinity if it never answers. */
  readonly delayMs?: (request: HttpRequest, home: string) => number;
}

/** The command runs at the first of the clusters. */
export async function simulatedMember(options: MemberOptions) {
  const user = 'person';
  const set: SimClusterSet = new SimClusterSet({
    ...options,
    wrap: (home, handler) => async (request) => {
      const isCommand = request.headers['user-agent'] === 'portolan-cli';
      const delayMs = isCommand ? (options.delayMs?.(request, home) ?? 0) : 0;
      if (delayMs > 0) await sleep(world.timers, delayMs);
      return handler(request);
    },
  });
  const world = set.simulation.world(user);
  const [id = ''] = options.clusters;
  const { time } = set;
  await time.settle(set.start({ namespaces: ['shop'], agents: options.agents ?? options.clusters }));
  const home = set.home(id);
  const metadata = { name: systemNamespace };
  await home.admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata }).catch(() => {});
  await home.admin.create(secretType, secretOf(set, id).object);
  await time.advance(3_000);

  async function run(add: AddCommand, words: string): Promise<Run> {
    const lines: string[] = [];
    let exitCode = 0;
    const deps: ClusterSetDeps = {
      ...{ world, host: hostOf(home.url, user), print: (line) => void lines.push(line) },
      setExitCode: (code) => {
        exitCode = code;
      },
    };
    const program = new Command();
    add(program, deps);
    const startMs = world.clock.monotonicMs();
    try {
      await time.settle(program.parseAsync(words.split(' '), { from: 'user' }));
    } catch (error) {
      lines.push(describeError(error));
      exitCode = exitCodes[exitKindOf(error)];
    }
    return { out: lines.join('\n'), exitCode, tookMs: world.clock.monotonicMs() - startMs };
  }
  return { set, home, time, world, run };
}

function secretOf({ broker, simulation }: SimClusterSet, id: string): Manifest {
  const issuedMs = simulation.world('issuer').clock.wallMs();
  return membershipSecret({
    ...{ clusterset: setName, clusterId: id, namespace: memberNamespace(id), server: broker.url },
    ...{ accountNamespace: `${setName}-members`, accountName: id, certificateAuthority: '', token: `agent-${id}` },
    tokenIssuedAt: new Date(issuedMs).toISOString(),
    tokenExpiresAt: new Date(issuedMs + 86_400_000).toISOString(),
  });
}

function hostOf(server: string, token: string): Host {
  const kubeconfig = {
    clusters: [{ name: 'home', cluster: { server } }],
    users: [{ name: 'person', user: { token } }],
    contexts: [{ name: 'home', context: { cluster: 'home', user: 'person' } }],
    'current-context': 'home',
  };
  return {
    environment: { KUBECONFIG: '/kubeconfig' },
    readText: async (path) => (path === '/kubeconfig' ? JSON.stringify(kubeconfig) : undefined),
    run: async () => ({ kind: 'not started', reason: 'no programs here', isMissing: true }),
  };
}
