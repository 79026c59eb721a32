import { describe, expect, test } from 'vitest';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type ServiceSpec, serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet, type SimClusterSetOptions } from '../clusterset.ts';
import { conditionMessage, eventLines, exportLine, find, importedIps, importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const agreed = 'Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts';
const inConflict = (reason: string) => `Valid=True/Valid Ready=True/Exported Conflict=True/${reason}`;

// east exports first, so that it is the oldest.
async function bothExport(
  specs: { east: ServiceSpec; west: ServiceSpec },
  options: Partial<SimClusterSetOptions> = {},
) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], ...options }).start({ namespaces: ['shop'] });
  const east = set.home('east').admin;
  const west = set.home('west').admin;
  await exportService(east, key, { spec: specs.east, endpoints: ['10.1.0.1'], ports: slicePorts(specs.east) });
  await set.time.advance(3_000);
  await exportService(west, key, { spec: specs.west, endpoints: ['10.2.0.1'], ports: slicePorts(specs.west) });
  await set.time.advance(3_000);
  return { set, east, west, settle: () => set.time.advance(4_000) };
}

function slicePorts(spec: ServiceSpec) {
  return (spec.ports ?? [{ name: 'http', port: 80 }]).map(({ name, port }) => ({
    name,
    port: port + 8000,
    protocol: 'TCP' as const,
  }));
}

const ports = (...entries: [string, number][]): ServiceSpec => ({
  ports: entries.map(([name, port]) => ({ name, port })),
});

async function change(client: Client, spec: object): Promise<void> {
  await client.patch(serviceType, ref, { kind: 'merge', body: { spec } });
}

