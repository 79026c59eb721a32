// The parts of a cluster's agent: its membership, a candidate for leading, and while it leads the controllers and the
// renewal of its token. It may be started before the cluster joins and outlives leaving and joining again.
//
// The agents of one cluster share a lease at the broker, not at home: an agent without its home still tells
// the others that its home is away, and without a broker a leader has nothing to do.

import { type HttpAccess, parseServers } from '../../base/http.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { createHpke } from '../../base/real/hpke.ts';
import type { World } from '../../base/world.ts';
import { createAgent } from '../../clusterset/agent/agent.ts';
import { keepWithMembership, startAuthorityRenewal } from '../../clusterset/agent/authority-renewal.ts';
import { BrokerOutage } from '../../clusterset/agent/broker-outage.ts';
import { createLeaderLease } from '../../clusterset/agent/leader-lease.ts';
import { MembershipCopy } from '../../clusterset/agent/membership-copy.ts';
import { startTokenRenewal, tokenLifetimeMs } from '../../clusterset/agent/token-renewal.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import { leaderLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { withCertificateAdvice } from '../../clusterset/rules/leases/trusted-authorities.ts';
import { removeCopies, runBrokerCopies } from '../../external/controllers/broker-copies.ts';
import type { Plugins } from '../../external/plugins/plugin.ts';
import { followFederationZones } from '../../federation/zones.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { type Candidate, type LeaderTimes, standForLeader } from '../../kube/controller/leader.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { startExternal } from './external.ts';

export interface AgentRoleOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly home: Client;
  /** In place of the credentials that joining left: then nothing is renewed. */
  readonly brokerAccess?: HttpAccess;
  readonly leaderTimes?: LeaderTimes;
  /** Whether the cluster IPs of Services are routed here; found out by asking the home if absent. */
  readonly routesServices?: boolean | undefined;
  /** Plugins of external services; the built-in ones when absent. */
  readonly plugins?: Plugins;
}

export type AgentRoleState =
  | { readonly kind: 'no member' }
  /** Refused: the broker does not take our token, because it has run out or the cluster was removed. */
  | {
      readonly kind: 'standby' | 'leading' | 'refused';
      readonly clusterId: string;
      readonly clusterset: string /** Why the broker cannot be asked; absent while it can. */;
      readonly brokerProblem?: string;
    };

export interface AgentRole {
  state(): AgentRoleState;
  stop(): Promise<void>;
}

interface Term {
  readonly key: string;
  readonly membership: MembershipRecord;
  readonly candidate: Candidate;
  readonly outage: BrokerOutage;
  readonly broker: Client;
  /** Whether the broker's last answer was that it does not know us. */
  isRefused: boolean;
}

export function startAgentRole(options: AgentRoleOptions): AgentRole {
  const { world, log, home } = options;
  const hpke = createHpke(world.random);
  let term: Term | undefined;
  let turn = Promise.resolve();
  let isStopped = false;
  const copy = new MembershipCopy({ home, world, log, onChange: () => void nextTurn() });
  const external = startExternal({
    ...{ world, log, home, membership: () => copy.current },
    plugins: options.plugins,
    whenMembershipKnown: (signal) => copy.whenSynced(signal),
  });
  measureAgentRole(options.metrics, () => ({ state: state(), membership: copy.current }));

  /** One after the other: a term ends before the next begins. */
  function nextTurn(): Promise<void> {
    turn = turn.then(follow).catch((error: unknown) => log.error('agent cannot follow its membership', { error }));
    return turn;
  }

  async function follow(): Promise<void> {
    const wanted = isStopped ? undefined : copy.current;
    if (term?.key === (wanted && keyOf(wanted))) {
      // Another token, and another chance.
      if (term !== undefined) term.isRefused = false;
      return;
    }
    const hadTerm = term !== undefined;
    await end();
    external.placeChanged();
    // After leaving, a cluster keeps nothing of the broker.
    if (hadTerm && wanted === undefined && !isStopped) await removeCopies(home, systemNamespace);
    if (wanted !== undefined) term = begin(wanted);
  }

  async function end(): Promise<void> {
    const ending = term;
    if (ending === undefined) return;
    log.info('no longer working for the clusterset', { clusterset: ending.membership.clusterset });
    ending.outage.stop();
    await ending.candidate.stop();
    ending.broker.close();
    term = undefined;
  }

  function begin(membership: MembershipRecord): Term {
    const { clusterset, clusterId, namespace } = membership;
    const log = options.log.with({ clusterset, cluster: clusterId });
    const access = options.brokerAccess ?? accessOf(membership, () => copy.current ?? membership);
    const onUnauthorized = () => {
      access.onUnauthorized?.();
      if (!begun.isRefused) log.warn(refusal(clusterId));
      begun.isRefused = true;
    };
    const broker = createClient(world.network.http({ ...access, onUnauthorized }), {
      world,
      userAgent: `portolan-agent/${clusterId}`,
    });
    const whileLeading = async (signal: AbortSignal) => {
      begun.isRefused = false;
      const federations = followFederationZones({ world, log, broker, clusterset });
      const agent = createAgent({
        ...options,
        hpke,
        broker,
        federationZones: federations,
        membership: { clusterset, clusterId, namespace },
        systemNamespace,
        trustedAuthorities: membership.certificateAuthority,
      });
      const isOwnToken = options.brokerAccess === undefined;
      const renewal = isOwnToken
        ? startTokenRenewal({ home, broker, world, log, membership: () => copy.current })
        : undefined;
      const place = { clusterset, cluster: clusterId };
      const copies = runBrokerCopies({ world, log, home, broker, namespace: systemNamespace, place });
      const authorities = isOwnToken
        ? startAuthorityRenewal({
            ...{ broker, world, log },
            current: () => copy.current?.certificateAuthority,
            keep: async (certificates) => {
              if (copy.current !== undefined) await keepWithMembership(home, copy.current, certificates);
            },
          })
        : undefined;
      agent.start();
      await aborted(signal);
      if (begun.candidate.problem() !== '') await agent.leaveWord();
      await copies.stop();
      renewal?.stop();
      authorities?.stop();
      federations.stop();
      await agent.stop();
    };
    log.info('working for the clusterset');
    const candidate = standForLeader({
      client: broker,
      world,
      log,
      namespace: membership.accountNamespace,
      name: leaderLeaseName(clusterId),
      identity: world.random.uuid(),
      whileLeading,
      create: (lease, limit) => createLeaderLease(broker, namespace, lease, limit),
      times: options.leaderTimes,
    });
    const outage = new BrokerOutage({ world, log, home, systemNamespace, candidate });
    outage.start();
    const begun: Term = { key: keyOf(membership), membership, candidate, outage, broker, isRefused: false };
    return begun;
  }

  function state(): AgentRoleState {
    if (term === undefined) return { kind: 'no member' };
    const { clusterId, clusterset } = term.membership;
    const waiting = term.isRefused ? 'refused' : 'standby';
    const brokerProblem = term.candidate.problem();
    const kind = term.candidate.isLeader() ? 'leading' : waiting;
    return { kind, clusterId, clusterset, ...(brokerProblem === '' ? {} : { brokerProblem }) };
  }

  copy.start();
  return {
    state,
    stop: async () => {
      isStopped = true;
      copy.stop();
      await nextTurn();
      await external.stop();
    },
  };
}

