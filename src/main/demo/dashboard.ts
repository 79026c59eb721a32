// The demo's dashboard: over the broker and all clusters, with a short code to sign in, and buttons that cut clusters off.

import { issueViewerToken } from '../../dashboard/viewer.ts';
import type { Client } from '../../kube/client/client.ts';
import { runDashboard } from '../dashboard/part.ts';
import type { Home } from '../home/part.ts';
import type { DemoBroker, DemoDeps, RunningCluster } from './clusterset.ts';

export interface DemoDashboard {
  readonly url: string;
  /** Stands for a token of each home: four of those would fill the screen. */
  readonly token: string;
}

const lifetimeMs = 7 * 24 * 3_600_000;

export async function startDemoDashboard(
  { world, log, parts }: DemoDeps,
  { broker, clusters }: { readonly broker: DemoBroker; readonly clusters: readonly RunningCluster[] },
  control: (verb: string, cluster: string) => Promise<string>,
): Promise<DemoDashboard> {
  const places: readonly { name: string; home: Home; client: Client }[] = [
    { name: 'broker', home: broker.home, client: broker.client },
    ...clusters.map(({ cluster, home, client }) => ({ name: cluster.id, home, client })),
  ];
  const tokens = await Promise.all(
    places.map(async ({ name, client }) => `${name}=${await issueViewerToken(client, lifetimeMs)}`),
  );
  const token = Buffer.from(world.random.bytes(18)).toString('base64url');
  const dashboard = await runDashboard({
    world,
    log,
    listen: { host: '127.0.0.1', port: 0 },
    homes: places.map(({ name, home }) => ({
      name,
      access: { server: home.server, certificateAuthority: home.certificateAuthority },
    })),
    codes: new Map([[token, tokens.join(' ')]]),
    recordAs: token,
    control,
  });
  parts.add('dashboard', () => dashboard.stop());
  return { url: dashboard.url, token };
}
