// Discovery servers for proxies in network namespaces. The caller ends them with all that was started.

import { chmodSync } from 'node:fs';
import type { Client } from '../../src/kube/client/client.ts';
import type { XdsRoleOptions } from '../../src/main/xds/part.ts';
import { endLater } from './started.ts';
import { startXdsTest, type XdsTest } from './xds.ts';
import { startXdsNamespace, type XdsNamespace } from './xds-namespace.ts';

const virtualPort = 15_003;

export function openNamespace(): XdsNamespace {
  const inside = startXdsNamespace(virtualPort);
  endLater(() => inside.stop());
  return inside;
}

export async function serve(
  inside: XdsNamespace,
  cluster: string,
  home?: Client,
  changes: Partial<XdsRoleOptions> = {},
): Promise<XdsTest> {
  const ports = { virtual: virtualPort, ingress: 15_443 };
  const listen = { host: inside.outside, port: 0 };
  const xds = await startXdsTest({ ports, cluster, listen, ...(home && { home }), ...changes });
  endLater(() => xds.stop());
  chmodSync(xds.folder, 0o755);
  return xds;
}

export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let i = 0; i < 400; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(25);
  }
  throw new Error(`did not happen: ${what}`);
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** All streams of a proxy are answered, and it holds at least so many listeners. */
export function settled(xds: XdsTest, id: string, listeners: number): Promise<true> {
  return until(`${id} has its configuration`, () => {
    const report = xds.role.service.proxies.reports().find((each) => each.id === id);
    return report?.isConnected && report.inFlight === 0 && report.holds.listener >= listeners ? true : undefined;
  });
}
