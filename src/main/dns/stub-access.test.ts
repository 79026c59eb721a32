// The endpoint for stub zones and the authority of a federation know each other by certificates that nobody made by hand.

import { afterEach, expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { World } from '../../base/world.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import { resolverAuthorityName, resolverAuthoritySecret } from '../../clusterset/membership/resolver-authority.ts';
import { dnsOptionsManifest, dnsOptionsOf } from '../../clusterset/rules/clusterset-dns.ts';
import type { StubCertificates } from '../../dns/config/config.ts';
import { listenFederations } from '../../dns/sockets/server-federations.ts';
import { Federations } from '../../dns/stub-zones/federations.ts';
import { openFederationIdentity } from '../../federation/stub-zones/identity.ts';
import { install } from '../../kube/client/apply.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import { dayMs, openKeptAuthority, readKeptAuthority } from '../../kube/client/kept-authority.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { memoryHome } from '../../peering/testing/edge/memory-home.ts';
import { openStubAccess } from './stub-access.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** As joining does it. */
async function join(home: Client, world: Pick<World, 'clock' | 'random'>): Promise<void> {
  const named = { name: resolverAuthoritySecret, commonName: resolverAuthorityName };
  await openKeptAuthority({ ...named, world, client: home, namespace: systemNamespace });
}

/** As the agent does it. */
async function publish(home: Client, authorities: Record<string, string>): Promise<void> {
  const ranges = { clusterSet: [], peers: [], external: [] };
  const addressPlan = { federationZones: [], authorities, ranges };
  await install(home, dnsOptionsManifest(dnsOptionsOf(undefined), { addressPlan }));
}

test('stub zones: the federation is published at home -> it posts its own zone and no other; others do not', async () => {
  const home = await memoryHome();
  stops.push(() => home.stop());
  const world = createRealWorld();
  await join(home.client, world);
  const access = await openStubAccess({ world, log: silentLog, home: home.client, hosts: ['127.0.0.1'] });
  stops.push(() => access.stop());
  const store = { read: async () => undefined, write: async () => {} };
  const federations = new Federations({
    ...{ store, path: 'stub-zones.json', log: silentLog, onChange: () => {} },
    ...{ allowed: access.allowed, mayPost: access.mayPost },
  });
  const endpoint = await listenFederations({ ...access, federations, host: '127.0.0.1', port: 0 });
  stops.push(() => endpoint.close());
  const at = { world, broker: home.client, clusterset: systemNamespace };
  const [worldwide, other] = await Promise.all([
    openFederationIdentity({ ...at, federation: 'world' }),
    openFederationIdentity({ ...at, federation: 'other' }),
  ]);
  const authority = await readKeptAuthority({
    ...{ client: home.client, namespace: systemNamespace, name: resolverAuthoritySecret },
  });

  const post = async (federation: string, identity: typeof worldwide) => {
    const { certificate, key } = identity.current();
    const transport = world.network.http({
      server: `https://127.0.0.1:${endpoint.port}`,
      ...{ certificateAuthority: authority!.certificate, clientCertificate: certificate, clientKey: key },
    });
    const path = `/federations/${federation}`;
    const body = Buffer.from('{"nameservers": ["10.0.0.1"]}');
    return transport.send({ method: 'POST', path, headers: {}, body }).then(
      ({ status }) => status,
      (error: Error) => error.message,
    );
  };

  expect(await post('world', worldwide)).toBe(401);
  // One that cannot be read takes nothing away from the others.
  const broken = Buffer.from('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n').toString('base64');
  await publish(home.client, { broken, world: worldwide.caBundle });
  await expect.poll(() => post('world', worldwide)).toBe(200);
  expect(await post('other', worldwide)).toBe(403);
  expect(await post('other', other)).toBe(401);
  expect(federations.zones().map(({ zone }) => zone)).toEqual(['world.svc.federation']);
  await publish(home.client, {});
  await expect.poll(() => post('world', worldwide)).toBe(401);
});

test('stub zones: weeks pass -> both sides renew their certificates, from the authorities that they had', async () => {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('resolver');
  const virtual = await startHome(simulation);
  const home = createClient({ send: virtual.api.handle, close: () => {} }, { world, userAgent: 'test' });
  await join(home, world);
  const access = await openStubAccess({ world, log: silentLog, home, hosts: ['10.0.0.7'] });
  stops.push(() => access.stop());
  const federation = await openFederationIdentity({ world, broker: home, clusterset: 'default', federation: 'world' });
  let shown: StubCertificates = access;
  access.onRenewed((next) => (shown = next));
  const firstPoster = federation.current();
  for (let days = 1; days <= 60; days += 1) {
    await simulation.time.advance(dayMs);
    const nowMs = world.clock.wallMs();
    for (const { certificate } of [shown, federation.current()])
      expect(certificateFacts(certificate).notAfterMs - nowMs).toBeGreaterThan(9 * dayMs);
  }
  expect(shown.certificate).not.toBe(access.certificate);
  expect(shown.clientAuthority).toBe(access.clientAuthority);
  expect(federation.current().certificate).not.toBe(firstPoster.certificate);
});

test('stub zones: the home is away at the start -> the endpoint opens all the same, and is known when the home answers', async () => {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('resolver');
  const virtual = await startHome(simulation);
  let isAway = true;
  const send: typeof virtual.api.handle = (request) =>
    isAway ? Promise.reject(new Error('away')) : virtual.api.handle(request);
  const home = createClient({ send, close: () => {} }, { world, userAgent: 'test' });
  const access = await openStubAccess({ world, log: silentLog, home, hosts: ['10.0.0.7'] });
  stops.push(() => access.stop());
  expect(access.caBundle()).toBe('');
  isAway = false;
  await join(home, world);
  await simulation.time.advance(20_000);
  const kept = await readKeptAuthority({ client: home, namespace: systemNamespace, name: resolverAuthoritySecret });
  expect(Buffer.from(access.caBundle(), 'base64').toString('utf8')).toBe(kept!.certificate);
});

test('stub zones: the cluster has not joined -> nothing is written; it joins -> the endpoint is known', async () => {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('resolver');
  const virtual = await startHome(simulation);
  const methods = new Set<string>();
  const send: typeof virtual.api.handle = (request) => {
    methods.add(request.method);
    return virtual.api.handle(request);
  };
  const home = createClient({ send, close: () => {} }, { world, userAgent: 'test' });
  const access = await openStubAccess({ world, log: silentLog, home, hosts: ['10.0.0.7'] });
  stops.push(() => access.stop());
  await simulation.time.advance(20_000);
  expect([access.caBundle(), [...methods]]).toEqual(['', ['GET']]);
  await join(home, world);
  await simulation.time.advance(20_000);
  expect(access.caBundle()).not.toBe('');
});
