// The Secrets that the accounts of peering and of the discovery server can reach, by the rights that an installation gives
// them.

import { expect, test } from 'vitest';
import { openHome } from '../home/security/testing/home.ts';
import { objectsOf } from '../install/objects.ts';
import { defaultValues } from '../install/values.ts';
import type { Manifest } from '../kube/objects/manifest.ts';
import { externalNamespace, peeringNamespace, systemNamespace, xdsNamespace } from '../kube/objects/ours.ts';

const pathOf = ({ type, object }: Manifest) => {
  const root = type.group === '' ? '/api/v1' : `/apis/${type.group}/${type.version}`;
  const { namespace } = object.metadata;
  return `${root}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${type.plural}`;
};
const enabled = ['peering', 'xds', 'ingress', 'envoy'] as const;
const parts = Object.fromEntries(enabled.map((name) => [name, { ...defaultValues[name], enabled: true }]));
const objects = objectsOf({ ...defaultValues, ...parts, rightsOnly: true });

async function accountsOfHome() {
  const home = await openHome();
  for (const one of objects) await home.admin(`POST ${pathOf(one)}`, one.object);
  await home.simulation.time.advance(100);
  const of = async (part: string) => home.bearer(await home.token(`${systemNamespace}/portolan-${part}`));
  return { ...home, peering: await of('peering'), xds: await of('xds') };
}

const secrets = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`;
const stolen = {
  metadata: { name: 'stolen', annotations: { 'kubernetes.io/service-account.name': 'portolan-agent' } },
  type: 'kubernetes.io/service-account-token',
};

test.each(['peering', 'xds'] as const)(
  'secrets: %s in the system namespace -> its own of earlier versions and no other; it can make none, nor get an account by one',
  async (part) => {
    const home = await accountsOfHome();
    const own = { peering: ['portolan-peering-authority', 'portolan-peering-tls'], xds: ['portolan-xds-authority'] };
    const all = [...own.peering, ...own.xds, 'portolan-broker'];
    for (const name of all) await home.admin(`POST ${secrets(systemNamespace)}`, { metadata: { name } });
    const status = async (line: string, body?: object) => (await home[part](line, body)).status;
    const readable = [];
    for (const name of all) if ((await status(`GET ${secrets(systemNamespace)}/${name}`)) === 200) readable.push(name);
    expect(readable).toEqual(own[part]);
    expect(await status(`GET ${secrets(systemNamespace)}`)).toBe(403);
    expect(await status(`POST ${secrets(systemNamespace)}`, stolen)).toBe(403);
    expect(await status(`DELETE ${secrets(systemNamespace)}/${own[part][0]}`)).toBe(403);
    const elsewhere = { peering: peeringNamespace, xds: xdsNamespace }[part];
    expect(await status(`POST ${secrets(elsewhere)}`, { metadata: { name: 'kept' } })).toBe(201);
    expect(await status(`GET ${secrets(elsewhere)}/kept`)).toBe(200);
  },
);

test('secrets: the authority of xds -> readable by xds alone; no account lies where Secrets can be made', async () => {
  const { admin, peering, xds } = await accountsOfHome();
  await admin(`POST ${secrets(xdsNamespace)}`, { metadata: { name: 'portolan-xds-authority' } });
  const get = `GET ${secrets(xdsNamespace)}/portolan-xds-authority`;
  expect([(await xds(get)).status, (await peering(get)).status]).toEqual([200, 403]);
  expect((await xds(`POST ${secrets(peeringNamespace)}`, stolen)).status).toBe(403);
  const accounts = objects.filter(({ type }) => type.kind === 'ServiceAccount').map(({ object }) => object.metadata);
  const apart = [externalNamespace, peeringNamespace, xdsNamespace];
  expect(accounts.filter(({ namespace }) => apart.includes(namespace ?? ''))).toEqual([]);
});
