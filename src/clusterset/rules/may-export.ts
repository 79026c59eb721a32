// Which services the set's admin lets a cluster export: `Cluster.spec.mayExport`, a list of `NAMESPACE` or `NAMESPACE/NAME` in
// which `*` stands for any text. Without a list all of them; an empty one is none. Services of the system, such as the cluster's DNS
// and API, only where the list names them outright. Pure; exporters and readers go by it alike.

import { externalNamespace, sealingNamespace, systemNamespace } from '../../kube/objects/ours.ts';
import type { ClusterSpec } from '../kinds/cluster.ts';
import { formatServiceKey, type ServiceKey } from './names.ts';

export function mayExport(spec: Pick<ClusterSpec, 'mayExport'> | undefined, service: ServiceKey): boolean {
  const patterns = spec?.mayExport;
  if (isOfSystem(service)) return patterns?.some((pattern) => isNamedBy(pattern, service)) ?? false;
  if (patterns === undefined || patterns === null) return true;
  return patterns.some((pattern) => {
    const [namespace = '', name = '*'] = pattern.split('/');
    return isMatch(namespace, service.namespace) && isMatch(name, service.name);
  });
}

/** Kubernetes keeps namespaces that begin so for itself. */
const systemPrefix = 'kube-';
const systemNamespaces: ReadonlySet<string> = new Set([systemNamespace, externalNamespace, sealingNamespace]);
const apiServer = 'default/kubernetes';

/** Importing one puts the DNS or the API of another cluster in the place of the reader's own. */
export function isOfSystem(service: ServiceKey): boolean {
  const { namespace } = service;
  const isReserved = namespace.startsWith(systemPrefix) || systemNamespaces.has(namespace);
  return isReserved || formatServiceKey(service) === apiServer;
}

/** Outright: its namespace without a star, such as `kube-system` or `kube-system/kube-*`; the API by its whole name alone. */
function isNamedBy(pattern: string, service: ServiceKey): boolean {
  const key = formatServiceKey(service);
  const [namespace = '', name = '*'] = pattern.split('/');
  return pattern === key || (key !== apiServer && namespace === service.namespace && isMatch(name, service.name));
}

export function exportRefusal(cluster: string, service: ServiceKey): string {
  if (isOfSystem(service))
    return `${formatServiceKey(service)} belongs to the system of its cluster: cluster ${cluster} may export it only if spec.mayExport of its Cluster names it`;
  return `the clusterset does not let cluster ${cluster} export ${formatServiceKey(service)}; its admin sets spec.mayExport of the Cluster`;
}

/** Looks at each part between stars once, from left to right: no pattern takes long. */
function isMatch(pattern: string, text: string): boolean {
  const [head = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === text;
  const tail = rest.pop()!;
  if (!text.startsWith(head) || !text.endsWith(tail) || text.length < head.length + tail.length) return false;
  let at = head.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - tail.length;
}
