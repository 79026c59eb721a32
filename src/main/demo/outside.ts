// The demo's external service: a server outside every mesh that speaks TLS, with a certificate of its own authority. West
// knows it by a name and a virtual IP, and the authority from a Secret; a proxy starts the TLS for its clients.

import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { sleep } from '../../base/world.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import type { Client } from '../../kube/client/client.ts';
import { externalNamespace, systemNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { type DemoDeps, makeCertificates, type RunningCluster } from './clusterset.ts';
import type { DemoRange } from './range.ts';

export interface DemoOutside {
  readonly hostname: string;
  readonly ip: string;
  readonly port: number;
}

const hostname = 'rates.bank.example';
const matchPort = 8443;
const serverAddress = '127.5.0.1';
const name = 'rates';
const authoritySecret = 'bank-authority';
const lookMs = 50;

export async function startOutside(
  deps: DemoDeps,
  { client }: RunningCluster,
  { external }: DemoRange,
): Promise<DemoOutside> {
  const { port, authority } = await startBank(deps);
  await client.create(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: authoritySecret, namespace: externalNamespace },
    stringData: { 'ca.crt': authority },
  });
  await client.create(meshExternalServiceType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'MeshExternalService',
    metadata: { name, namespace: systemNamespace },
    spec: {
      match: [{ type: 'InternalVIP', value: hostname, port: matchPort, protocol: 'http' }],
      destination: {
        type: 'Regular',
        endpoints: [{ address: serverAddress, port }],
        tls: { enabled: true, caCert: { secret: authoritySecret } },
      },
    },
  });
  return { hostname, ip: await untilNamed(deps, client, external), port: matchPort };
}

function startBank({ world, parts }: DemoDeps): Promise<{ port: number; authority: string }> {
  const certificates = makeCertificates(world);
  const { key, certificate } = certificates.issue('bank', { kind: 'server', hosts: [serverAddress] });
  const server = createServer({ key, cert: certificate }, (_request, response) => {
    response.setHeader('content-type', 'text/plain');
    response.end('rates of the bank, over TLS\n');
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, serverAddress, () => {
      parts.add('bank', () => {
        server.closeAllConnections();
        return new Promise<void>((done) => server.close(() => done()));
      });
      resolve({ port: (server.address() as AddressInfo).port, authority: certificates.authority });
    });
  });
}

/** In the demo's own range: the agent may still have to copy it from the broker. */
async function untilNamed({ world }: DemoDeps, client: Client, range: string): Promise<string> {
  const start = range.split('.').slice(0, 2).join('.');
  for (let tries = 0; tries < 600; tries += 1) {
    const ref = { namespace: systemNamespace, name };
    const { status } = await client.get<MeshExternalService>(meshExternalServiceType, ref);
    const ip = status?.vips?.find((vip) => vip.ip.startsWith(`${start}.`))?.ip;
    if (ip !== undefined) return ip;
    await sleep(world.timers, lookMs);
  }
  throw new Error(`demo: ${hostname} got no virtual IP of ${range} in 30 s`);
}
