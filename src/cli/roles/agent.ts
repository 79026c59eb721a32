// `portolan agent`: a cluster's controllers, between its home and the broker.

import type { Command } from 'commander';
import type { LogLevel } from '../../base/log.ts';
import { logLevelOption, parseListen, processLog, untilStopped } from '../../main/process.ts';

interface AgentFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly brokerKubeconfig?: string;
  readonly adminListen: string;
  readonly logLevel: LogLevel;
}

export function addAgentCommand(program: Command): void {
  program
    .command('agent')
    .description("a cluster's controllers, between its home and the broker")
    .option('--kubeconfig <file>', 'the home (default: $KUBECONFIG, ~/.kube/config, or the Pod we run in)')
    .option('--context <name>', 'a context of that file other than its current one')
    .option('--broker-kubeconfig <file>', 'credentials at the broker in place of those that joining left')
    .option(
      '--admin-listen <host:port>',
      'where /metrics, /livez and /readyz are; port 0 takes a free one',
      '127.0.0.1:0',
    )
    .addOption(logLevelOption('info'))
    .addHelpText(
      'after',
      `
Knows what it is from portolan join, and may be started before: it waits. Two of one cluster are safe: one works, the
other takes over. Example:
  portolan agent --kubeconfig east.kubeconfig --admin-listen 127.0.0.1:9465`,
    )
    .action(run);
}

async function run(flags: AgentFlags): Promise<void> {
  const listen = parseListen(flags.adminListen, '--admin-listen');
  const [{ createRealWorld }, { createRealHost }, { createMetrics }, { createClient }, { findHome }] =
    await Promise.all([
      import('../../base/real/world.ts'),
      import('../../base/real/host.ts'),
      import('../../base/metrics.ts'),
      import('../../kube/client/client.ts'),
      import('../../kube/client/kubeconfig.ts'),
    ]);
  const { notReady, startAgentRole } = await import('../../main/agent.ts');
  const { startAdminEndpoint } = await import('../../base/real/admin-endpoint.ts');
  const { Parts } = await import('../../base/parts.ts');
  const world = createRealWorld();
  const host = createRealHost();
  const log = processLog(world, flags.logLevel);
  const metrics = createMetrics();
  const find = (kubeconfig: string | undefined, context?: string) =>
    findHome({
      host,
      clock: world.clock,
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    });
  const access = await find(flags.kubeconfig, flags.context);
  const brokerAccess = flags.brokerKubeconfig === undefined ? undefined : await find(flags.brokerKubeconfig);
  const home = createClient(world.network.http(access), { world, userAgent: 'portolan-agent' });
  const parts = new Parts(log);
  parts.add('home client', () => home.close());
  const role = startAgentRole({
    world,
    log,
    metrics,
    home,
    ...(brokerAccess === undefined ? {} : { brokerAccess }),
  });
  parts.add('agent', () => role.stop());
  const status = () => role.state();
  const admin = await startAdminEndpoint({ listen, metrics, notReady: () => notReady(status()), status }).catch(
    async (error: unknown) => {
      await parts.stop();
      throw error;
    },
  );
  parts.add('admin endpoint', () => admin.close());
  const stopped = untilStopped(log, () => parts.stop());
  process.stdout.write(`ready ${access.server}\nadmin ${admin.url}\n`);
  await stopped;
}