/** Why the role does not work; empty if it does. */
export function notReady(state: AgentRoleState): string {
  if (state.kind === 'no member') return 'this cluster is not a member of a clusterset';
  if (state.kind === 'refused') return refusal(state.clusterId);
  // Until its lease ends, a leader works with what it knows.
  if (state.kind === 'leading') return '';
  return state.brokerProblem === undefined
    ? ''
    : `the broker does not answer: ${withCertificateAdvice(state.brokerProblem, state.clusterId)}`;
}

function refusal(id: string): string {
  return `the broker does not know this cluster any more: join again with what portolan broker token ${id} --renew gives, or leave`;
}

/** A renewed token changes nothing of this, and is used with the next request. */
function keyOf({ clusterset, clusterId, namespace, server, certificateAuthority }: MembershipRecord): string {
  return JSON.stringify([clusterset, clusterId, namespace, server, certificateAuthority]);
}

function accessOf(membership: MembershipRecord, current: () => MembershipRecord): HttpAccess {
  const { server, certificateAuthority } = membership;
  return {
    ...parseServers(server),
    ...(certificateAuthority === '' ? {} : { certificateAuthority }),
    bearerToken: async () => current().token,
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Beside what the controllers measure while it leads. */
export function measureAgentRole(
  metrics: Metrics,
  look: () => { state: AgentRoleState; membership: MembershipRecord | undefined },
): void {
  metrics.gauge({
    name: 'agent_leading',
    help: '1 while this agent is the one of its cluster that works.',
    collect: (gauge) => gauge.set(look().state.kind === 'leading' ? 1 : 0),
  });
  metrics.gauge({
    name: 'agent_broker_reachable',
    help: '1 while the broker answers this agent and knows its cluster; absent while the cluster is no member.',
    labelNames: ['clusterset', 'cluster'],
    collect: (gauge) => {
      const { state } = look();
      gauge.reset();
      if (state.kind === 'no member') return;
      const { clusterset, clusterId: cluster } = state;
      const isReachable = state.kind !== 'refused' && state.brokerProblem === undefined;
      gauge.set({ clusterset, cluster }, isReachable ? 1 : 0);
    },
  });
  metrics.gauge({
    name: 'agent_token_expiry_timestamp_seconds',
    help: 'When the token at the broker ends unless it is renewed; absent while the cluster is no member.',
    collect: (gauge) => {
      const expiresMs = Date.parse(look().membership?.tokenExpiresAt ?? '');
      // A gauge without labels begins with 0, which would be a token that ended in 1970.
      if (Number.isNaN(expiresMs)) gauge.remove();
      else gauge.set(expiresMs / 1000);
    },
  });
  metrics.gauge({
    name: 'agent_token_lifetime_seconds',
    help: 'From the issue of the token at the broker to its end; it is renewed after a third. Absent while the cluster is no member.',
    collect: (gauge) => {
      const { membership } = look();
      const lifetimeMs = membership === undefined ? Number.NaN : tokenLifetimeMs(membership);
      if (Number.isNaN(lifetimeMs)) gauge.remove();
      else gauge.set(lifetimeMs / 1000);
    },
  });
}
