// Asks the admin endpoint of a part by way of its home, with the caller's credentials and rights: the embedded home passes
// the request on (services/proxy), and a Kubernetes does so for a part in a Pod (pods/proxy). Nothing is asked directly.

import type { Lease } from '../objects/lease.ts';
import { systemNamespace } from '../objects/ours.ts';
import { partAnnotations } from '../objects/part-lease.ts';
import type { Client, RequestOptions } from './client.ts';

/** JSON that the part answers to GET of `path`, such as `/status` or `/explain?name=…`. Throws ApiError. */
export function askPart<T = unknown>(client: Client, lease: Lease, path: string, options?: RequestOptions): Promise<T> {
  return client.getPath<T>(`${partAdminPath(lease)}${path}`, options);
}

/** The same for paths that answer text, such as `/metrics`. */
export function askPartText(client: Client, lease: Lease, path: string, options?: RequestOptions): Promise<string> {
  const decode = (body: Uint8Array) => Buffer.from(body).toString('utf8');
  return client.getPath(`${partAdminPath(lease)}${path}`, { ...options, decode });
}

/** Where the home has the admin endpoint of the part that keeps this Lease. */
export function partAdminPath({ metadata }: Lease): string {
  const { namespace = systemNamespace, name, annotations = {} } = metadata;
  const pod = annotations[partAnnotations.pod];
  const port = /:(\d+)$/.exec(annotations[partAnnotations.admin] ?? '')?.[1] ?? '';
  const target = pod === undefined ? `services/${name}:admin` : `pods/${encodeURIComponent(pod)}:${port}`;
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${target}/proxy`;
}
