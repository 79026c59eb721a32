// Certificates and keys of external services: nowhere but in Envoy's secrets. Everything that is written, logged, shown or
// sent is searched for them, in each form they could have.

import { expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog } from '../../base/log.ts';
import { parseIp } from '../../base/net/ip.ts';
import { formatConnection } from '../../cli/external/explain-connection.ts';
import { runBrokerCopies } from '../../external/controllers/broker-copies.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { builtinPlugins } from '../../external/plugins/builtin.ts';
import { explainConnection } from '../../external/rules/explain-connection.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { externalService } from '../../external/testing/services.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { externalResources } from '../../xds/external/generate.ts';
import { ExternalSource } from '../../xds/sources/external.ts';
import { watchSecrets } from '../../xds/sources/home-secrets.ts';
import { ViewIndex } from '../../xds/view/view-index.ts';
import { startExternal } from './external.ts';

const namespace = 'portolan-system';
const authority = createAuthority();
const client = authority.issue({ kind: 'client' });
const other = authority.issue({ kind: 'client' });

/** A piece from the middle of each, as text and in base64 at every offset. */
function piecesOf(pem: string): string[] {
  const body = pem.split('\n').slice(1, -2).join('');
  const plain = body.slice(4, 30);
  const encoded = [0, 1, 2].map((skip) =>
    Buffer.from(pem.slice(90 + skip, 150 + skip))
      .toString('base64')
      .slice(4, 40),
  );
  return [plain, ...encoded];
}

const secretTexts = [client.key, other.key, client.certificate].flatMap(piecesOf);

test('secrets of external services -> in no log, status, explanation or resource but Envoy secrets', async () => {
  const simulation = new Simulation({ seed: 1 });
  const lines: string[] = [];
  const clock = simulation.world('clock').clock;
  const log = createLog({ level: 'debug', clock, write: (line) => void lines.push(line) });
  const { admin } = await startHome(simulation);
  const broker = await startHome(simulation, 'broker');
  const settle = <T>(work: Promise<T>) => simulation.time.settle(work);
  const world = (name: string) => simulation.world(name);
  startExternal({
    ...{ world: world('agent'), log, home: admin, membership: () => undefined },
    whenMembershipKnown: async () => {},
  });
  runBrokerCopies({
    ...{ world: world('copies'), log, home: admin, broker: broker.admin, namespace },
    place: { clusterset: 'prod', cluster: 'east' },
  });
  const views = new ViewIndex();
  const common = { client: admin, world: world('xds'), log, views, namespace };
  const secrets = watchSecrets({ ...common, namespace: externalNamespace });
  secrets.start();
  new ExternalSource({
    ...{ ...common, secrets, cluster: 'east', plugins: builtinPlugins },
    ...{ ports: { inspected: 15_001, plain: 15_002 }, otherPorts: [], address: '::' },
  });
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const data = {
    'ca.crt': base64(authority.certificate),
    'tls.crt': base64(client.certificate),
    'tls.key': base64(client.key),
  };
  const metadata = { name: 'pki', namespace: externalNamespace };
  const pki = { apiVersion: 'v1', kind: 'Secret', metadata, data } as Secret;
  await settle(admin.create(secretType, pki));
  const service = (name: string, port: number, tls: string) =>
    externalService(
      `{ match: [{ type: IP, value: 10.0.0.1, port: ${port} }], destination: { type: Regular, endpoints: [{ address: a.b }], tls: { caCert: { secret: pki }, ${tls} } } }`,
      { name },
    );
  const inline = JSON.stringify;
  const good = service('good', 1, 'clientCert: { secret: pki }, clientKey: { secret: pki }');
  // Mistakes tempt to quote: a key of another certificate, a key in place of a certificate, a key as a name.
  const wrongKey = service(
    'wrong',
    2,
    `clientCert: { secret: pki }, clientKey: { inlineString: ${inline(other.key)} }`,
  );
  const swapped = service(
    'swapped',
    3,
    `clientCert: { inlineString: ${inline(client.key)} }, clientKey: { inlineString: ${inline(client.certificate)} }`,
  );
  for (const object of [good, wrongKey, swapped]) await settle(admin.create(meshExternalServiceType, object));
  const asName = service('name', 4, `clientCert: { secret: pki }, clientKey: { secret: ${inline(client.key)} }`);
  const refused = await settle(admin.create(meshExternalServiceType, asName).catch((error: Error) => error.message));
  await simulation.time.advance(20_000);

  const { items } = await settle(admin.list<MeshExternalService>(meshExternalServiceType, { namespace }));
  const read = (name: string, key: string) => (name === 'pki' ? data[key as keyof typeof data] : undefined);
  const input = {
    services: items,
    place: { clusterset: 'default', cluster: 'east' },
    plugins: builtinPlugins,
    secrets: read,
  };
  const connection = { address: parseIp('10.0.0.1')!, port: 1, transport: { kind: 'plain' } as const };
  const resources = externalResources({ ...input, address: '::', ports: { inspected: 15_001, plain: 15_002 } });
  const held = resources.filter(({ type }) => type === 'secret');
  expect(JSON.stringify(held)).toContain(base64(client.key));
  expect([...views.external.entries('secret')]).toHaveLength(held.length);
  // No Envoy has acknowledged the good one here; with the others TLS itself is wrong.
  const reasonOf = ({ status }: MeshExternalService) =>
    status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
  expect(items.map((item) => reasonOf(item) === 'TLSNotReady')).toEqual([false, true, true]);
  const shown = {
    log: lines.join(''),
    status: JSON.stringify(items.map(({ status }) => status)),
    refusal: String(refused),
    explanation: formatConnection({ to: '10.0.0.1:1' }, explainConnection(input, connection)).join('\n'),
    resources: JSON.stringify(resources.filter(({ type }) => type !== 'secret')),
    sent: (['cluster', 'listener', 'route'] as const)
      .flatMap((type) => [...views.external.entries(type)])
      .map(({ any }) => Buffer.from(any).toString('latin1'))
      .join(''),
  };
  for (const [where, text] of Object.entries(shown)) {
    expect(text.length, where).toBeGreaterThan(0);
    for (const piece of secretTexts) expect(text.includes(piece), `${where} holds part of a secret`).toBe(false);
  }
});
