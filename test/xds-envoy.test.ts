// A real Envoy against the discovery server: changes under traffic, refusals, and the way between two meshes.

import { expect, test } from 'vitest';
import { createRealWorld } from '../src/base/real/world.ts';
import { meshExternalServiceType } from '../src/external/kinds/mesh-external-service.ts';
import { pairIn } from '../src/kube/client/kept-authority.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import { type PeerService, peerServiceType } from '../src/peering/kinds/peer-service.ts';
import { authoritySecret, certificateSecret } from '../src/peering/kinds/secrets.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { MeshCertificates, ofWorkloads } from '../src/xds/sources/mesh-certificates.ts';
import { describeWith } from './support/counterparts.ts';
import { addImport, putEndpoints } from './support/xds.ts';
import { introduce, shareDatabase, startMesh } from './support/xds-meshes.ts';
import { openNamespace, pause, serve, settled, until } from './support/xds-served.ts';

describeWith(['envoy', 'ip', 'nft'], 'xds: a real Envoy', () => {
  test.each(['delta', 'sotw'] as const)(
    '%s: endpoints change and the server restarts -> not one request fails; nothing is sent again',
    async (variant) => {
      const inside = openNamespace();
      const xds = await serve(inside, 'east');
      for (const [index, name] of ['a', 'b', 'c'].entries())
        await inside.ask({ do: 'serve', name, address: `10.70.0.${index + 1}`, port: 8080 });
      const checkout = { name: 'checkout' };
      await addImport(xds.client, { ...checkout, ips: ['241.0.0.7'], port: 80 });
      const put = (...addresses: string[]) => putEndpoints(xds.client, checkout, 'east', { port: 8080, addresses });
      await put('10.70.0.1');
      const bootstrap = await xds.bootstrap('sidecar', 'web', { variant, isClustersetProxied: true });
      const envoy = inside.startEnvoy(xds.folder, 'sidecar', bootstrap);
      await settled(xds, 'sidecar~east~web', 2);
      expect(await inside.ask({ do: 'get', to: 'http://241.0.0.7/' }), envoy.log()).toBe('a');
      await inside.ask({ do: 'repeat', to: 'http://241.0.0.7/' });
      const isAnsweredBy = (name: string) =>
        until(`${name} answers`, async () =>
          (await inside.ask({ do: 'get', to: 'http://241.0.0.7/' })) === name ? true : undefined,
        );
      const steps = [
        () => put('10.70.0.1', '10.70.0.2').then(() => isAnsweredBy('b')),
        () => put('10.70.0.2', '10.70.0.3').then(() => isAnsweredBy('c')),
        // Other services come and go meanwhile.
        () => addImport(xds.client, { name: 'other', ips: ['241.0.0.8'], port: 80 }),
        () => xds.restart(),
        () => put('10.70.0.3'),
      ];
      for (const step of steps) {
        await step();
        await pause(300);
      }
      await settled(xds, 'sidecar~east~web', 3);
      const answers = (await inside.ask({ do: 'until' })) as Record<string, number>;
      expect(Object.keys(answers).sort(), envoy.log()).toEqual(['a', 'b', 'c']);
      // After the restart only what changed since: one assignment, with no cluster and no listener.
      expect(await xds.metrics.text()).not.toMatch(/responses_total\{type="(cluster|listener)"\} [1-9]/);
      expect(await inside.ask({ do: 'get', to: 'http://241.0.0.9/' })).toContain('failed');
    },
  );

  test('a resource that Envoy refuses -> held at the last good one, the others go on and change', async () => {
    const inside = openNamespace();
    const xds = await serve(inside, 'east');
    await inside.ask({ do: 'serve', name: 'a', address: '10.70.0.1', port: 8080 });
    await inside.ask({ do: 'serve', name: 'b', address: '10.70.0.2', port: 8080 });
    for (const [name, ip] of [
      ['one', '241.0.0.1'],
      ['two', '241.0.0.2'],
    ] as const) {
      await addImport(xds.client, { name, ips: [ip], port: 80 });
      await putEndpoints(xds.client, { name }, 'east', { port: 8080, addresses: ['10.70.0.1'] });
    }
    inside.startEnvoy(xds.folder, 'sidecar', await xds.bootstrap('sidecar', 'web', { isClustersetProxied: true }));
    await settled(xds, 'sidecar~east~web', 3);
    const { views, proxies } = xds.role.service;
    await xds.client.create(meshExternalServiceType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'MeshExternalService',
      metadata: { name: 'outside', namespace },
      spec: {
        match: [{ type: 'IP', value: '10.70.9.9', port: 80, protocol: 'http' }],
        destination: { type: 'Regular', endpoints: [{ address: '10.70.0.1', port: 8080 }] },
      },
    });
    await until('the external service arrives', () => (proxies.reports()[0]!.holds.route > 0 ? true : undefined));
    expect(proxies.reports()[0]!.refused).toEqual([]);
    const good = views.clusterset.get('cluster', 'one.shop.svc.clusterset.local:80')!;
    // A constraint of Envoy's own that our generators never break.
    const body = { name: good.name, type: 'EDS', connect_timeout: '5s', lb_policy: 'CLUSTER_PROVIDED' };
    views.clusterset.replace('shop/one', [{ type: 'cluster', name: good.name, body, causes: good.causes }]);
    const [refused] = await until('a refusal', () => {
      const list = proxies.reports()[0]!.refused;
      return list.length > 0 ? list : undefined;
    });
    expect(refused).toMatchObject({ type: 'cluster', name: good.name, isHeldAtLastGood: true });
    expect(await inside.ask({ do: 'get', to: 'http://241.0.0.1/' })).toBe('a');
    await putEndpoints(xds.client, { name: 'two' }, 'east', { port: 8080, addresses: ['10.70.0.2'] });
    await until('the other service changes', async () =>
      (await inside.ask({ do: 'get', to: 'http://241.0.0.2/' })) === 'b' ? true : undefined,
    );
    // Envoy would keep the good one anyway; it must not be asked to refuse the bad one again and again.
    expect(await xds.metrics.text()).toContain('portolan_xds_refusals_total{type="cluster"} 1\n');
  });

  test('app -> consumer’s Envoy -> owner’s ingress -> backend; wrong SAN, unknown SNI, no certificate -> refused [000-51] [000-52]', async () => {
    const inside = openNamespace();
    const owner = await startMesh('acme', [{ address: '10.70.1.1', port: 15_443 }]);
    const consumer = await startMesh('globex', []);
    await introduce(owner, consumer);
    await shareDatabase(owner, 'terminate');
    await inside.ask({ do: 'serve', name: 'database', address: '10.70.2.1', port: 5432 });
    const ownerXds = await serve(inside, 'east', owner.client);
    const consumerXds = await serve(inside, 'west', consumer.client);
    const ingress = inside.startEnvoy(ownerXds.folder, 'ingress', await ownerXds.bootstrap('ingress', 'gate'));
    const sidecar = inside.startEnvoy(consumerXds.folder, 'sidecar', await consumerXds.bootstrap('sidecar', 'web'));
    const service = await until('the service is shared', async () => {
      const { items } = await consumer.client.list<PeerService>(peerServiceType, { namespace });
      return items.find(({ status }) => status?.ips?.length);
    });
    await settled(ownerXds, 'ingress~east~gate', 1);
    await settled(consumerXds, 'sidecar~west~web', 2);
    const url = `http://${service.status!.ips![0]}:15443/`;
    const answer = await until('the way is open', async () => {
      const text = (await inside.ask({ do: 'get', to: url })) as string;
      return text.startsWith('failed') ? undefined : text;
    }).catch((error) => `${error}\n${ingress.log()}\n${sidecar.log()}`);
    expect(answer).toBe('database');

    const secret = await consumer.client.get<Secret>(secretType, { namespace, name: certificateSecret });
    const text = (key: string) => Buffer.from(secret.data![key]!, 'base64').toString();
    const own = { certificate: text('tls.crt'), key: text('tls.key') };
    const gate = { do: 'tls', address: '10.70.1.1', port: 15_443, sni: 'db.shop.acme.example' } as const;
    expect(await inside.ask({ ...gate, ...own })).toContain('database');
    expect(await inside.ask({ ...gate, ...own, sni: 'other.shop.acme.example' })).toMatch(/^refused/);
    expect(await inside.ask(gate)).toMatch(/^refused/);
    // The certificate of its own mesh is not trusted here.
    const foreign = await owner.client.get<Secret>(secretType, { namespace, name: certificateSecret });
    const foreignText = (key: string) => Buffer.from(foreign.data![key]!, 'base64').toString();
    const stranger = { certificate: foreignText('tls.crt'), key: foreignText('tls.key') };
    expect(await inside.ask({ ...gate, ...stranger })).toMatch(/^refused/);

    // The consumer expects another workload than the one that answers.
    await consumer.role.stop();
    const present = await consumer.client.get<PeerService>(peerServiceType, service.metadata as { name: string });
    const sans = ['spiffe://acme.example/ns/shop/sa/other'];
    await consumer.client.update(peerServiceType, { ...present, spec: { ...present.spec, sans } });
    const failure = await until('the wrong SAN is refused', async () => {
      const reply = (await inside.ask({ do: 'get', to: url })) as string;
      return reply.startsWith('failed') ? reply : undefined;
    });
    expect(failure).toMatch(/^failed/);
  });
});

