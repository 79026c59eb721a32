// A proxy that repeats the contents of a secret in its refusal: they come back nowhere. Searched are the log, metrics, status,
// the Lease and the objects' conditions.

import { afterEach, expect, test } from 'vitest';
import { startXdsTest } from '../../../test/support/xds.ts';
import { clusters, node } from '../../../test/support/xds-stream.ts';
import { createLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { type MeshExternalService, meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { externalService } from '../../external/testing/services.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { namespace } from '../../peering/testing/edge/memory-home.ts';
import { typeUrlOf } from '../../xds/envoy-schema.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const patient = { timeout: 30_000 };

test('xds: a proxy repeats a secret when it refuses it -> refused and reported, without its contents', async () => {
  const lines: string[] = [];
  const { clock } = createRealWorld();
  const log = createLog({ level: 'debug', clock, write: (line) => void lines.push(line) });
  const xds = await startXdsTest({ log });
  closing.push(() => xds.stop());
  const authority = createAuthority();
  const pair = authority.issue({ kind: 'client' });
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const data = {
    'ca.crt': base64(authority.certificate),
    'tls.crt': base64(pair.certificate),
    'tls.key': base64(pair.key),
  };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pki', namespace: externalNamespace }, data };
  await xds.client.create<Secret>(secretType, secret);
  const source = '{ secret: pki }';
  const tls = `{ caCert: ${source}, clientCert: ${source}, clientKey: ${source} }`;
  await xds.client.create(
    meshExternalServiceType,
    externalService(
      `{ match: [{ type: IP, value: 10.9.9.9, port: 80 }], destination: { type: Regular, endpoints: [{ address: 10.0.0.1 }], tls: ${tls} } }`,
      { name: 'bank' },
    ),
  );
  const { external } = xds.role.service.views;
  await expect.poll(() => external.get('secret', 'external:bank:client'), patient).toBeDefined();
  const stream = await xds.proxy('sidecar~east~web');
  closing.push(() => stream.close());
  const secrets = { type_url: typeUrlOf('secret') };
  stream.send({ ...node('sidecar~east~web'), ...clusters });
  stream.send({ ...secrets, resource_names_subscribe: ['external:bank:client'] });
  for (;;) {
    const { nonce, type_url, resources } = await stream.next();
    const isMeant = type_url === secrets.type_url && JSON.stringify(resources ?? []).includes('external:bank:client');
    const error_detail = { code: 13, message: `Proto constraint validation failed: ${data['tls.key']} ${pair.key}` };
    stream.send({ type_url, response_nonce: nonce, ...(isMeant && { error_detail }) });
    if (isMeant) break;
  }
  const programmed = async () => {
    const object = await xds.client.get<MeshExternalService>(meshExternalServiceType, { namespace, name: 'bank' });
    return object.status?.conditions?.find(({ type }) => type === 'Programmed');
  };
  await expect.poll(programmed, patient).toMatchObject({ status: 'False', reason: 'RefusedByProxy' });
  const leases = await xds.client.list<Lease>(leaseType, { namespace });
  const shown = {
    log: lines.join(''),
    condition: JSON.stringify(await programmed()),
    status: JSON.stringify(xds.role.service.proxies.reports()),
    metrics: await xds.metrics.text(),
    leases: JSON.stringify(leases.items),
  };
  expect(shown.status).toContain('external:bank:client');
  for (const [where, text] of Object.entries(shown))
    for (const piece of [data['tls.key'].slice(60, 100), pair.key.split('\n')[1]!.slice(4, 40)])
      expect(text.includes(piece), `${where} holds part of a key`).toBe(false);
}, 90_000);
