// A cluster's own gateways and the roots of its trust domain, as its home holds them for the agent to report at the broker:
// a ConfigMap in the system namespace. Gateways are given by people or found in a LoadBalancer Service; roots are written by
// the issuer of the gateway's certificates. Pure.

import { parseHostPort } from '../../../base/net/host-port.ts';
import { parseIp } from '../../../base/net/ip.ts';
import type { ConfigMap } from '../../../kube/objects/config-map.ts';
import type { Service } from '../../../kube/objects/service.ts';
import type { GatewayAddress } from './networks.ts';

/** In the system namespace: a ConfigMap, and the Service of type LoadBalancer in front of the gateway. */
export const gatewayName = 'portolan-gateway';

/** Keys of the ConfigMap; each has one writer. */
export const gatewayReportKeys = {
  /** Gateways as people gave them: `203.0.113.7:15443,[2001:db8::7]:15443`. */
  gateways: 'gateways',
  /** PEM certificates, one after the other. */
  trustRoots: 'trustRoots',
} as const;

/** As the definition of a Cluster has it. */
export const gatewaysMax = 16;
export const trustRootsMax = 4;

export interface GatewayReport {
  readonly gateways: readonly GatewayAddress[];
  readonly trustRoots: readonly string[];
}

/** As the member reports them: addresses that people gave win over those of the Service. */
export function reportedGateways(given: ConfigMap | undefined, service: Service | undefined): GatewayReport {
  const report = readGatewayReport(given ?? {});
  const gateways = report.gateways.length > 0 ? report.gateways : gatewaysOf(service);
  return { gateways: gateways.slice(0, gatewaysMax), trustRoots: report.trustRoots.slice(0, trustRootsMax) };
}

/** A load balancer that is known by name alone has no address that an admin could accept. */
function gatewaysOf(service: Service | undefined): GatewayAddress[] {
  const port = service?.spec?.ports?.[0]?.port;
  if (service?.spec?.type !== 'LoadBalancer' || port === undefined) return [];
  const ips = (service.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  return [...new Set(ips)].sort().map((address) => ({ address, port }));
}

export function readGatewayReport({ data }: Pick<ConfigMap, 'data'>): GatewayReport {
  const texts = (data?.[gatewayReportKeys.gateways] ?? '').split(',');
  const pem = data?.[gatewayReportKeys.trustRoots] ?? '';
  return {
    gateways: texts.flatMap((text) => parseGateway(text.trim()) ?? []),
    trustRoots: pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [],
  };
}

/** `ADDRESS:PORT` with an IP address; undefined for anything else. */
export function parseGateway(text: string): GatewayAddress | undefined {
  const parsed = parseHostPort(text);
  if (parsed === undefined || parsed.port === 0 || parseIp(parsed.host) === undefined) return undefined;
  return { address: parsed.host, port: parsed.port };
}