describeWith(['envoy', 'ip', 'nft'], 'xds: an ingress that passes TLS on', () => {
  test('tls: passthrough -> the workload itself ends the mutual TLS and sees the consumer', async () => {
    const inside = openNamespace();
    const owner = await startMesh('acme', [{ address: '10.70.1.1', port: 15_443 }]);
    const consumer = await startMesh('globex', []);
    await introduce(owner, consumer);
    await shareDatabase(owner, 'passthrough');
    const authority = await owner.client.get<Secret>(secretType, { namespace, name: authoritySecret });
    const certificates = new MeshCertificates(createRealWorld(), ofWorkloads);
    const pair = certificates.of('spiffe://acme.example/ns/shop/sa/default', pairIn(authority)!);
    await inside.ask({ do: 'serveTls', name: 'database', address: '10.70.2.1', port: 5432, ...pair });
    const ownerXds = await serve(inside, 'east', owner.client);
    const consumerXds = await serve(inside, 'west', consumer.client);
    inside.startEnvoy(ownerXds.folder, 'ingress', await ownerXds.bootstrap('ingress', 'gate'));
    inside.startEnvoy(consumerXds.folder, 'sidecar', await consumerXds.bootstrap('sidecar', 'web'));
    const service = await until('the service is shared', async () => {
      const { items } = await consumer.client.list<PeerService>(peerServiceType, { namespace });
      return items.find(({ status }) => status?.ips?.length);
    });
    const answer = await until('the way is open', async () => {
      const text = (await inside.ask({ do: 'get', to: `http://${service.status!.ips![0]}:15443/` })) as string;
      return text.startsWith('failed') ? undefined : text;
    });
    expect(answer).toContain('database for URI:spiffe://globex.example/portolan/proxy/sidecar/web');
  });
});
