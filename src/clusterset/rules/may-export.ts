// Which services the set's admin lets a cluster export: `Cluster.spec.mayExport`, a list of `NAMESPACE` or `NAMESPACE/NAME` in
// which `*` stands for any text. Without a list all of them; an empty one is none. Pure; exporters and readers go by it alike.

import type { ClusterSpec } from '../kinds/cluster.ts';
import { formatServiceKey, type ServiceKey } from './names.ts';

export function mayExport(spec: Pick<ClusterSpec, 'mayExport'> | undefined, service: ServiceKey): boolean {
  const patterns = spec?.mayExport;
  if (patterns === undefined || patterns === null) return true;
  return patterns.some((pattern) => {
    const [namespace = '', name = '*'] = pattern.split('/');
    return isMatch(namespace, service.namespace) && isMatch(name, service.name);
  });
}

export function exportRefusal(cluster: string, service: ServiceKey): string {
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
