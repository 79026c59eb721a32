// External services by the discovery server to a real Envoy: from an object in the home to a connection.

import { chmodSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { type MeshExternalService, meshExternalServiceType } from '../src/external/kinds/mesh-external-service.ts';
import { createAuthority } from '../src/external/testing/pem.ts';
import { externalService } from '../src/external/testing/services.ts';
import { externalNamespace } from '../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { describeWith } from './support/counterparts.ts';
import { startXdsTest, type XdsTest } from './support/xds.ts';
import { startXdsNamespace } from './support/xds-namespace.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const inspectedPort = 15_001;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, isDone: () => Promise<boolean> | boolean): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await isDone()) return;
    await pause(25);
  }
  throw new Error(`did not happen: ${what}`);
}

async function put({ client }: XdsTest, object: MeshExternalService): Promise<void> {
  const created = await client.create<MeshExternalService>(meshExternalServiceType, object);
  await client.updateStatus(meshExternalServiceType, { ...created, status: object.status } as MeshExternalService);
}

function vip(name: string, ip: string, address: string, more = ''): MeshExternalService {
  const hostname = `${name}.ext`;
  const spec = `{ match: [{ type: InternalVIP, value: ${hostname}, port: 80, protocol: http }], destination: { type: Regular, endpoints: [{ address: ${address}, port: 8080 }]${more} } }`;
  return externalService(spec, { name, vips: { [hostname]: ip } });
}

describeWith(['envoy', 'ip', 'nft'], 'external services by xds', () => {
  test.each(['delta', 'sotw'] as const)(
    '%s: services, a secret and a broken one in the home -> traffic goes, nothing is refused, changes arrive',
    async (variant) => {
      const inside = startXdsNamespace(inspectedPort);
      closing.push(() => inside.stop());
      const xds = await startXdsTest({ listen: { host: inside.outside, port: 0 } });
      closing.push(() => xds.stop());
      chmodSync(xds.folder, 0o755);
      for (const [index, name] of ['a', 'b'].entries())
        await inside.ask({ do: 'serve', name, address: `10.70.0.${index + 1}`, port: 8080 });
      const authority = createAuthority();
      const pair = authority.issue({ kind: 'server', hosts: ['10.70.0.3'] });
      await inside.ask({ do: 'serveTls', name: 'secure', address: '10.70.0.3', port: 8080, ...pair });
      const data = { 'ca.crt': Buffer.from(authority.certificate).toString('base64') };
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'pki', namespace: externalNamespace },
        data,
      } as Secret;
      await xds.client.create(secretType, secret);
      await put(xds, vip('web', '242.0.0.1', '10.70.0.1'));
      await put(xds, vip('tls', '242.0.0.2', '10.70.0.3', ', tls: { caCert: { secret: pki } }'));
      await put(xds, vip('lost', '242.0.0.3', '10.70.0.1', ', tls: { caCert: { secret: gone } }'));
      const envoy = inside.startEnvoy(xds.folder, 'sidecar', await xds.bootstrap('sidecar', 'web', { variant }));
      const get = async (ip: string) => String(await inside.ask({ do: 'get', to: `http://${ip}/` }));
      await until('the first answer', async () => (await get('242.0.0.1')) === 'a').catch((error: Error) => {
        throw new Error(`${error.message}: ${envoy.log()} ${JSON.stringify(xds.role.service.proxies.reports())}`);
      });
      await until('TLS by the secret', async () => (await get('242.0.0.2')).startsWith('secure'));
      expect(await get('242.0.0.3')).toMatch(/^failed/);
      const ref = { namespace, name: 'web' };
      const endpoints = [{ address: '10.70.0.2', port: 8080 }];
      const body = { spec: { destination: { endpoints } } };
      await xds.client.patch(meshExternalServiceType, ref, { kind: 'merge', body });
      await until('the new endpoint answers', async () => (await get('242.0.0.1')) === 'b');
      await put(xds, vip('more', '242.0.0.4', '10.70.0.1'));
      await until('the new rule answers', async () => (await get('242.0.0.4')) === 'a');
      expect(xds.role.service.proxies.reports().flatMap(({ refused }) => refused)).toEqual([]);
    },
    60_000,
  );

  test.each([
    ['delta', 'is deleted'],
    ['sotw', 'is deleted'],
    ['delta', 'gets a match of another protocol, which is then removed'],
  ] as const)(
    '%s: kept connections while the rule %s -> no request fails',
    async (variant, change) => {
      const inside = startXdsNamespace(inspectedPort);
      closing.push(() => inside.stop());
      const xds = await startXdsTest({ listen: { host: inside.outside, port: 0 } });
      closing.push(() => xds.stop());
      chmodSync(xds.folder, 0o755);
      await inside.ask({ do: 'serve', name: 'a', address: '10.70.0.1', port: 8080 });
      await inside.ask({ do: 'serve', name: 'original', address: '242.0.0.1', port: 80 });
      await put(xds, vip('web', '242.0.0.1', '10.70.0.1'));
      await put(xds, vip('other', '242.0.0.2', '10.70.0.1'));
      const envoy = inside.startEnvoy(xds.folder, 'sidecar', await xds.bootstrap('sidecar', 'web', { variant }));
      const get = async () => String(await inside.ask({ do: 'get', to: 'http://242.0.0.1/' }));
      await until('the first answer', async () => (await get()) === 'a').catch((error: Error) => {
        throw new Error(`${error.message}: ${envoy.log()}`);
      });
      await inside.ask({ do: 'repeat', to: 'http://242.0.0.1/', isKept: true });
      await pause(500);
      const ref = { namespace, name: 'web' };
      if (change === 'is deleted') {
        await xds.client.delete(meshExternalServiceType, ref);
        await until('a new connection goes to the original server', async () => (await get()) === 'original');
      } else {
        const own = { type: 'InternalVIP', value: 'web.ext', port: 80, protocol: 'http' };
        const more = { type: 'IP', value: '10.70.0.9', port: 80, protocol: 'tcp' };
        for (const match of [[more, own], [own]]) {
          const body = { spec: { match } };
          await xds.client.patch(meshExternalServiceType, ref, { kind: 'merge', body });
          await pause(1500);
        }
      }
      await pause(3000);
      const answers = (await inside.ask({ do: 'until' })) as Record<string, number>;
      expect(Object.keys(answers).filter((answer) => answer.startsWith('failed'))).toEqual([]);
      expect(answers['a']).toBeGreaterThan(100);
      expect(xds.role.service.proxies.reports().flatMap(({ refused }) => refused)).toEqual([]);
    },
    60_000,
  );
});
