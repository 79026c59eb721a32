import { expect, test, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { openHome } from '../../home/security/testing/home.ts';
import { createClient } from '../../kube/client/client.ts';
import { ClientPods } from './client-pods.ts';

const pod = (name: string, { ip = '10.1.0.2', node = 'n1', phase = 'Running', ...spec }: Record<string, unknown>) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name } },
  spec: { nodeName: node, containers: [{ name: 'c', image: 'i' }], ...spec },
  status: { phase, podIP: ip, podIPs: [{ ip }, { ip: 'fd00:0:0::2' }] },
});

test('client pods: addresses of the Pods of a node -> their names; of ended ones, of other nodes and of the node itself -> none', async () => {
  const home = await openHome();
  const identity = { clientCertificate: { commonName: 'admin', organizations: ['system:masters'] } };
  const world = home.simulation.world('proxy');
  const client = createClient(
    { send: (request) => home.handle({ ...request, ...identity }), close: () => {} },
    { world, userAgent: 'test' },
  );
  await home.given({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  for (const one of [
    pod('web-1', {}),
    pod('old', { ip: '10.1.0.3', phase: 'Succeeded' }),
    pod('far', { ip: '10.1.0.4', node: 'n2' }),
    pod('agent', { ip: '10.1.0.5', hostNetwork: true }),
  ]) {
    await home.given(one);
    expect((await home.admin(`PUT /api/v1/namespaces/shop/pods/${one.metadata.name}/status`, one)).status).toBe(200);
  }
  const [own, all] = [{ node: 'n1' }, {}].map((where) => new ClientPods({ client, world, log: silentLog, ...where }));
  own!.start();
  all!.start();
  await home.simulation.time.advance(1000);
  await vi.waitFor(() => expect(own!.at('10.1.0.2')).toBe('shop/web-1'));
  const names = (pods: ClientPods) => ['10.1.0.3', '10.1.0.4', '10.1.0.5', '10.9.9.9'].map((ip) => pods.at(ip));
  expect(names(own!)).toEqual([undefined, undefined, undefined, undefined]);
  await vi.waitFor(() => expect(names(all!)).toEqual([undefined, 'shop/far', undefined, undefined]));
  expect(all!.at('fd00::2'), 'several say that it is theirs').toBeUndefined();
  own!.stop();
  all!.stop();
});
