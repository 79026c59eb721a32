import { expect, test } from 'vitest';
import { parseRange } from '../base/net/ip.ts';
import type { ServiceImport } from '../clusterset/kinds/service-import.ts';
import type { SetNetworks } from '../clusterset/rules/networks/networks.ts';
import { remoteEndpoint } from '../clusterset/rules/networks/remote-endpoint.ts';
import type { Endpoint, EndpointSlice } from '../kube/objects/endpoint-slice.ts';
import { anyNode, connectionPath } from './connection-path.ts';
import { ProxyState } from './state.ts';
import { emptyViewInput, viewOf } from './view.ts';

const ip = '243.9.0.1';
const networks: SetNetworks = {
  own: 'home',
  clusters: new Map([
    [
      'east',
      {
        ...{ network: 'aws', trustRoots: ['root'], listenerPort: 15_213 },
        gateways: [
          { address: '203.0.113.7', port: 15_443 },
          { address: '203.0.113.8', port: 15_443 },
        ],
      },
    ],
  ]),
};

function sliceOf(cluster: string, addressType: EndpointSlice['addressType'], endpoints: Endpoint[]): EndpointSlice {
  const labels = {
    'multicluster.kubernetes.io/service-name': 'web',
    'multicluster.kubernetes.io/source-cluster': cluster,
  };
  const ports = [{ name: 'http', protocol: 'TCP' as const, port: 8080 }];
  const metadata = { name: `web-${cluster}`, namespace: 'shop', labels };
  return { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType, endpoints, ports };
}

function pathTo(port: number, problem?: string, isAskedByName = false) {
  const input = { ...emptyViewInput, cluster: 'west', ranges: [parseRange('243.0.0.0/8')!], networks };
  const state = new ProxyState(viewOf(input));
  state.addresses.setListed();
  state.facts.upsertServiceImport({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ name: 'http', protocol: 'TCP', port: 80 }] },
  } as ServiceImport);
  state.facts.upsertEndpointSlice(sliceOf('west', 'IPv4', [{ addresses: ['10.70.2.1'] }]));
  const remote = Array.from({ length: 3 }, () => remoteEndpoint('IPv4', { isUsable: true, isAskedByName }));
  state.facts.upsertEndpointSlice(sliceOf('east', 'FQDN', remote));
  state.setNearSide({ addresses: { IPv4: anyNode, IPv6: anyNode }, problems: new Map([['east', problem]]) });
  return connectionPath(state, 'shop/web', { ip, port });
}

test('connection path: one endpoint here and three behind gateways -> both ways with shares and hops', () => {
  const { port, from, problems } = pathTo(80);
  expect([from, problems]).toEqual(['west', []]);
  expect(port!.ways.map(({ cluster, share, endpoints, way }) => [cluster, share, endpoints, way])).toEqual(
    expect.arrayContaining([
      ['west', 0.25, 1, 'directly'],
      ['east', 0.75, 3, 'gateway'],
    ]),
  );
  const hopsTo = (id: string) => port!.ways.find(({ cluster }) => cluster === id)!.hops;
  expect(hopsTo('west')).toEqual(['10.70.2.1:8080']);
  expect(hopsTo('east')).toEqual([
    "Envoy of the client's node, port 15213",
    'gateway 203.0.113.7:15443 or 203.0.113.8:15443 of network aws, over mutual TLS that only east can answer; asked for 243.9.0.1:80',
    'a ready endpoint of east, which its gateway chooses',
  ]);
});

test('connection path: the other cluster has another address for the service -> another port of the Envoy, and its name', () => {
  const { port } = pathTo(80, undefined, true);
  expect(port!.ways.find(({ cluster }) => cluster === 'east')!.hops.slice(0, 2)).toEqual([
    "Envoy of the client's node, port 16013",
    expect.stringMatching(/asked for the service by its name, port 80$/),
  ]);
});

test('connection path: no way to the gateways -> the endpoints here alone, and why', () => {
  const { port, problems } = pathTo(80, 'its gateways refuse this cluster');
  expect(port!.ways.map(({ cluster, share }) => [cluster, share])).toEqual([['west', 1]]);
  expect(problems).toEqual(['3 endpoints of cluster east are not reached: its gateways refuse this cluster']);
});

test('connection path: another port -> the ports that there are', () => {
  const { port, problems } = pathTo(81);
  expect(port).toBeUndefined();
  expect(problems).toEqual(['the service has no port 81; it has 80/TCP']);
});
