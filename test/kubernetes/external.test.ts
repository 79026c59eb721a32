// External services on a real Kubernetes API server, which knows our definitions and none of our rules: everything that the
// embedded home refuses at admission becomes a condition, and so does what a proxy refuses.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { MeshExternalService } from '../../src/external/kinds/mesh-external-service.ts';
import { externalService } from '../../src/external/testing/services.ts';
import { pairIn } from '../../src/kube/client/kept-authority.ts';
import { peeringNamespace, xdsAuthoritySecret, xdsNamespace } from '../../src/kube/objects/ours.ts';
import type { Secret } from '../../src/kube/objects/secret.ts';
import { firstSeenAnnotation } from '../../src/peering/kinds/peer-service.ts';
import { issueProxy } from '../../src/xds/identity/authority.ts';
import { parseNodeId } from '../../src/xds/identity/proxy-identity.ts';
import { clusters, connect, node, type Stream } from '../support/xds-stream.ts';
import { type FlowHome, startFlowHome, system } from './homes.ts';
import { RunningParts } from './parts.ts';

const namespaces = ['--secrets-namespace', xdsNamespace, '--peering-namespace', peeringNamespace];
const patient = { timeout: 60_000, interval: 250 };

function vip(name: string, more = ''): MeshExternalService {
  const spec = `{ match: [{ type: InternalVIP, value: ${name}.ext.example, port: 80, protocol: http }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }]${more} } }`;
  return asApplied(externalService(spec, { name }));
}

/** As a person would write it. */
function asApplied({ apiVersion, kind, metadata, spec }: MeshExternalService): MeshExternalService {
  return { apiVersion, kind, metadata: { name: metadata.name, namespace: system }, spec };
}

const faulty = asApplied(
  externalService(
    `
match:
- { type: Domain, value: "*.example.com", port: 443, protocol: tls }
- { type: Domain, value: db.example.com, port: 5432, protocol: tcp }
- { type: CIDR, value: 10.0.0.0, port: 9000 }
- { type: IP, value: nonsense, port: 9001 }
destination:
  type: Regular
  extension: { type: Lambda, config: {} }
  endpoints: [{ address: "unix://app.sock" }, { address: a.example.com }, { address: A.example.com }]
  tls:
    version: { min: TLSv1_3, max: TLSv1_2 }
    clientCert: { secret: pki, inline: AAAA }
    caCert: { inline: "not base64" }
`,
    { name: 'faulty' },
  ),
);
/** Fields of the errors above. */
const faults = [
  'spec.match[0].value',
  'spec.match[2].value',
  'spec.match[3].value',
  'spec.destination.extension',
  'spec.destination.endpoints[0].address',
  'spec.destination.endpoints[2]',
  'spec.destination.tls.version.min',
  'spec.destination.tls.clientCert',
  'spec.destination.tls.clientKey',
  'spec.destination.tls.caCert.inline',
  'spec.destination.tls',
];

