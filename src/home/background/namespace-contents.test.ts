import { describe, expect, test } from 'vitest';
import { openHome } from '../security/testing/home.ts';

class Authority {
  text = 'first';
  readonly #listeners = new Set<() => void>();
  certificates = () => this.text;
  warning = () => undefined;
  onChanged = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  change(text: string): void {
    this.text = text;
    for (const listener of this.#listeners) listener();
  }
}

async function open() {
  const authority = new Authority();
  const home = await openHome({ authority });
  const settled = async () => {
    await home.simulation.time.drain();
    await home.api.whenIdle();
  };
  await settled();
  const certificates = async (namespace: string) =>
    (await home.admin(`GET /api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`)).body.data;
  const hasAccount = async (namespace: string) =>
    (await home.admin(`GET /api/v1/namespaces/${namespace}/serviceaccounts/default`)).status === 200;
  return { ...home, authority, settled, certificates, hasAccount };
}

const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const merge = { 'content-type': 'application/merge-patch+json' };

describe('namespace contents', () => {
  test('every namespace, those of the first start too -> has an account default and the certificates', async () => {
    const home = await open();
    await home.given(namespace('team'));
    await home.settled();
    for (const name of ['default', 'kube-system', 'portolan-system', 'portolan-external', 'team'])
      expect([name, await home.hasAccount(name), await home.certificates(name)]).toEqual([
        name,
        true,
        { 'ca.crt': 'first' },
      ]);
  });

  test('deleted or changed by somebody -> both are as they were', async () => {
    const home = await open();
    await home.admin('DELETE /api/v1/namespaces/default/serviceaccounts/default');
    await home.admin('DELETE /api/v1/namespaces/default/configmaps/kube-root-ca.crt');
    await home.settled();
    expect([await home.hasAccount('default'), await home.certificates('default')]).toEqual([
      true,
      { 'ca.crt': 'first' },
    ]);
    const path = '/api/v1/namespaces/default/configmaps/kube-root-ca.crt';
    await home.admin(`PATCH ${path}`, { data: { 'ca.crt': 'mine', more: 'x' } }, merge);
    await home.settled();
    expect(await home.certificates('default')).toEqual({ 'ca.crt': 'first' });
  });

  test('the authority is rotated -> the certificates follow in all namespaces, nothing else is written', async () => {
    const home = await open();
    await home.given(namespace('team'));
    await home.settled();
    const before = home.store.revision();
    home.authority.change('first\nsecond');
    await home.settled();
    for (const name of ['default', 'team'])
      expect(await home.certificates(name)).toEqual({ 'ca.crt': 'first\nsecond' });
    expect(home.store.revision() - before).toBe(5);
  });

  test('a quota of none -> both are there and counted; the namespace is deleted -> all of it goes', async () => {
    const home = await open();
    await home.given(namespace('team'));
    await home.settled();
    const hard = { 'count/configmaps': '0', 'count/serviceaccounts': '0' };
    await home.admin('POST /api/v1/namespaces/team/resourcequotas', { metadata: { name: 'none' }, spec: { hard } });
    await home.admin('DELETE /api/v1/namespaces/team/configmaps/kube-root-ca.crt');
    await home.settled();
    expect(await home.certificates('team')).toEqual({ 'ca.crt': 'first' });
    const { body } = await home.admin('GET /api/v1/namespaces/team/resourcequotas/none');
    expect(body.status.used).toEqual({ 'count/configmaps': '1', 'count/serviceaccounts': '1' });
    await home.admin('DELETE /api/v1/namespaces/team');
    await home.settled();
    expect((await home.admin('GET /api/v1/namespaces/team')).status).toBe(404);
    const left = await home.store.range({ prefix: '/registry/' });
    expect(left.entries.map(({ key }) => key).filter((key) => key.includes('/team'))).toEqual([]);
  });
});

describe('the Service of the API server', () => {
  const own = { address: '192.0.2.7', port: 6443, clusterIp: '10.96.0.1' };
  const servicePath = '/api/v1/namespaces/default/services/kubernetes';
  const slicePath = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';

  test('announced -> Service and slice lead to it; deleted -> they come back; another port -> they follow', async () => {
    const home = await open();
    await home.api.announce(own);
    const shown = async () => {
      const { spec } = (await home.admin(`GET ${servicePath}`)).body;
      const { endpoints, ports } = (await home.admin(`GET ${slicePath}`)).body;
      return [spec.clusterIP, spec.ports[0].targetPort, endpoints[0].addresses[0], ports[0].port];
    };
    expect(await shown()).toEqual(['10.96.0.1', 6443, '192.0.2.7', 6443]);
    await home.admin(`DELETE ${servicePath}`);
    await home.admin(`DELETE ${slicePath}`);
    await home.settled();
    expect(await shown()).toEqual(['10.96.0.1', 6443, '192.0.2.7', 6443]);
    const before = home.store.revision();
    await home.api.announce(own);
    expect(home.store.revision()).toBe(before);
    await home.api.announce({ ...own, port: 7443 });
    expect(await shown()).toEqual(['10.96.0.1', 7443, '192.0.2.7', 7443]);
  });

  test('its address is held by another Service -> another address', async () => {
    const home = await open();
    const spec = { clusterIP: '10.96.0.1', ports: [{ port: 80 }] };
    await home.admin('POST /api/v1/namespaces/default/services', { metadata: { name: 'web' }, spec });
    await home.api.announce(own);
    const { status, body } = await home.admin(`GET ${servicePath}`);
    expect([status, body.spec.clusterIP === '10.96.0.1', body.spec.clusterIP]).toEqual([
      200,
      false,
      expect.stringMatching(/^10\.96\./),
    ]);
  });
});
