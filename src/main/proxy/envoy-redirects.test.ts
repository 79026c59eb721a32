// A node's proxy follows what is to go to its Envoy.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { formatIp } from '../../base/net/ip.ts';
import { clusterIdProperty, clusterPropertyType } from '../../clusterset/kinds/cluster-property.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { externalService } from '../../external/testing/services.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { peerServiceType } from '../../peering/kinds/peer-service.ts';
import type { Redirect } from '../../proxy/nft/redirects.ts';
import { followEnvoyRedirects } from './envoy-redirects.ts';

test("redirects: external services and peers' services come and go -> the proxy has what is wanted now, and where peers alone are redirected, theirs", async () => {
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  let found: string[] | undefined;
  let foundOfPeers: string[] | undefined;
  const textOf = ({ range, port, toPort }: Redirect) =>
    `${formatIp({ family: range.family, value: range.first })}:${port} -> ${toPort}`;
  const common = { world: simulation.world('proxy'), log: silentLog, home: admin, cluster: 'east' };
  const following = followEnvoyRedirects({
    ...common,
    onChange: (redirects) => (found = redirects.map(textOf)),
  });
  const followingPeers = followEnvoyRedirects({
    ...{ ...common, arePeersOnly: true },
    onChange: (redirects) => (foundOfPeers = redirects.map(textOf)),
  });
  await simulation.time.advance(1000);
  expect(found).toEqual([]);
  const spec = '{ match: [{ type: IP, value: 10.0.0.1, port: 9000 }] }';
  await simulation.time.settle(admin.create(meshExternalServiceType, externalService(spec)));
  const namespace = 'portolan-system';
  const peer = {
    ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerService', metadata: { name: 'acme.db', namespace } },
    spec: {
      peer: 'acme',
      id: 'db',
      fqdn: 'db.acme.example',
      sans: ['spiffe://acme/db'],
      endpoints: [{ address: '192.0.2.1', port: 15443 }],
    },
  };
  const created = await simulation.time.settle(admin.create(peerServiceType, peer as AnyObject));
  await simulation.time.settle(
    admin.updateStatus(peerServiceType, { ...created, status: { ips: ['241.0.0.1'] } } as AnyObject),
  );
  await simulation.time.advance(1000);
  expect(found).toEqual(['10.0.0.1:9000 -> 15002', '241.0.0.1:15443 -> 15003']);
  expect(foundOfPeers).toEqual(['241.0.0.1:15443 -> 15003']);
  await simulation.time.settle(admin.delete(meshExternalServiceType, { namespace, name: 'example' }));
  await simulation.time.advance(1000);
  expect(found).toEqual(['241.0.0.1:15443 -> 15003']);
  following.stop();
  followingPeers.stop();
});

test('redirects: a service of one zone, no id given -> the id that the cluster joined with counts, also when it comes later', async () => {
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  const spec = '{ match: [{ type: IP, value: 10.0.0.1, port: 9000 }] }';
  const labelled = externalService(spec, { labels: { 'kuma.io/zone': 'east' } });
  await simulation.time.settle(admin.create(meshExternalServiceType, labelled));
  let count: number | undefined;
  const following = followEnvoyRedirects({
    ...{ world: simulation.world('proxy'), log: silentLog, home: admin },
    onChange: (redirects) => (count = redirects.length),
  });
  await simulation.time.advance(1000);
  expect(count).toBe(0);
  const property = {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterIdProperty } },
    spec: { value: 'east' },
  };
  await simulation.time.settle(admin.create(clusterPropertyType, property as AnyObject));
  await simulation.time.advance(1000);
  expect(count).toBe(1);
  following.stop();
});