describe('external services on Kubernetes', () => {
  const parts = new RunningParts();
  let home: FlowHome;
  let stream: Stream | undefined;

  beforeAll(async () => {
    home = await startFlowHome('real', 'east');
    await home.type('install --set xds.enabled=true');
    parts.start(home, 'agent', ['agent']);
    parts.start(home, 'xds', ['xds', '--cluster-id', 'east', '--listen', '127.0.0.1:0', ...namespaces]);
  }, 240_000);
  afterAll(async () => {
    stream?.close();
    await parts.stop();
    await home?.stop();
  });

  const get = (kind: string, name: string) =>
    JSON.parse(home.kubectl(['get', kind, name, '-n', system, '-o', 'json'])) as MeshExternalService;
  const conditions = (kind: string, name: string) =>
    Object.fromEntries(
      (get(kind, name).status?.conditions ?? []).map(({ type, status, reason, message }) => [
        type,
        `${status} ${reason} ${message}`.trim(),
      ]),
    );

  test('a good one -> a virtual IP, its hostname available; not ready before an Envoy has programmed it', async () => {
    home.apply(vip('good'));
    await expect
      .poll(() => conditions('mes', 'good'), patient)
      .toMatchObject({
        Accepted: 'True Accepted',
        Ready: expect.stringMatching(/^False NotProgrammed /),
        HostnamesAvailable: 'True Available',
      });
    const { vips, addresses } = get('mes', 'good').status!;
    expect(vips?.map(({ ip, hostname }) => `${hostname} ${ip}`)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^good\.ext\.example 242\./)]),
    );
    expect(addresses).toMatchObject([
      { hostname: 'good.ext.example', status: 'Available', origin: { kind: 'MeshExternalService', name: 'good' } },
    ]);
  });

  test('many faults, a missing secret, an unknown plugin -> a condition on each; the good one is untouched', async () => {
    const before = get('mes', 'good').metadata.resourceVersion;
    const odd = `{ match: [{ type: IP, value: 10.0.0.9, port: 80, protocol: http }], destination: { type: Extension, extension: { type: Nowhere } } }`;
    home.apply(
      faulty,
      vip('lost', ', tls: { caCert: { secret: gone } }'),
      asApplied(externalService(odd, { name: 'odd' })),
    );
    await expect.poll(() => conditions('mes', 'faulty')['Accepted'], patient).toMatch(/^False Invalid /);
    const { Accepted: text = '' } = conditions('mes', 'faulty');
    for (const field of faults) expect(text).toContain(`${field}: `);
    await expect
      .poll(() => conditions('mes', 'lost')['Ready'], patient)
      .toBe('False TLSNotReady tls.caCert: there is no Secret gone with key ca.crt');
    await expect.poll(() => conditions('mes', 'odd')['Ready'], patient).toMatch(/^False UnknownPlugin .*Nowhere/);
    expect(get('mes', 'lost').status?.vips?.[0]?.ip).toMatch(/^242\./);
    expect(get('mes', 'faulty').status?.vips ?? []).toEqual([]);
    expect(get('mes', 'good').metadata.resourceVersion).toBe(before);
  });

  test('another namespace -> refused by the installed policy; the namespace of a clusterset -> accepted', async () => {
    const spec = '{ match: [{ type: IP, value: 10.0.0.9, port: 80 }] }';
    const at = (namespace: string) => {
      const one = asApplied(externalService(spec, { name: 'elsewhere' }));
      return JSON.stringify({ ...one, metadata: { ...one.metadata, namespace } });
    };
    const refusal = () => {
      try {
        return home.kubectl('create -f -', at('default'));
      } catch (error) {
        return String(error);
      }
    };
    // A new policy takes the API server a moment.
    await expect.poll(refusal, patient).toContain('only accepted in namespace portolan-system, or at a broker');
    for (const [name, label] of [
      ['prod', 'prod'],
      ['prod-m-east', 'prod'],
    ] as const)
      home.apply({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, labels: { 'portolan.dev/clusterset': label } },
      });
    expect(home.kubectl('create -f -', at('prod'))).toContain('created');
    expect(() => home.kubectl('create -f -', at('prod-m-east'))).toThrow('only accepted in namespace');
  });

  test("a peer's service that loses its name -> a condition that names the winner", async () => {
    const annotations = { [firstSeenAnnotation]: String(Date.UTC(2200, 0, 1)) };
    home.apply({
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerService' },
      metadata: { name: 'acme.good', namespace: system, annotations },
      spec: { peer: 'acme', id: 'good', fqdn: 'good.ext.example', sans: ['spiffe://acme.example/good'] },
    });
    await expect
      .poll(() => conditions('peerservices', 'acme.good')['HostnamesAvailable'], patient)
      .toBe('False HeldByExternalService good.ext.example is held by MeshExternalService good, which is older');
  });

  test('a proxy refuses a resource -> a condition on the external service that caused it', async () => {
    await expect.poll(() => parts.of(home, 'xds')[0]!.said('ready'), patient).not.toBe('');
    const { data = {} } = JSON.parse(
      home.kubectl(['get', 'secret', xdsAuthoritySecret, '-n', xdsNamespace, '-o', 'json']),
    );
    const at = { world: createRealWorld(), home: undefined as never, namespace: system, cluster: 'east' };
    const { certificate: cert, key } = issueProxy(at, pairIn({ data } as Secret)!, parseNodeId('sidecar~east~web')!);
    const port = parts.of(home, 'xds')[0]!.said('ready');
    stream = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, cert, key });
    stream.send({ ...node('sidecar~east~web'), ...clusters });
    for (;;) {
      const { nonce, type_url, resources } = await stream.next();
      const isMeant = JSON.stringify(resources).includes('good_80') && type_url === clusters.type_url;
      const error_detail = { code: 13, message: 'no such thing' };
      stream.send({ type_url, response_nonce: nonce, ...(isMeant && { error_detail }) });
      if (isMeant) break;
    }
    await expect
      .poll(() => conditions('mes', 'good')['Programmed'], patient)
      .toBe('False RefusedByProxy proxy sidecar~east~web refused cluster good_80: no such thing');
    expect(conditions('mes', 'good')['Accepted']).toBe('True Accepted');
  });

  test('all along -> no request of a part was refused', () => {
    expect(home.refusals()).toEqual([]);
  });
});
