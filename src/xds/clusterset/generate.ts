// A clusterset service as xDS resources. Clusters, routes and API listeners are the same for every proxy; only the
// endpoints depend on the place of the reader. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import type { SetLocality } from '../../clusterset/rules/locality.ts';
import type { SetNetworks } from '../../clusterset/rules/networks/networks.ts';
import { needsUnready } from '../../clusterset/rules/routing/routing.ts';
import { tcpLog } from '../access-logs/config.ts';
import { apiListener, edsCluster, http2Options, overAds, socketAddress, tcpProxy } from '../bodies.ts';
import type { Cause, XdsResource } from '../resource.ts';
import { assignmentOf } from './assignment.ts';
import type { ClustersetService, ServicePort } from './service.ts';

/** The same for all places: a cluster for each port, and what a gRPC client without a proxy resolves. */
export function clustersetResources(service: ClustersetService, domain: string): XdsResource[] {
  const causes = [causeOf(service)];
  const first = grpcPort(service.ports);
  return service.ports.flatMap((port): XdsResource[] => {
    const name = portName(service, domain, port);
    const names = port === first ? [name, hostName(service, domain)] : [name];
    return [
      { type: 'cluster', name, body: clusterBody(name, port), causes },
      { type: 'route', name, body: routeBody(name), causes, isByNameOnly: true },
      ...names.map((target): XdsResource => {
        return { type: 'listener', name: target, body: apiListener(target, overRds(name)), causes, isByNameOnly: true };
      }),
    ];
  });
}

interface Seen {
  readonly from: Place;
  readonly locality: SetLocality;
  readonly networks: SetNetworks;
}

/** Where the reader is decides which endpoints come first. */
export function clustersetEndpoints(
  service: ClustersetService,
  domain: string,
  { from, locality, networks }: Seen,
): XdsResource[] {
  const { trafficDistribution, routing } = service;
  return service.ports.map((port) => {
    const name = portName(service, domain, port);
    const endpoints = service.targetsOf(port);
    const unready = needsUnready(routing) ? service.targetsOf(port, false) : [];
    const body = assignmentOf({ name, endpoints, unready, from, locality, networks, trafficDistribution, routing });
    return { type: 'endpoints', name, body, causes: [causeOf(service)] };
  });
}

/** Takes connections to the service's own addresses, when the kernel hands them to the proxy. */
export function clustersetListeners(service: ClustersetService, domain: string): XdsResource[] {
  return service.ips.flatMap((ip) =>
    service.ports.map((port): XdsResource => {
      const cluster = portName(service, domain, port);
      const name = `${cluster} ${ip}`;
      const body = {
        name,
        address: socketAddress(ip, port.port),
        bind_to_port: false,
        filter_chains: [
          {
            filters: [
              tcpProxy(cluster, { ...triesOthers, access_log: [tcpLog('sidecar', { service: keyOf(service) })] }),
            ],
          },
        ],
      };
      return { type: 'listener', name, body, causes: [causeOf(service)] };
    }),
  );
}

function keyOf({ namespace, name }: ClustersetService): string {
  return `${namespace}/${name}`;
}

function hostName({ name, namespace }: ClustersetService, domain: string): string {
  return `${name}.${namespace}.svc.${domain}`;
}

function portName(service: ClustersetService, domain: string, { port }: ServicePort): string {
  return `${hostName(service, domain)}:${port}`;
}

function causeOf({ namespace, name }: ClustersetService): Cause {
  return { at: 'home', kind: 'ServiceImport', namespace, name };
}

function isHttp2({ appProtocol, name }: ServicePort): boolean {
  return /^(kubernetes\.io\/h2c|h2c|http2|grpc)$/.test(appProtocol) || /^(grpc|http2|h2c)(-|$)/.test(name);
}

/** A target without a port means the port that speaks gRPC, or the lowest. */
function grpcPort(ports: readonly ServicePort[]): ServicePort | undefined {
  return ports.find(isHttp2) ?? ports[0];
}

/**
 * An endpoint that does not take connections is left for a while, whatever its home says: by failures to connect alone, since the
 * answers of an application are its own business. One more try after five seconds.
 */
const leavesTheDead: JsonObject = {
  split_external_local_origin_errors: true,
  consecutive_local_origin_failure: 3,
  interval: '1s',
  base_ejection_time: '5s',
  max_ejection_time: '60s',
  // If all fail, Envoy uses all of them again.
  max_ejection_percent: 100,
  enforcing_consecutive_5xx: 0,
  enforcing_consecutive_gateway_failure: 0,
  enforcing_success_rate: 0,
  enforcing_local_origin_success_rate: 0,
};

/**
 * More attempts than it takes until an endpoint is left, and later ones after a moment: the decision comes from another thread. So a
 * connection outlives the endpoints that refuse it, also each time that they are tried again.
 */
const triesOthers: JsonObject = {
  max_connect_attempts: 12,
  backoff_options: { base_interval: '0.025s', max_interval: '0.25s' },
};

function clusterBody(name: string, port: ServicePort): JsonObject {
  // Weights of places count only if the cluster says so.
  const byPlace = { common_lb_config: { locality_weighted_lb_config: {} } };
  return {
    ...edsCluster(name),
    connect_timeout: '2s',
    ...byPlace,
    outlier_detection: leavesTheDead,
    ...(isHttp2(port) ? { typed_extension_protocol_options: http2Options() } : {}),
  };
}

function routeBody(name: string): JsonObject {
  // No limit of our own on the length of a call.
  const route = { match: { prefix: '' }, route: { cluster: name, timeout: '0s' } };
  return { name, virtual_hosts: [{ name, domains: ['*'], routes: [route] }] };
}

function overRds(route: string): JsonObject {
  return { rds: { config_source: overAds, route_config_name: route } };
}
