// Homes of other implementations: null for empty lists, conflicts, one home that is a member and the broker.

import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../src/base/http.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { planLegacyImport } from '../../src/clusterset/rules/legacy-import.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, legacyNamespace, memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { type Fault, withFaults } from '../faults.ts';
import { eventLines, exportLine, find, importLine, sliceLines } from '../look.ts';
import { exportService, service, serviceExport, slice } from '../manifests.ts';
import type { HttpHandler } from '../virtual-network.ts';

const key = 'shop/checkout';

/** As a home written in Go answers: an empty list is null. */
function sayingNull(handler: HttpHandler): HttpHandler {
  const lists = /"(endpoints|ports|addresses|conditions|clusters|clusterIPs|ips)":\[\]/g;
  const said = (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString('utf8').replace(lists, '"$1":null'));
  async function* stream(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) yield said(chunk);
  }
  return async (request) => {
    const response: HttpResponse = await handler(request);
    return { ...response, body: response.body instanceof Uint8Array ? said(response.body) : stream(response.body) };
  };
}

describe('foreign homes', () => {
  test('foreign homes: empty slices with null lists everywhere -> published once, written never again, and commands work', async () => {
    const writes: string[] = [];
    const set = await new SimClusterSet({
      clusters: ['east', 'west'],
      wrap: (_home, handler) => sayingNull(handler),
      onRequest: (home, user, { verb, resource }) => {
        if (/^endpoints(lices|hards)$/.test(resource) && verb !== 'get' && user.startsWith('agent'))
          writes.push(`${user} ${verb} at ${home}`);
      },
    }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    await east.create(serviceType, service(key));
    await east.create(endpointSliceType, { ...slice(key, { endpoints: [], ports: [] }) });
    await east.create(serviceExportType, serviceExport(key));
    await set.time.advance(10_000);
    expect(await sliceLines(set.home('west').admin, key)).toEqual(['east:  on ']);
    const isWrite = (line: string) => / (create|update|patch) /.test(line);
    expect(writes.filter(isWrite).filter((line) => line.startsWith('agent-east'))).toEqual([
      'agent-east create at broker',
      'agent-east create at east',
    ]);
    const before = writes.filter(isWrite).length;
    await set.time.advance(600_000);
    expect(writes.filter(isWrite)).toHaveLength(before);
    const desk = await openDesk(set, 'east');
    expect((await set.time.settle(typeAt(desk, `unexport ${key}`))).join()).toContain(key);
  });

  test.each([
    [409, 'changed'],
    [404, 'was deleted'],
  ])(
    'foreign homes: %d at the broker, because a record just %s -> written again, and no Event says Failed',
    async (code) => {
      const faults: Fault[] = [];
      const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap: withFaults(faults) }).start({
        namespaces: ['shop'],
      });
      const east = set.home('east').admin;
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      await set.time.advance(4_000);
      faults.push({ home: 'broker', method: 'PUT', path: '/endpointshards/', code, from: 'agent-east', times: 3 });
      const body = { endpoints: [{ addresses: ['10.1.0.9'] }] };
      await east.patch(endpointSliceType, { namespace: 'shop', name: 'checkout-a' }, { kind: 'merge', body });
      await set.time.advance(10_000);
      expect(await sliceLines(set.home('west').admin, key)).toEqual(['east: 10.1.0.9 on http>8080']);
      expect(await exportLine(east, key)).toContain('Ready=True/Exported');
      expect(faults[0]?.times).toBe(0);
      expect(await eventLines(east, key)).not.toContain('Warning Failed');
    },
  );

  test('foreign homes: the broker is a member too -> views and imports side by side, and nobody removes what another writes', async () => {
    const removed: string[] = [];
    const set = await new SimClusterSet({
      clusters: ['east'],
      onRequest: (home, user, { verb, resource, name }) => {
        if (verb === 'delete' && resource === 'serviceimports') removed.push(`${user}: ${name} at ${home}`);
      },
    }).start({ namespaces: ['shop'] });
    await createNamespace(set.broker, 'shop');
    await set.join('broker');
    set.startAgent('broker');
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(60_000);
    const { admin } = set.broker;
    expect(await importLine(admin, key)).toBe('ClusterSetIP http:80/TCP from east');
    const view = await find<ServiceImport>(admin, serviceImportType, `${setName}/checkout.shop`);
    expect(view?.spec.ips).toBeUndefined();
    const { resourceVersion } = view!.metadata;
    await set.time.advance(120_000);
    const again = await find<ServiceImport>(admin, serviceImportType, `${setName}/checkout.shop`);
    expect(again?.metadata.resourceVersion).toBe(resourceVersion);
    expect(removed).toEqual([]);
    expect(memberNamespace('broker')).toBe('prod-m-broker');
  });

  test('foreign homes: the broker is a member too while one member is old -> the older form of others stays', async () => {
    const removed: string[] = [];
    const set = await new SimClusterSet({
      clusters: ['east', 'north'],
      set: { legacyNamespace },
      onRequest: (home, user, { verb, resource, name }) => {
        if (verb === 'delete' && resource === 'serviceimports') removed.push(`${user}: ${name} at ${home}`);
      },
    }).start({ namespaces: ['shop'], members: ['east'] });
    const { admin } = set.broker;
    await createNamespace(set.broker, legacyNamespace);
    await createNamespace(set.broker, 'shop');
    const old = await set.home('north').admin.create<Service>(serviceType, service('shop/old'));
    await admin.create(serviceImportType, planLegacyImport(old, 'north', legacyNamespace));
    await set.join('broker');
    set.startAgent('broker');
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(120_000);
    const { items } = await admin.list(serviceImportType, { namespace: legacyNamespace });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['checkout-shop-east', 'old-shop-north']);
    expect(removed).toEqual([]);
  });
});
