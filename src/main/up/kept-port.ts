// A home that takes any port takes the one it had before, if that is free: kubeconfigs that were handed out stay good.

import { createServer } from 'node:net';
import { parseServers } from '../../base/http.ts';
import type { HostPort } from '../../base/net/host-port.ts';
import type { World } from '../../base/world.ts';
import type { UpConfig } from '../../cli/roles/up-flags.ts';
import { parseKubeconfig } from '../../home/security/kubeconfig.ts';

export async function keptListen(
  world: Pick<World, 'disk'>,
  directory: string,
  { listen, advertise }: Pick<UpConfig, 'listen' | 'advertise'>,
): Promise<HostPort> {
  // An advertised port is that of something in front.
  if (listen.port !== 0 || (advertise !== undefined && advertise.port !== 0)) return listen;
  const kept = await world.disk.read(`${directory}/admin.kubeconfig`);
  const content = kept && parseKubeconfig(Buffer.from(kept).toString('utf8'));
  const server = content && parseServers(content.server).server;
  const port = server && URL.canParse(server) ? Number(new URL(server).port) : 0;
  return port > 0 && (await isFree(listen.host, port)) ? { ...listen, port } : listen;
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port }, () => server.close(() => resolve(true)));
  });
}
