import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../../src/addresses/address-claim.ts';
import { type ClusterSetSpec, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import type { Lease } from '../../src/kube/objects/lease.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportLine, find, importedIps, importLine, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';

// Both export the service on http:80, each with a port that the other lacks.
async function bothExport(spec: ClusterSetSpec = {}, wrap?: SimClusterSetOptions['wrap']) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], set: spec, wrap }).start({ namespaces: ['shop'] });
  for (const [index, id] of ['east', 'west'].entries()) {
    const ports = [
      { name: 'http', port: 80 },
      { name: `only-${id}`, port: 81 + index },
    ];
    const slicePorts = ports.map(({ name, port }) => ({ name, port: 8000 + port, protocol: 'TCP' as const }));
    await exportService(set.home(id).admin, key, {
      endpoints: [`10.${index}.0.1`],
      spec: { ports },
      ports: slicePorts,
    });
    await set.time.advance(2_000);
  }
  const change = async (next: ClusterSetSpec, ms = 4_000) => {
    const ref = { namespace: setName, name: setName };
    await set.broker.admin.patch(clusterSetType, ref, { kind: 'merge', body: { spec: next } });
    await set.time.advance(ms);
  };
  return { set, change, east: set.home('east').admin, west: set.home('west').admin };
}

describe('clusterset policy changes while everything runs', () => {
  test('set policy: ports union, then intersection, then union -> imports and slices follow, the address stays', async () => {
    const { change, east, west } = await bothExport();
    const union = 'ClusterSetIP http:80/TCP only-east:81/TCP only-west:82/TCP from east,west';
    const ips = await importedIps(west, key);
    for (const client of [east, west]) expect(await importLine(client, key)).toBe(union);
    await change({ ports: 'intersection' });
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('ClusterSetIP http:80/TCP from east,west');
      expect(await sliceLines(client, key)).toEqual(['east: 10.0.0.1 on http>8080', 'west: 10.1.0.1 on http>8080']);
      expect(await exportLine(client, key)).toContain('Conflict=True/PortConflict');
    }
    await change({ ports: 'union' });
    for (const client of [east, west]) expect(await importLine(client, key)).toBe(union);
    expect(await importedIps(west, key)).toEqual(ips);
  });

  test('set policy: endpoints Pods, then ClusterIP, then Pods -> slices hold the service address, then pods again', async () => {
    const { change, east, west } = await bothExport();
    const pods = await sliceLines(west, key);
    await change({ endpoints: 'ClusterIP' });
    const address = (await find<Service>(east, serviceType, key))!.spec!.clusterIP;
    expect((await sliceLines(west, key))[0]).toBe(`east: ${address} on http>80 only-east>81`);
    await change({ endpoints: 'Pods' });
    expect(await sliceLines(west, key)).toEqual(pods);
  });

  test('set policy: clusterset IPs allocate, then none, then allocate -> released, and the same address again [002-17]', async () => {
    const { change, west } = await bothExport();
    const ips = await importedIps(west, key);
    expect(ips).toHaveLength(1);
    await change({ clusterSetIP: 'none' });
    expect(await importedIps(west, key)).toEqual([]);
    const [claim] = (await west.list<AddressClaim>(addressClaimType)).items;
    expect(typeof claim?.spec.releasedAt).toBe('string');
    await change({ clusterSetIP: 'allocate' });
    expect(await importedIps(west, key)).toEqual(ips);
  });

  test('set policy: Keep becomes NotReady becomes Withdraw while a member is dead -> marked, then gone', async () => {
    const { set, change, west } = await bothExport({ staleness: 'Keep' });
    set.killAgent('east');
    await set.time.advance(60_000);
    expect((await sliceLines(west, key))[0]).toBe('east: 10.0.0.1 on http>8080 only-east>8081');
    await change({ staleness: 'NotReady' });
    expect((await sliceLines(west, key))[0]).toBe('east: 10.0.0.1! on http>8080 only-east>8081');
    await change({ staleness: 'Withdraw' });
    expect(await sliceLines(west, key)).toEqual(['west: 10.1.0.1 on http>8080 only-west>8082']);
  });

  test('set policy: shorter leases -> a dead member is noticed sooner', async () => {
    const { set, change, west } = await bothExport();
    // For one of the old lease times others are judged by the old ones.
    await change({ lease: { renewSeconds: 2, durationSeconds: 6 } }, 35_000);
    set.killAgent('east');
    await set.time.advance(12_000);
    expect(await sliceLines(west, key)).toEqual(['west: 10.1.0.1 on http>8080 only-west>8082']);
  });

  test('set policy: leases become much shorter -> nobody alive is condemned, also not one that hears of it late', async () => {
    const faults: Fault[] = [];
    const { set, change, west } = await bothExport({}, withFaults(faults));
    const both = await sliceLines(west, key);
    // east receives the change later: its watch is cut, and it cannot list again at once.
    faults.push({ home: 'broker', method: 'GET', path: '/clustersets', from: 'agent-east', times: 3 });
    set.simulation.network.breakStreams({ from: 'agent-east' });
    await change({ lease: { renewSeconds: 1, durationSeconds: 3 } }, 0);
    for (let second = 0; second < 60; second += 1) {
      await set.time.advance(1_000);
      expect(await sliceLines(west, key), `after ${second} s`).toEqual(both);
    }
    expect(faults[0]?.times).toBe(0);
    set.killAgent('east');
    await set.time.advance(6_000);
    expect(await sliceLines(west, key)).toEqual([both[1]]);
  });

  test('set policy: leases become shorter -> the renewal under way is not waited for', async () => {
    const { set, change } = await bothExport({ lease: { renewSeconds: 60, durationSeconds: 180 } });
    const renewed = async () => {
      const ref = { namespace: memberNamespace('east'), name: 'portolan-agent' };
      return (await set.broker.admin.get<Lease>(heartbeatType, ref)).spec?.renewTime;
    };
    const before = await renewed();
    await change({ lease: { renewSeconds: 2, durationSeconds: 6 } }, 1_000);
    expect(await renewed()).not.toBe(before);
  });
});
