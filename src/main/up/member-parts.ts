// The parts of `portolan up` that depend on the id of the cluster in its clusterset: the resolver, and the proxy, which has
// nothing to route before the cluster has joined, unless an Envoy carries connections to peers' services. They start again when the cluster joins, leaves or gets another id.

import { Parts } from '../../base/parts.ts';
import { MembershipCopy } from '../../clusterset/agent/membership-copy.ts';
import type { MemberPartsOptions } from './options.ts';
import { startUpProxy } from './proxy.ts';
import { startUpResolver } from './resolver.ts';

export interface MemberParts {
  /** Rejects if a part cannot start. */
  whenStarted(): Promise<void>;
  stop(): Promise<void>;
}

export function followMembership(options: MemberPartsOptions): MemberParts {
  const { world, log, home } = options;
  let running: { readonly key: string; readonly parts: Parts; readonly ending: AbortController } | undefined;
  let dns = options.dns;
  let turn: Promise<void> = Promise.resolve();
  let isStopped = false;
  let hasStarted = false;

  const copy = new MembershipCopy({ home, world, log, onChange: () => next() });
  const whenStarted = copy.whenSynced().then(() => next());

  function next(): Promise<void> {
    turn = turn.then(follow);
    turn.then(
      () => (hasStarted = true),
      (error: unknown) => {
        if (hasStarted) options.onFailed(error);
      },
    );
    return turn;
  }

  async function follow(): Promise<void> {
    const membership = isStopped ? undefined : copy.current;
    const key = isStopped ? '' : JSON.stringify([membership?.clusterset, membership?.clusterId]);
    if (running?.key === key) return;
    running?.ending.abort(new Error('stopping'));
    await running?.parts.stop();
    running = undefined;
    if (isStopped) return;
    const [parts, ending] = [new Parts(log), new AbortController()];
    running = { key, parts, ending };
    const place = { ...options, id: membership?.clusterId ?? options.name };
    const resolver = await startUpResolver({ ...place, dns });
    parts.add('resolver', () => resolver.stop());
    // Clients were given this port.
    dns = { ...dns, port: resolver.port, mayMove: false };
    const isMember = membership !== undefined;
    if (options.proxy === 'off' || !(isMember || options.hasEnvoy || options.carriesServices)) return;
    // The ranges come from the broker, which may be away: names are answered meanwhile.
    const starting = startUpProxy({ ...place, isMember, mode: options.proxy, signal: ending.signal });
    starting.catch((error: unknown) => {
      if (!ending.signal.aborted) options.onFailed(error);
    });
    parts.add('proxy', () =>
      starting.then(
        (proxy) => proxy?.stop(),
        () => {},
      ),
    );
  }

  copy.start();
  return {
    whenStarted: () => whenStarted,
    stop: async () => {
      isStopped = true;
      copy.stop();
      await next().catch(() => {});
    },
  };
}
