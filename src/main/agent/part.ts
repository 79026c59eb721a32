// An agent as a part of a process: its controllers, the Lease by which it reports at home, and its admin endpoint.

import { hostname } from 'node:os';
import type { Host } from '../../base/host.ts';
import { Parts } from '../../base/parts.ts';
import { startAdminEndpoint } from '../../base/real/admin-endpoint.ts';
import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { createEventRecorder } from '../../kube/controller/events.ts';
import { forgetParts } from '../../kube/controller/forget-parts.ts';
import { keepPartLease } from '../../kube/controller/part-lease.ts';
import { tellMissingRights } from '../../kube/controller/tell-missing-rights.ts';
import { nodeName } from '../process.ts';
import { type AgentRoleOptions, type AgentRoleState, notReady, startAgentRole } from './role.ts';

export interface AgentPartOptions extends Omit<AgentRoleOptions, 'metrics'> {
  readonly host: Host;
  /** Address of the admin endpoint. */
  readonly listen: { readonly host: string; readonly port: number };
}

export interface AgentPart {
  /** URL of its admin endpoint. */
  readonly url: string;
  state(): AgentRoleState;
  stop(): Promise<void>;
}

export async function startAgentPart(options: AgentPartOptions): Promise<AgentPart> {
  const { world, log, home, host, listen } = options;
  const parts = new Parts(log);
  const metrics = createPartMetrics('agent');
  const role = startAgentRole({ ...options, metrics });
  parts.add('agent', () => role.stop());
  const node = nodeName(host.environment);
  const lease = keepPartLease({ client: home, world, log, part: 'agent', id: hostname(), node });
  parts.add('lease', () => lease.stop());
  const forgetting = forgetParts({ client: home, world, log });
  parts.add('forgetting removed parts', () => forgetting.stop());
  const events = createEventRecorder({ home, world, log });
  const rights = tellMissingRights({ client: home, world, log, events });
  parts.add('events of missing rights', () => rights.stop());
  const status = () => role.state();
  try {
    const admin = await startAdminEndpoint({
      listen,
      metrics,
      notReady: () => lease.problem() || notReady(status()),
      status,
      registrations: [lease],
    });
    parts.add('admin endpoint', () => admin.close());
    return { url: admin.url, state: status, stop: () => parts.stop() };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}
