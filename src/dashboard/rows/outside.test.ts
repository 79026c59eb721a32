import { beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Sessions } from '../sessions.ts';
import { createTestHome, fastWorld, joinTestHome, type TestHome } from '../testing/edge/homes.ts';
import { TestPage } from '../testing/page.ts';

const token = 'a-token-of-twenty-characters-or-more';
const wait = { timeout: 10_000, interval: 20 };
const merge = { 'content-type': 'application/merge-patch+json' };
const own = '/apis/portolan.dev/v1alpha1/namespaces/portolan-system';
const external = `${own}/meshexternalservices`;

describe('rows of what lies outside', () => {
  let east: TestHome;
  let page: TestPage;
  let sessions: Sessions;
  beforeEach(async () => {
    east = await createTestHome('east');
    await joinTestHome(east);
    const world = fastWorld([east], 10);
    sessions = new Sessions({ world, log: silentLog, homes: [east.home], codes: new Map(), isDemo: false });
    page = new TestPage();
    await sessions.open(token, [], page);
    return () => sessions.stop();
  });

  const peer = () => page.get('peers', 'east/portolan-system/acme');

  test('a peer: synced, lagging, refused services, away, its home away -> never better than it is', async () => {
    await east.api.ok(`POST ${own}/peers`, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'Peer',
      metadata: { name: 'acme', namespace: 'portolan-system' },
      spec: { trust: { domain: 'acme.example', bundleSecret: { name: 'acme' } }, retentionSeconds: 600 },
    });
    await vi.waitFor(() => expect(peer()?.health).toBe('unknown'), wait);
    const consumer = { state: 'Synced', services: 3, lag: 2, lagSeconds: 7, lastContact: '2026-01-01T00:00:05Z' };
    await setStatus({ consumer });
    const contactMs = Date.UTC(2026, 0, 1, 0, 0, 5);
    const taking = { services: 3, lag: 2, lagSeconds: 7, lastContactMs: contactMs };
    await vi.waitFor(() => expect(peer()).toMatchObject({ health: 'ok', taking }), wait);
    const reach = (status: string, reason: string) => ({
      conditions: [
        { type: 'ServicesReachable', status, reason, message: 'so', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    });
    await setStatus(reach('False', 'IngressAway'));
    const unreached = { health: 'failed', taking: { state: 'Synced', message: 'IngressAway: so' } };
    await vi.waitFor(() => expect(peer()).toMatchObject(unreached), wait);
    await setStatus(reach('Unknown', 'XdsSilent'));
    await vi.waitFor(() => expect(peer()?.health).toBe('unknown'), wait);
    await setStatus(reach('True', 'Reachable'));
    await vi.waitFor(() => expect(peer()?.health).toBe('ok'), wait);
    const refusals = [{ id: 'db', reason: 'SAN outside acme.example' }];
    const notes = [{ id: 'web', note: 'name is taken' }];
    await setStatus({ consumer: { refused: 1, refusals }, owner: { state: 'Synced', notes } });
    const sides = { taking: { refused: 1, refusals }, giving: { notes } };
    await vi.waitFor(() => expect(peer()).toMatchObject({ health: 'conflict', ...sides }), wait);
    await setStatus({ consumer: { state: 'Stale', awaySeconds: 100 } });
    await vi.waitFor(
      () => expect(peer()).toMatchObject({ health: 'stale', taking: { withdrawnInSeconds: 500 } }),
      wait,
    );
    await setStatus({ owner: { state: 'Refused' } });
    await vi.waitFor(() => expect(peer()?.health).toBe('failed'), wait);
    east.isCut = true;
    await vi.waitFor(() => expect(peer()?.health).toBe('stale'), wait);
  });

  test('a service of a peer that was changed here -> among the differences', async () => {
    await east.api.ok(`POST ${own}/peers`, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'Peer',
      metadata: { name: 'acme', namespace: 'portolan-system' },
      spec: { trust: { domain: 'acme.example', bundleSecret: { name: 'acme' } } },
    });
    await east.api.ok(`POST ${own}/peerservices`, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerService',
      metadata: { name: 'acme.db', namespace: 'portolan-system' },
      spec: { peer: 'acme', id: 'db', name: 'db', fqdn: 'db.acme.example' },
    });
    const service = { name: 'db', hostname: 'db.acme.example', state: 'Active' };
    const differences = [expect.stringMatching(/changed here.*db|db.*changed here/)];
    await vi.waitFor(() => expect(peer()).toMatchObject({ services: [service], differences }), wait);
  });

  test('an external service: unjudged, ready, overlapping, refused, its home away -> said so, with addresses, without keys', async () => {
    const key = 'east/portolan-system/rates';
    await east.api.ok(`POST ${external}`, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'MeshExternalService',
      metadata: { name: 'rates', namespace: 'portolan-system' },
      spec: {
        match: [{ type: 'InternalVIP', port: 443, protocol: 'tcp' }],
        destination: {
          type: 'Regular',
          endpoints: [{ address: '192.0.2.7', port: 8443 }],
          tls: {
            enabled: true,
            clientKey: { inline: 'c2VjcmV0' },
            clientCert: { inline: 'c2VjcmV0' },
          },
        },
      },
    });
    await vi.waitFor(() => expect(page.get('external', key)?.says).toBe('no agent has looked at it yet'), wait);
    const addresses = [
      {
        hostname: 'rates.taken',
        status: 'NotAvailable',
        origin: { kind: 'HostnameGenerator', name: 'g' },
        reason: 'in use',
      },
    ];
    await setExternal(
      { Accepted: 'True', Ready: 'True' },
      { vips: [{ ip: '242.0.0.1', hostname: 'rates.ext', type: 'Portolan' }], addresses },
    );
    await vi.waitFor(() => expect(page.get('external', key)?.health).toBe('ok'), wait);
    expect(page.get('external', key)).toMatchObject({
      matches: ['InternalVIP port 443 tcp'],
      destination: 'Regular 192.0.2.7:8443 over TLS',
      vips: [{ ip: '242.0.0.1', hostname: 'rates.ext' }],
      unavailable: [{ hostname: 'rates.taken', reason: 'in use' }],
    });
    const kept = sessions.find(token, []).landscape().homes[0]!.member!.external.values();
    expect(JSON.stringify([kept, page.messages])).not.toContain('c2VjcmV0');
    const overlaps = ['242.0.0.0/24 with other'];
    await setExternal({ Accepted: 'True', Ready: 'True' }, { overlaps });
    await vi.waitFor(() => expect(page.get('external', key)).toMatchObject({ health: 'conflict', overlaps }), wait);
    await setExternal({ Accepted: 'True', Ready: 'False' }, {});
    await vi.waitFor(
      () => expect(page.get('external', key)).toMatchObject({ health: 'failed', says: 'Judged: so' }),
      wait,
    );
    east.isCut = true;
    await vi.waitFor(() => expect(page.get('external', key)?.says).toBe('its home does not answer'), wait);
  });

  async function setStatus(status: object): Promise<void> {
    await east.api.ok(`PATCH ${own}/peers/acme/status`, { status }, merge);
  }

  async function setExternal(conditions: Record<string, string>, more: object): Promise<void> {
    const since = { reason: 'Judged', message: 'so', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const list = Object.entries(conditions).map(([type, status]) => ({ type, status, ...since }));
    await east.api.ok(`PATCH ${external}/rates/status`, { status: { conditions: list, ...more } }, merge);
  }
});
