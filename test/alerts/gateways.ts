// A cluster whose services lie in another network: its gateway stops answering the discovery server of this one.

import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { clusterPropertyType, clusterSetProperty } from '../../src/clusterset/kinds/cluster-property.ts';
import { clusterSetDnsName } from '../../src/clusterset/rules/clusterset-dns.ts';
import { networksData } from '../../src/clusterset/rules/networks/networks.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { meshOf } from '../../src/peering/testing/edge/mesh.ts';
import { freePort } from '../support/free-port.ts';
import type { Fault } from './fault.ts';
import type { Stage } from './stage.ts';

const clusterSet = 'prod';
const address = '127.0.0.1';

export async function gatewayFaults(stage: Stage): Promise<Fault[]> {
  const { kubeconfig } = await stage.startHome('gateways');
  const home = await stage.clientOf(kubeconfig);
  const port = await freePort();
  const remote = meshOf(`remote.${clusterSet}`);
  await home.create(clusterPropertyType, {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterSetProperty } },
    spec: { value: clusterSet },
  });
  const reach = {
    ...{ network: 'other', gateways: [{ address, port }], trustRoots: [remote.certificate], listenerPort: 15_101 },
  };
  await home.create(configMapType, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: clusterSetDnsName, namespace: systemNamespace } },
    data: networksData({ own: 'here', clusters: new Map([['remote', reach]]) }),
  });
  const { certificate: cert, key } = remote.issue({ identities: [`spiffe://remote.${clusterSet}/gateway`] });
  let gateway: Http2SecureServer;
  const open = () =>
    new Promise<void>((resolve) => {
      gateway = createSecureServer({ cert, key, requestCert: true, rejectUnauthorized: false });
      gateway.on('stream', (stream) => {
        stream.respond({ ':status': 200 });
        stream.end();
      });
      gateway.listen(port, address, resolve);
    });
  await open();
  stage.onClose(() => gateway.close());
  const ports = ['--virtual-port', '0', '--ingress-port', '0', '--listen', '127.0.0.1:0'];
  await stage.startPart('xds-gateways', ['xds', '--kubeconfig', kubeconfig, '--cluster-id', 'here', ...ports]);
  return [
    {
      what: 'the only gateway of a cluster in another network does not answer, then does',
      alerts: { GatewayUnreachable: 'xds-gateways' },
      make: async () => gateway.close(),
      mend: open,
    },
  ];
}
