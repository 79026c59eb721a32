// A mesh as processes: its home, its peering endpoint, and the peer verbs on it.

import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { type ApiProcess, startApi } from './api-process.ts';
import { type PeeringProcess, runPeerCli, startPeeringProcess } from './peering-process.ts';

export interface Mesh {
  readonly api: ApiProcess;
  readonly peering: PeeringProcess;
  readonly client: Client;
  peer(...args: string[]): ReturnType<typeof runPeerCli>;
  stop(): Promise<void>;
}

/** Its trust domain is `<name>.example`. */
export async function startMesh(name: string, data: string): Promise<Mesh> {
  const api = await startApi({ data });
  const peering = await startPeeringProcess({ kubeconfig: api.kubeconfig, trustDomain: `${name}.example` });
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: api.kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  return {
    ...{ api, peering, client },
    peer: (...args) => runPeerCli(api.kubeconfig, ...args),
    stop: async () => {
      client.close();
      await peering.stop();
      await api.stop();
    },
  };
}
