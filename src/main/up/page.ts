// The dashboard of `portolan up`: over its own home, with a token in a file that only its owner reads.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { parseListen } from '../../cli/roles/options.ts';
import { issueViewerToken } from '../../dashboard/viewer.ts';
import type { Client } from '../../kube/client/client.ts';
import { runDashboard } from '../dashboard/part.ts';
import type { Home } from '../home/part.ts';

export interface UpPage {
  /** Signs in by itself. */
  readonly link: string;
  stop(): Promise<void>;
}

export interface UpPageOptions {
  readonly world: World;
  readonly log: Log;
  readonly home: Home;
  readonly client: Client;
  readonly directory: string;
  /** `none` turns it off. */
  readonly listen: string;
}

const lifetimeMs = 24 * 3_600_000;

export async function startPage(options: UpPageOptions): Promise<UpPage | undefined> {
  const { world, log, home, client, directory } = options;
  if (options.listen === 'none') return undefined;
  const token = await issueViewerToken(client, lifetimeMs);
  const code = Buffer.from(world.random.bytes(18)).toString('base64url');
  const access = { server: home.server, certificateAuthority: home.certificateAuthority };
  const dashboard = await runDashboard({
    ...{ world, log, codes: new Map([[code, token]]) },
    listen: parseListen(options.listen, '--dashboard'),
    homes: [{ name: 'home', access }],
  });
  const link = `${dashboard.url}/#token=${code}`;
  await world.disk.write(`${directory}/dashboard`, Buffer.from(`${link}\n`), { mode: 0o600 });
  return { link, stop: () => dashboard.stop() };
}