describe('conflict', () => {
  test('conflict: both agree -> one import of both clusters, the same in both, no conflict [002-01, 002-22, 003-10, 003-16, 003-40]', async () => {
    const { east, west } = await bothExport({ east: {}, west: {} });
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('ClusterSetIP http:80/TCP from east,west');
      expect(await sliceLines(client, key)).toEqual(['east: 10.1.0.1 on http>8080', 'west: 10.2.0.1 on http>8080']);
      expect(await exportLine(client, key)).toBe(agreed);
    }
  });

  test('conflict: ports differ, then agree by an update -> union and conflict on both, then none [002-02, 002-21, 002-39]', async () => {
    const { east, west, settle } = await bothExport({
      east: ports(['http', 80]),
      west: ports(['http', 80], ['admin', 81]),
    });
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP admin:81/TCP from east,west');
    expect(await sliceLines(east, key)).toEqual([
      'east: 10.1.0.1 on http>8080',
      'west: 10.2.0.1 on http>8080 admin>8081',
    ]);
    for (const client of [east, west]) {
      expect(await exportLine(client, key)).toBe(inConflict('PortConflict'));
      expect(await eventLines(client, key)).toContain('Warning Conflict');
    }
    await change(west, ports(['http', 80]));
    await settle();
    for (const client of [east, west]) {
      expect(await exportLine(client, key)).toBe(agreed);
      expect(await eventLines(client, key)).toContain('Normal ConflictResolved');
    }
  });

  test('conflict: ports differ, then one unexports -> the other is alone and agrees with itself [002-27]', async () => {
    const { east, west, settle } = await bothExport({ east: ports(['http', 80]), west: ports(['http', 8080]) });
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east,west');
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    await east.delete(serviceExportType, ref);
    await settle();
    expect(await importLine(west, key)).toBe('ClusterSetIP http:8080/TCP from west');
    expect(await exportLine(west, key)).toBe(agreed);
    expect(await eventLines(west, key)).toContain('Normal DeciderChanged');
  });

  test('conflict: two names for one port -> the oldest name, and imported slices carry it [002-21]', async () => {
    const { east } = await bothExport({ east: ports(['http', 80]), west: ports(['web', 80]) });
    expect(await sliceLines(east, key)).toEqual(['east: 10.1.0.1 on http>8080', 'west: 10.2.0.1 on http>8080']);
  });

  test('conflict: intersection -> only what both have [002-10]', async () => {
    const { east } = await bothExport(
      { east: ports(['http', 80], ['debug', 82]), west: ports(['http', 80], ['admin', 81]) },
      { set: { ports: 'intersection' } },
    );
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from east,west');
    expect(await sliceLines(east, key)).toEqual(['east: 10.1.0.1 on http>8080', 'west: 10.2.0.1 on http>8080']);
    expect(await exportLine(east, key)).toBe(inConflict('PortConflict'));
  });

  test('conflict: types differ, then fixed -> the younger is left out but valid, then part of it [002-12, 002-25, 002-29]', async () => {
    const { east, west, settle } = await bothExport({ east: {}, west: { clusterIP: 'None' } });
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    expect(await exportLine(west, key)).toBe('Valid=True/Valid Ready=False/Failed Conflict=True/TypeConflict');
    expect(await exportLine(east, key)).toBe(inConflict('TypeConflict'));
    const message = await conditionMessage(west, key, 'Conflict');
    expect(message).toContain('spec.type: using "ClusterSetIP" of cluster east, the oldest export');
    expect(message).toContain('1 of 2 clusters disagree (west says "Headless"), this cluster is one of them');
    expect(message).toContain('if east left, it would become "Headless" of cluster west');
    await west.delete(serviceType, ref);
    await exportAgain(west);
    await settle();
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from east,west');
    expect(await exportLine(west, key)).toBe(agreed);
  });

  for (const side of ['east', 'west'] as const) {
    test(`conflict: affinity differs, cleared from ${side} -> no conflict`, async () => {
      const { east, west, settle } = await bothExport({ east: { sessionAffinity: 'ClientIP' }, west: {} });
      for (const client of [east, west])
        expect(await exportLine(client, key)).toBe(inConflict('SessionAffinityConflict'));
      await change(side === 'east' ? east : west, { sessionAffinity: side === 'east' ? 'None' : 'ClientIP' });
      await settle();
      for (const client of [east, west]) expect(await exportLine(client, key)).toBe(agreed);
    });
  }

  for (const side of ['east', 'west'] as const) {
    test(`conflict: affinity timeouts differ, cleared from ${side} -> no conflict`, async () => {
      const affinity = (timeoutSeconds: number): ServiceSpec => ({
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds } },
      });
      const { east, west, settle } = await bothExport({ east: affinity(100), west: affinity(200) });
      for (const client of [east, west])
        expect(await exportLine(client, key)).toBe(inConflict('SessionAffinityConfigConflict'));
      await (side === 'east' ? change(east, affinity(200)) : change(west, affinity(100)));
      await settle();
      for (const client of [east, west]) expect(await exportLine(client, key)).toBe(agreed);
    });
  }

  test('conflict: nearly everything differs -> all conflicts at once on both, the oldest decides each', async () => {
    const { east, west, settle } = await bothExport({
      east: { sessionAffinity: 'ClientIP', internalTrafficPolicy: 'Local', trafficDistribution: 'PreferClose' },
      west: ports(['http', 80], ['admin', 81]),
    });
    for (const [client, team] of [
      [east, 'a'],
      [west, 'b'],
    ] as const) {
      const spec = { exportedLabels: { team }, exportedAnnotations: { team } };
      await client.patch(serviceExportType, ref, { kind: 'merge', body: { spec } });
    }
    await settle();
    const reasons = [
      'PortConflict',
      'SessionAffinityConflict',
      'InternalTrafficPolicyConflict',
      'TrafficDistributionConflict',
      'LabelsConflict',
      'AnnotationsConflict',
    ];
    for (const client of [east, west]) {
      const line = await exportLine(client, key);
      for (const reason of reasons) expect(line).toContain(reason);
      expect(await find(client, serviceImportType, key)).toMatchObject({
        metadata: { labels: { team: 'a' }, annotations: { team: 'a' } },
        spec: { sessionAffinity: 'ClientIP', internalTrafficPolicy: 'Local', trafficDistribution: 'PreferClose' },
      });
    }
  });

  test('conflict: three clusters, the oldest leaves -> the next oldest decides, whatever its name', async () => {
    const set = await new SimClusterSet({ clusters: ['c', 'b', 'a'] }).start({ namespaces: ['shop'] });
    for (const [id, timeoutSeconds] of [
      ['c', 100],
      ['b', 200],
      ['a', 300],
    ] as const) {
      const spec: ServiceSpec = {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds } },
      };
      await exportService(set.home(id).admin, key, { spec, endpoints: ['10.1.0.1'] });
      await set.time.advance(2_000);
    }
    const timeouts = () =>
      Promise.all(
        ['a', 'b', 'c'].map(async (id) => {
          const found = await find<ServiceImport>(set.home(id).admin, serviceImportType, key);
          return found?.spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
        }),
      );
    expect(await timeouts()).toEqual([100, 100, 100]);
    await set.home('c').admin.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    expect(await timeouts()).toEqual([200, 200, 200]);
  });

  test('conflict: the oldest unexports -> the next one decides at once, and the IP stays until all have left [003-54, 002-29]', async () => {
    const { east, west, settle } = await bothExport({ east: { sessionAffinity: 'ClientIP' }, west: {} });
    const ips = await importedIps(west, key);
    await east.delete(serviceExportType, ref);
    await settle();
    expect(await importedIps(west, key)).toEqual(ips);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from west');
    expect(await exportLine(west, key)).toBe(agreed);
    await west.delete(serviceExportType, ref);
    await settle();
    expect(await importLine(west, key)).toBe('none');
  });
});

async function exportAgain(client: Client): Promise<void> {
  const made = { apiVersion: 'v1', kind: 'Service', metadata: ref, spec: { ports: [{ name: 'http', port: 80 }] } };
  await client.create(serviceType, made);
}
