// The Secrets that the account of an agent can reach in its own home, by the rights that joining gives it.

import { expect, test } from 'vitest';
import { homeObjects } from '../../clusterset/membership/home-objects.ts';
import { membershipSecretName } from '../../clusterset/membership/membership.ts';
import { openHome } from '../../home/security/testing/home.ts';
import type { Manifest } from '../../kube/objects/manifest.ts';

async function agentOfHome() {
  const home = await openHome();
  const pathOf = ({ type, object }: Manifest) => {
    const root = type.group === '' ? '/api/v1' : `/apis/${type.group}/${type.version}`;
    const { namespace } = object.metadata;
    return `${root}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${type.plural}`;
  };
  for (const one of homeObjects()) await home.admin(`POST ${pathOf(one)}`, one.object);
  await home.simulation.time.advance(100);
  return { ...home, agent: home.bearer(await home.token('portolan-system/portolan-agent')) };
}

test('agent: its membership and what external services name -> readable; keys of peering and all others -> 403', async () => {
  const { admin, agent } = await agentOfHome();
  const secrets = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`;
  const names = [membershipSecretName, 'portolan-peering-authority'];
  for (const name of names) await admin(`POST ${secrets('portolan-system')}`, { metadata: { name } });
  await admin(`POST ${secrets('portolan-external')}`, { metadata: { name: 'pki' } });
  const status = async (line: string, body?: object) => (await agent(line, body)).status;
  const own = `${secrets('portolan-system')}/${membershipSecretName}`;
  expect(await status(`GET ${own}`)).toBe(200);
  expect(await status(`GET ${secrets('portolan-system')}?fieldSelector=metadata.name=${membershipSecretName}`)).toBe(
    200,
  );
  expect(await status(`GET ${secrets('portolan-external')}`)).toBe(200);
  expect(await status(`POST ${secrets('portolan-external')}`, { metadata: { name: 'pki.broker' } })).toBe(201);
  expect(await status(`GET ${secrets('portolan-system')}/portolan-peering-authority`)).toBe(403);
  expect(await status(`GET ${secrets('portolan-system')}`)).toBe(403);
  expect(await status(`POST ${secrets('portolan-system')}`, { metadata: { name: 'new' } })).toBe(403);
  expect(await status(`DELETE ${own}`)).toBe(403);
  expect(await status(`GET ${secrets('default')}`)).toBe(403);
});

test('agent: marking exports while the broker is away, and Events about missing rights -> within its rights', async () => {
  const { agent } = await agentOfHome();
  const verdicts = '/api/v1/namespaces/portolan-system/configmaps';
  const exports = '/apis/multicluster.x-k8s.io/v1beta1';
  const metadata = { name: 'portolan-lease-verdicts', namespace: 'portolan-system' };
  const refused: string[] = [];
  for (const [line, body] of [
    [`POST ${verdicts}`, { metadata }],
    [`GET ${verdicts}/portolan-lease-verdicts`],
    [`PUT ${verdicts}/portolan-lease-verdicts`, { metadata, data: {} }],
    [`GET ${exports}/serviceexports?limit=500`],
    [`PUT ${exports}/namespaces/shop/serviceexports/checkout/status`, { metadata: { name: 'checkout' } }],
    ['GET /apis/coordination.k8s.io/v1/namespaces/portolan-system/leases?labelSelector=portolan.dev/part'],
    ['POST /api/v1/namespaces/portolan-system/events', { metadata: { name: 'one' } }],
    [`PATCH ${verdicts}/portolan-lease-verdicts`, {}],
  ] as const)
    if ((await agent(line, body)).status === 403) refused.push(line);
  // Which is why the note is written by PUT.
  expect(refused).toEqual([`PATCH ${verdicts}/portolan-lease-verdicts`]);
});
