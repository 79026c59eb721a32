import { beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Sessions } from '../sessions.ts';
import { createTestHome, exportIn, fastWorld, joinTestHome, type TestHome } from '../testing/edge/homes.ts';
import { TestPage } from '../testing/page.ts';
import { serviceView } from './service.ts';

const token = 'a-token-of-twenty-characters-or-more';
const wait = { timeout: 10_000, interval: 20 };
const merge = { 'content-type': 'application/merge-patch+json' };
const imports = '/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceimports';

describe('page of a service', () => {
  let east: TestHome;
  let sessions: Sessions;
  beforeEach(async () => {
    east = await createTestHome('east');
    await joinTestHome(east);
    await exportIn(east, 'cart');
    const world = fastWorld([east], 10);
    sessions = new Sessions({ world, log: silentLog, homes: [east.home], codes: new Map(), isDemo: false });
    return () => sessions.stop();
  });

  async function inEast() {
    if (sessions.size === 0) await sessions.open(token, [], new TestPage());
    return serviceView(sessions.find(token, []).landscape(), 'shop/cart').clusters[0]!;
  }

  test('endpoints: ready, not ready, leaving, of another cluster -> health, zone, where it runs, and since when', async () => {
    await addSlice('own', {
      labels: { 'kubernetes.io/service-name': 'cart' },
      endpoints: [
        { addresses: ['10.0.0.1'], zone: 'east-a', conditions: { ready: true } },
        { addresses: ['10.0.0.2'], conditions: { ready: false } },
        { addresses: ['10.0.0.3'], conditions: { ready: true, terminating: true } },
      ],
    });
    await addSlice('imported', {
      labels: {
        'multicluster.kubernetes.io/service-name': 'cart',
        'multicluster.kubernetes.io/source-cluster': 'west',
      },
      endpoints: [{ addresses: ['10.1.0.1'] }],
    });
    await vi.waitFor(async () => expect((await inEast()).endpointCount).toBe(4), wait);
    const { endpoints } = await inEast();
    const byAddress = endpoints.toSorted((a, b) => (a.address < b.address ? -1 : 1));
    expect(
      byAddress.map(({ address, port, cluster, health, says, zone }) => [address, port, cluster, health, says, zone]),
    ).toEqual([
      ['10.0.0.1', '8080', 'east', 'ok', 'ready', 'east-a'],
      ['10.0.0.2', '8080', 'east', 'failed', 'not ready', ''],
      ['10.0.0.3', '8080', 'east', 'failed', 'leaving', ''],
      ['10.1.0.1', '8080', 'west', 'ok', 'ready', ''],
    ]);
    expect(new Set(endpoints.map(({ sinceMs }) => sinceMs))).toEqual(new Set([Date.UTC(2026, 0, 1)]));
  });

  test('traffic: not imported, unjudged, refused, carried, the home away -> said as that, and never ok without a proof', async () => {
    const traffic = async () => (await inEast()).traffic;
    await vi.waitFor(
      async () => expect(await traffic()).toEqual({ health: 'unknown', says: 'not imported here' }),
      wait,
    );
    await east.api.ok(`POST ${imports}`, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata: { name: 'cart', namespace: 'shop' },
      spec: { type: 'ClusterSetIP', ports: [{ name: 'http', port: 8080, protocol: 'TCP' }], ips: ['243.0.0.1'] },
    });
    await vi.waitFor(
      async () => expect(await traffic()).toEqual({ health: 'unknown', says: 'no agent has written it yet' }),
      wait,
    );
    await setReady('False', 'no proxy on this node reports');
    await vi.waitFor(
      async () => expect(await traffic()).toEqual({ health: 'failed', says: 'no proxy on this node reports' }),
      wait,
    );
    await setReady('True', 'carried by 1 proxy');
    await vi.waitFor(async () => expect(await traffic()).toEqual({ health: 'ok', says: 'carried by 1 proxy' }), wait);
    east.isCut = true;
    await vi.waitFor(
      async () => expect(await traffic()).toEqual({ health: 'unknown', says: 'its home does not answer' }),
      wait,
    );
    expect((await inEast()).isCurrent).toBe(false);
  });

  test('endpoints: its own, and the same again as its import has them -> each once', async () => {
    const endpoints = [{ addresses: ['10.0.0.1'], conditions: { ready: true } }];
    const imported = {
      'multicluster.kubernetes.io/service-name': 'cart',
      'multicluster.kubernetes.io/source-cluster': 'east',
    };
    await addSlice('again', { labels: imported, endpoints });
    await vi.waitFor(async () => expect((await inEast()).endpointCount).toBe(1), wait);
    await addSlice('own', { labels: { 'kubernetes.io/service-name': 'cart' }, endpoints });
    await addSlice('other', {
      labels: { 'kubernetes.io/service-name': 'cart' },
      endpoints: [{ addresses: ['10.0.0.2'] }],
    });
    await vi.waitFor(
      async () =>
        expect((await inEast()).endpoints.map(({ address }) => address).sort()).toEqual(['10.0.0.1', '10.0.0.2']),
      wait,
    );
  });

  test('more endpoints than are shown -> the first 200, and how many there are', async () => {
    const endpoints = Array.from({ length: 90 }, (_, n) => ({ addresses: [`10.0.1.${n}`] }));
    for (const name of ['a', 'b', 'c'])
      await addSlice(name, { labels: { 'kubernetes.io/service-name': 'cart' }, endpoints });
    await vi.waitFor(async () => expect((await inEast()).endpointCount).toBe(270), wait);
    expect((await inEast()).endpoints).toHaveLength(200);
  });

  async function addSlice(name: string, { labels, endpoints }: { labels: object; endpoints: object[] }): Promise<void> {
    await east.api.ok('POST /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices', {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace: 'shop', labels },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints,
    });
  }

  async function setReady(status: string, message: string): Promise<void> {
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const conditions = [{ type: 'Ready', status, reason: 'Judged', message, lastTransitionTime }];
    await east.api.ok(`PATCH ${imports}/cart/status`, { status: { conditions } }, merge);
  }
});
