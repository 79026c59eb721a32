// The access of a Pod to its own cluster: the service account that Kubernetes mounts.

import type { Host } from '../../base/host.ts';
import type { HomeAccess } from './kubeconfig.ts';

const directory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Undefined if this is no Pod. */
export async function inClusterAccess({ host }: { readonly host: Host }): Promise<HomeAccess | undefined> {
  const address = host.environment['KUBERNETES_SERVICE_HOST'];
  const port = host.environment['KUBERNETES_SERVICE_PORT'];
  if (!address || !port) return undefined;
  if ((await host.readText(`${directory}/token`)) === undefined) return undefined;
  const bracketed = address.includes(':') ? `[${address}]` : address;
  return {
    server: `https://${bracketed}:${port}`,
    certificateAuthority: await host.readText(`${directory}/ca.crt`),
    // Kubernetes replaces the file before the token in it runs out.
    bearerToken: async () => (await host.readText(`${directory}/token`))?.trim(),
    defaultNamespace: (await host.readText(`${directory}/namespace`))?.trim() ?? 'default',
    contextName: 'in-cluster',
  };
}
