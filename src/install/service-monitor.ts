// Objects by which a Prometheus of the operator scrapes one part: a Service without address for its admin port, and a
// ServiceMonitor that selects it. Both only with `serviceMonitor`, because a cluster may not know that kind. Pure.

import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import type { ResourceType } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { serviceType } from '../kube/objects/service.ts';
import { type Gated, gated } from './gate.ts';
import { adminPort } from './parts.ts';
import type { PartName } from './values.ts';

const serviceMonitorType: ResourceType = {
  group: 'monitoring.coreos.com',
  version: 'v1',
  plural: 'servicemonitors',
  kind: 'ServiceMonitor',
  isNamespaced: true,
};
/** Tells the Service for metrics from the one that clients of the part use. */
const metricsLabel = { 'portolan.dev/metrics': 'admin' };

export function monitoringOf(part: PartName, labels: Readonly<Record<string, string>>): Gated[] {
  const meta = { name: `portolan-${part}-metrics`, namespace: systemNamespace, labels: { ...labels, ...metricsLabel } };
  const port = { name: 'admin', port: adminPort, targetPort: 'admin', protocol: 'TCP' };
  const service: Manifest = manifest(serviceType, meta, {
    spec: { clusterIP: 'None', selector: labels, ports: [port] },
  });
  const monitor = manifest(serviceMonitorType, meta, {
    spec: {
      selector: { matchLabels: meta.labels },
      // The alerts and dashboards select jobs by this name.
      jobLabel: 'app.kubernetes.io/name',
      endpoints: [{ port: 'admin', path: '/metrics', interval: '30s' }],
    },
  });
  return gated({ path: 'serviceMonitor', equals: true }, [service, monitor]);
}
